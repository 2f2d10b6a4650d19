//! The library on real directories, with an interpreter that only looks for a name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_script::{GuestMessage, Meta, Problem};
use tempfile::TempDir;

use super::*;

const SHIPPED: &[(&str, &str)] = &[("review", "name: review (shipped)")];

/// A project with a directory in it, a user's folder, and how often the interpreter was asked.
struct TestProject {
    root: TempDir,
    asked: Arc<AtomicUsize>,
}

impl TestProject {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("project/sub")).unwrap();
        Self { root, asked: Arc::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn folders(&self, what: &str) -> Vec<LibraryFolder> {
        let project = ["project/sub/.convoke", "project/sub/.claude", "project/.convoke", "project/.claude"];
        let folder = |dir: &str, origin| LibraryFolder { dir: self.path(dir).join(what), origin };
        let project = project.iter().map(|dir| folder(dir, Origin::Project));
        project.chain([folder("user", Origin::User)]).collect()
    }

    fn library(&self) -> Library {
        let asked = Arc::clone(&self.asked);
        let checker = Checker::new(move |source| {
            asked.fetch_add(1, Ordering::SeqCst);
            async move { Ok(told(&source)) }
        });
        Library::new(self.folders("workflows"), self.folders("agents"), SHIPPED, checker)
    }

    fn short(&self, path: &Path) -> String {
        path.strip_prefix(self.path("")).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// Sound is what begins with a name.
fn told(source: &str) -> GuestMessage {
    match source.strip_prefix("name: ").and_then(|rest| rest.split_whitespace().next()) {
        Some(name) => GuestMessage::Sound {
            meta: Meta { name: name.into(), ..Meta::default() },
            warnings: Vec::new(),
            slips: Vec::new(),
        },
        None => GuestMessage::Unsound { problems: vec![Problem { message: "no meta".into(), place: None }] },
    }
}

#[tokio::test]
async fn the_nearest_workflow_of_a_name_wins_and_edits_count_at_once() {
    let place = TestProject::new();
    let library = place.library();
    let check = async |expected: &str, origin: Origin| {
        let found = library.find("review").await.unwrap().unwrap();
        let path = found.path.as_ref().map(|path| place.short(path)).unwrap_or_default();
        assert_eq!((path.as_str(), found.origin), (expected, origin));
    };
    check("", Origin::Shipped).await;
    place.write("user/workflows/a.js", "name: review");
    check("user/workflows/a.js", Origin::User).await;
    place.write("project/.claude/workflows/b.mjs", "name: review");
    check("project/.claude/workflows/b.mjs", Origin::Project).await;
    place.write("project/.convoke/workflows/c.js", "name: review");
    check("project/.convoke/workflows/c.js", Origin::Project).await;
    place.write("project/sub/.claude/workflows/d.js", "name: review");
    check("project/sub/.claude/workflows/d.js", Origin::Project).await;
    place.write("project/sub/.claude/workflows/d.js", "name: another");
    check("project/.convoke/workflows/c.js", Origin::Project).await;
    assert_eq!(library.find("nobody").await, Ok(None));
}

#[tokio::test]
async fn a_workflow_is_called_what_its_meta_says_and_never_as_its_file() {
    let place = TestProject::new();
    place.write("user/workflows/file.js", "name: meta");
    place.write("user/workflows/readme.txt", "name: text").write("user/workflows/dir.js/x.js", "name: deep");
    let library = place.library();
    assert_eq!(library.find("meta").await.unwrap().unwrap().source, "name: meta");
    for name in ["file", "text", "deep", "x"] {
        assert_eq!(library.find(name).await, Ok(None), "{name}");
    }
}

#[tokio::test]
async fn a_nearer_file_of_that_name_that_cannot_be_used_is_not_passed_over() {
    let place = TestProject::new();
    place.write("user/workflows/review.js", "nonsense");
    let error = place.library().find("review").await.unwrap_err();
    assert_eq!(error.to_string(), format!("{}: no meta", place.path("user/workflows/review.js").display()));
    place.write("user/workflows/same.js", "name: review");
    assert_eq!(place.library().find("review").await.unwrap().unwrap().source, "name: review");
    place.write("project/.convoke/workflows/other.js", "nonsense");
    assert_eq!(place.library().find("review").await.unwrap().unwrap().source, "name: review");
}

#[tokio::test]
async fn everything_is_listed_with_what_is_wrong_and_what_is_hidden() {
    let place = TestProject::new();
    place.write("user/workflows/one.js", "name: review").write("user/workflows/two.js", "nonsense");
    place.write("project/.convoke/workflows/long.js", &"x".repeat(524_289));
    place.write("project/.convoke/workflows/umlaut.js", &format!("name: full {}", "ä".repeat(524_277)));
    fs::write(place.path("project/.convoke/workflows/raw.js"), [0x6e, 0xff]).unwrap();
    symlink(place.path("user/workflows/one.js"), place.path("project/.convoke/workflows/link.js")).unwrap();
    let listed: Vec<String> = place.library().list().await.into_iter().map(row).collect();
    let expected = [
        "project link: it is a symbolic link and is not followed: put the file itself in its place",
        "project long: it is longer than 524288 characters: split it, or pass data in args",
        "project raw: it is not UTF-8 text: save it as UTF-8",
        "project full: sound",
        "user review: sound",
        "user two: no meta",
        "shipped review: sound, hidden",
    ];
    assert_eq!(listed, expected);
}

fn row(entry: WorkflowEntry) -> String {
    let reading = match entry.reading {
        Reading::Sound(_) => "sound".to_owned(),
        Reading::Unsound(problems) => problems[0].message.clone(),
        Reading::Unreadable(why) => why,
    };
    let hidden = if entry.hidden { ", hidden" } else { "" };
    format!("{} {}: {reading}{hidden}", entry.origin.word(), entry.name)
}

#[tokio::test]
async fn a_folder_that_is_a_link_is_refused_and_says_so() {
    let place = TestProject::new();
    place
        .write("elsewhere/workflows/a.js", "name: stolen")
        .write("elsewhere/agents/b.md", "---\nname: b\n---\n");
    symlink(place.path("elsewhere"), place.path("project/.claude")).unwrap();
    fs::create_dir_all(place.path("user")).unwrap();
    symlink(place.path("elsewhere/workflows"), place.path("user/workflows")).unwrap();
    let library = place.library();
    assert_eq!(library.find("stolen").await, Ok(None));
    assert_eq!(library.agent_kind("b").await, Ok(None));
    let rows: Vec<String> = library.list().await.into_iter().map(row).collect();
    assert!(
        rows[0].starts_with("project .claude/workflows: ") && rows[0].contains("is a symbolic link"),
        "{rows:?}"
    );
    assert!(
        rows[1].starts_with("user user/workflows: ") && rows[1].contains("is a symbolic link"),
        "{rows:?}"
    );
    assert!(library.workflows.iter().all(|folder| folder.workflows().is_empty()));
}

#[tokio::test]
async fn the_same_source_is_checked_once() {
    let place = TestProject::new();
    place.write("user/workflows/one.js", "name: one").write("project/.claude/workflows/one.js", "name: one");
    let library = place.library();
    for _ in 0..3 {
        library.list().await;
        library.find("review").await.unwrap();
    }
    assert_eq!(place.asked.load(Ordering::SeqCst), 2, "one file twice, and what is shipped");
}

#[tokio::test]
async fn where_nothing_can_be_checked_nothing_is_taken_for_missing() {
    let place = TestProject::new();
    place.write("user/workflows/one.js", "name: one");
    let checker = Checker::new(|_| async { Err("there is no helper".to_owned()) });
    let library = Library::new(place.folders("workflows"), Vec::new(), SHIPPED, checker);
    let expected = LibraryError::Unchecked { why: "there is no helper".to_owned() };
    for name in ["one", "other", "review"] {
        assert_eq!(library.find(name).await, Err(expected.clone()), "{name}");
    }
    let rows: Vec<String> = library.list().await.into_iter().map(row).collect();
    let why = "the source cannot be checked: there is no helper";
    assert_eq!(rows, [format!("user one: {why}"), format!("shipped review: {why}")]);
}

#[tokio::test]
async fn a_script_is_read_from_the_working_directory_the_folders_and_the_runs_and_nowhere_else() {
    let place = TestProject::new();
    place.write("project/sub/a.js", "here").write("user/workflows/b.js", "shelf").write("runs/c.js", "run");
    place.write("secret.txt", "secret").write("project/above.js", "above");
    symlink(place.path("secret.txt"), place.path("project/sub/out.js")).unwrap();
    symlink(place.path("project/sub/a.js"), place.path("project/sub/in.js")).unwrap();
    let library = place.library();
    let dir = place.path("project/sub");
    let runs = place.path("runs");
    let read = async |path: &str| {
        let path = path.replace("ROOT", &place.path("").to_string_lossy());
        library.read_path(Path::new(&path), &dir, Some(&runs), |_| Ok(())).await.map(|source| source.text)
    };
    for (path, expected) in [
        ("a.js", "here"),
        ("./x/../a.js", "here"),
        ("ROOT/project/sub/a.js", "here"),
        ("in.js", "here"),
        ("../../user/workflows/b.js", "shelf"),
        ("ROOT/runs/c.js", "run"),
    ] {
        fs::create_dir_all(place.path("project/sub/x")).unwrap();
        assert_eq!(read(path).await.as_deref(), Ok(expected), "{path}");
    }
    for path in [
        "../above.js",
        "ROOT/secret.txt",
        "out.js",
        "/etc/passwd",
        "/nowhere",
        "../nothing.js",
        "\\\\server\\share",
    ] {
        let refused = read(path).await.unwrap_err();
        assert!(matches!(refused, LibraryError::Outside { .. }), "{path}: {refused}");
        assert!(refused.to_string().contains("is refused"), "{refused}");
    }
    for (path, says) in [("missing.js", "No such file"), (".", "no regular file")] {
        let refused = read(path).await.unwrap_err();
        assert!(
            matches!(&refused, LibraryError::Unreadable { why, .. } if why.contains(says)),
            "{path}: {refused}"
        );
    }
}

#[tokio::test]
async fn what_nobody_trusts_is_refused_in_the_same_words_by_its_name_and_by_its_path() {
    let place = TestProject::new();
    place.write("project/.claude/workflows/a.js", "name: theirs").write("project/flows/b.js", "name: linked");
    place.write("user/workflows/c.js", "name: mine").write("project/sub/d.js", "here");
    fs::create_dir_all(place.path("project/sub/.convoke")).unwrap();
    symlink(place.path("project/flows"), place.path("project/sub/.convoke/workflows")).unwrap();
    symlink(place.path("project/.claude/workflows/a.js"), place.path("project/sub/link.js")).unwrap();
    let all = place.folders("workflows");
    let (left_out, kept): (Vec<LibraryFolder>, Vec<LibraryFolder>) =
        all.into_iter().partition(|folder| folder.origin == Origin::Project);
    let checker = Checker::new(|source| async move { Ok(told(&source)) });
    let library = Library::new(kept, Vec::new(), SHIPPED, checker).without(left_out, Vec::new());
    let dir = place.path("project/sub");
    let read = async |path: &str| library.read_path(Path::new(path), &dir, None, |_| Ok(())).await;
    let refused = |named: &str, real: &str, error: LibraryError| {
        let path = place.path(real);
        assert_eq!(error, LibraryError::Untrusted { named: named.to_owned(), path: path.clone() });
        let words = format!(
            "the workflow '{named}' is the project's ({}), and the project is not trusted",
            path.display()
        );
        assert!(
            error.to_string().starts_with(&words) && error.to_string().contains("--trust-project"),
            "{error}"
        );
    };
    refused("theirs", "project/.claude/workflows/a.js", library.find("theirs").await.unwrap_err());
    for (named, real) in [
        ("../.claude/workflows/a.js", "project/.claude/workflows/a.js"),
        ("link.js", "project/.claude/workflows/a.js"),
        (".convoke/workflows/b.js", "project/flows/b.js"),
    ] {
        refused(named, real, read(named).await.unwrap_err());
    }
    assert_eq!(read("d.js").await.unwrap().text, "here");
    assert_eq!(read("../../user/workflows/c.js").await.unwrap().text, "name: mine");
    assert_eq!(library.find("mine").await.unwrap().unwrap().origin, Origin::User);
    assert_eq!(library.find("review").await.unwrap().unwrap().origin, Origin::Shipped);
    assert_eq!(library.find("nobody").await, Ok(None));
    // A trusted one of the same name is taken before it.
    place.write("project/.claude/workflows/e.js", "name: review");
    assert_eq!(library.find("review").await.unwrap().unwrap().origin, Origin::Shipped);
}

#[tokio::test]
async fn nothing_is_read_that_a_rule_forbids_by_its_name_or_by_where_it_really_is() {
    let place = TestProject::new();
    place.write("project/sub/secret/a.js", "secret").write("project/sub/b.js", "open");
    symlink(place.path("project/sub/secret/a.js"), place.path("project/sub/by-link.js")).unwrap();
    symlink(place.path("project/sub/b.js"), place.path("project/sub/named.js")).unwrap();
    let library = place.library();
    let dir = place.path("project/sub");
    let below = dir.join("secret");
    let named = dir.join("named.js");
    let may = |path: &Path| match path.starts_with(&below) || path == named {
        true => Err("a rule forbids it".to_owned()),
        false => Ok(()),
    };
    let read = async |path: &str| library.read_path(Path::new(path), &dir, None, may).await;
    for path in ["secret/a.js", "./x/../secret/a.js", "by-link.js", "named.js", "secret/nothing.js"] {
        let expected =
            LibraryError::Forbidden { path: PathBuf::from(path), why: "a rule forbids it".to_owned() };
        assert_eq!(read(path).await, Err(expected), "{path}");
    }
    assert_eq!(read("b.js").await.unwrap().text, "open");
}

#[tokio::test]
async fn a_person_may_name_any_file() {
    let place = TestProject::new();
    place.write("any.txt", "text");
    symlink(place.path("any.txt"), place.path("link")).unwrap();
    let tree = place.path("project");
    let read = read_source(&place.path("link"), &tree).await.unwrap();
    assert_eq!((read.text.as_str(), place.short(&read.path).as_str()), ("text", "any.txt"));
    assert!(read_source(&tree, &tree).await.unwrap_err().to_string().contains("no regular file"));
    place.write("project/own.js", "own");
    symlink("own.js", tree.join("inside.js")).unwrap();
    symlink(place.path("any.txt"), tree.join("out.js")).unwrap();
    assert_eq!(read_source(&tree.join("inside.js"), &tree).await.unwrap().text, "own");
    assert!(
        read_source(&tree.join("out.js"), &tree).await.is_err(),
        "a link of the project's leads out of it"
    );
}

#[tokio::test]
async fn the_nearest_kind_of_agent_wins_and_two_are_built_in() {
    let place = TestProject::new();
    let library = place.library();
    let kind = async |name: &str| library.agent_kind(name).await.unwrap();
    let general = kind("general-purpose").await.unwrap();
    assert_eq!((general.tools, general.instructions.as_str(), general.read_only), (None, "", false));
    let explore = kind("Explore").await.unwrap();
    assert_eq!(explore.tools.unwrap(), ["view", "glob", "grep", "bash"]);
    assert!(explore.read_only && !explore.instructions.is_empty());
    assert_eq!(kind("nobody").await, None);
    place
        .write("user/agents/x.md", "---\nname: Explore\n---\nMine.")
        .write("user/agents/README.md", "# Kinds\n");
    assert_eq!(kind("Explore").await.unwrap().instructions, "Mine.");
    place.write("project/.claude/agents/x.md", "---\nname: Explore\n---\nTheirs.");
    assert_eq!(kind("Explore").await.unwrap().instructions, "Theirs.");
    let listed: Vec<String> = library
        .agent_kinds()
        .await
        .iter()
        .map(|entry| {
            format!("{} {}{}", entry.origin.word(), entry.name, if entry.hidden { " hidden" } else { "" })
        })
        .collect();
    assert_eq!(
        listed,
        ["project Explore", "user Explore hidden", "shipped general-purpose", "shipped Explore hidden"]
    );
}

#[tokio::test]
async fn kinds_are_found_in_folders_below_and_not_behind_links() {
    let place = TestProject::new();
    place.write("project/.claude/agents/law/tax/auditor.md", "---\nname: auditor\n---\nDeep.");
    place.write("elsewhere/spy.md", "---\nname: spy\n---\nOut.");
    place.write("project/.claude/workflows/below/flow.js", "anything");
    std::os::unix::fs::symlink(place.path("elsewhere"), place.path("project/.claude/agents/out")).unwrap();
    let library = place.library();
    assert_eq!(library.agent_kind("auditor").await.unwrap().unwrap().instructions, "Deep.");
    assert_eq!(library.agent_kind("spy").await.unwrap(), None);
    let listed = library.agent_kinds().await;
    assert_eq!(place.short(listed[0].path.as_ref().unwrap()), "project/.claude/agents/law/tax/auditor.md");
    assert_eq!(library.agents.iter().flat_map(LibraryFolder::agents).collect::<Vec<_>>(), ["auditor"]);
    assert!(
        library.workflows.iter().all(|folder| folder.workflows().is_empty()),
        "workflows have no folders"
    );
}

#[tokio::test]
async fn a_kind_of_a_project_that_nobody_trusts_is_told_as_such() {
    let place = TestProject::new();
    place.write("project/.claude/agents/x.md", "---\nname: auditor\n---\nTheirs.");
    let (left_out, kept): (Vec<LibraryFolder>, Vec<LibraryFolder>) =
        place.folders("agents").into_iter().partition(|folder| folder.origin == Origin::Project);
    let library = Library { agents: kept, ..place.library() }.without(Vec::new(), left_out);
    let error = library.agent_kind("auditor").await.unwrap_err().to_string();
    assert!(error.contains("agents/x.md") && error.contains("--trust-project"), "{error}");
    assert_eq!(library.agent_kind("nobody").await, Ok(None));
}

#[tokio::test]
async fn a_kind_that_cannot_be_read_is_told_with_file_and_line_if_it_is_the_one_that_is_meant() {
    let place = TestProject::new();
    place.write("project/.claude/agents/auditor.md", "---\nname: auditor\nmodel: \"opus\n---\n");
    place.write("user/agents/other.md", "---\nname: other\n---\n");
    let library = place.library();
    let path = place.path("project/.claude/agents/auditor.md");
    let expected = format!("{}:3: 'model': the quotes are not closed: end it with \"", path.display());
    assert_eq!(library.agent_kind("auditor").await.unwrap_err().to_string(), expected);
    assert_eq!(library.agent_kind("other").await.unwrap().unwrap().name, "other");
    let listed = library.agent_kinds().await;
    assert_eq!(listed[0].problem.as_deref(), Some(expected.as_str()));
}
