//! `convoke workflow` and trust: what is saved is listed, shown, checked and saved; what a project brings
//! along is loaded only if a person trusts it.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::pty::Terminal;
use crate::stage::Stage;
use crate::support::{Finished, TestHome, ran};

const AGENT: &str = "---\nname: auditor\ndescription: Looks at money.\n---\nBe exact.\n";

/// A workflow of this name.
fn flow(name: &str) -> String {
    format!(
        "// Ours.\nexport const meta = {{\n  name: '{name}',\n  description: 'Looks around, by the name of \
         {name}.',\n  whenToUse: 'at night',\n  phases: [{{ title: 'Look', detail: 'one agent' }}, {{ \
         title: 'Tell' }}],\n}}\n\
         return await agent('Look around.')\n"
    )
}

/// Two things are wrong, each in a line of its own.
const BROKEN: &str = "export const meta = { name: 'broken', description: 'Two faults.' }\n\
                      const one = Date.now()\n\tconst two = Math.random()\n";

/// A place with these files in it.
fn place(files: &[(&str, &str)]) -> TestHome {
    let place = TestHome::new();
    for (path, text) in files {
        place.write(&place.path(path), text);
    }
    place
}

#[track_caller]
fn json(got: &Finished) -> Value {
    serde_json::from_str(&got.out).unwrap_or_else(|error| panic!("{error}: {}{}", got.out, got.err))
}

/// What is listed beside what is shipped: name, origin, and whether it can be run, is trusted, is hidden.
#[track_caller]
fn listed(place: &TestHome, args: &[&str]) -> Vec<Value> {
    let got = place.convoke(&[&["workflow", "list", "--output", "json"], args].concat());
    assert_eq!(got.code, 0, "{}", got.err);
    let all = json(&got)["workflows"].as_array().unwrap().clone();
    let ours = all.into_iter().filter(|entry| entry["origin"] != "shipped");
    ours.map(|entry| {
        json!([entry["name"], entry["origin"], entry["sound"], entry["trusted"], entry["hidden"]])
    })
    .collect()
}

#[test]
fn the_list_has_everything_nearest_first_with_what_is_wrong() {
    let place = place(&[
        ("work/.git/HEAD", ""),
        ("work/sub/.claude/workflows/one.js", &flow("near")),
        ("work/.convoke/workflows/two.js", &flow("near")),
        ("work/.convoke/workflows/bad.js", BROKEN),
        ("home/.config/convoke/workflows/three.mjs", &flow("mine")),
        ("home/.claude/workflows/four.js", &flow("near")),
        ("work/.claude/agents/auditor.md", AGENT),
        ("home/.claude/agents/bad.md", "---\nname: x\nnonsense\n---\n"),
    ]);
    let expected = [
        json!(["near", "project", true, false, false]),
        json!(["bad", "project", false, false, false]),
        json!(["near", "project", true, false, true]),
        json!(["mine", "user", true, true, false]),
        json!(["near", "user", true, true, false]),
    ];
    assert_eq!(listed(&place, &["-C", "sub"]), expected, "what is not trusted takes nobody's place");
    let shown =
        |place: &TestHome| json(&place.convoke(&["workflow", "show", "near", "-C", "sub", "-o", "json"]));
    assert_eq!(shown(&place)["origin"], "user");
    let text = format!("trusted = [\"{}\"]\n", place.path("work").to_string_lossy());
    place.write(&place.user_config(), &text);
    let trusted = listed(&place, &["-C", "sub"]);
    assert_eq!(trusted[0], json!(["near", "project", true, true, false]));
    assert_eq!(trusted[4], json!(["near", "user", true, true, true]));
    assert_eq!(shown(&place)["origin"], "project");
    place.write(&place.user_config(), "");
    let got = place.convoke(&["workflow", "list", "-C", "sub", "-o", "json"]);
    let agents = json(&got)["agents"].as_array().unwrap().clone();
    let names: Vec<&Value> = agents.iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["auditor", "bad", "general-purpose", "Explore"]);
    assert!(agents[1]["problem"].as_str().unwrap().contains("bad.md:3: "), "{}", agents[1]);
    let text = ran(place.command(&["workflow", "list"]).env("COLUMNS", "90"));
    let row =
        |start: &str| text.out.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    assert!(row("near ").contains("project, not trusted"), "{}", text.out);
    assert!(row("bad ").contains("cannot be run: "), "{}", text.out);
    assert!(row("auditor ").contains("Looks at money."), "{}", text.out);
    assert!(text.out.lines().all(|line| line.chars().count() <= 90), "{}", text.out);
    assert!(
        text.err.contains("1 workflow cannot be run") && text.err.contains("--trust-project"),
        "{}",
        text.err
    );
    assert!(!text.out.contains('\u{1b}'));
}

#[test]
fn what_is_shipped_can_be_run_and_gives_way_to_what_is_nearer() {
    let place = place(&[("home/.config/convoke/workflows/review.js", &flow("review"))]);
    let listed =
        json(&place.convoke(&["workflow", "list", "-o", "json"]))["workflows"].as_array().unwrap().clone();
    let rows: Vec<Value> = listed
        .iter()
        .map(|entry| json!([entry["name"], entry["origin"], entry["sound"], entry["hidden"]]))
        .collect();
    let expected = [
        json!(["review", "user", true, false]),
        json!(["audit", "shipped", true, false]),
        json!(["migrate", "shipped", true, false]),
        json!(["review", "shipped", true, true]),
    ];
    assert_eq!(rows, expected, "{listed:#?}");
    let got = place.convoke(&["workflow", "check", "audit", "migrate", "review"]);
    assert_eq!((got.code, got.out.as_str()), (0, ""), "{}", got.err);
}

#[test]
fn a_folder_elsewhere_is_found_by_its_variable() {
    let place = place(&[
        ("elsewhere/workflows/a.js", &flow("mine")),
        ("home/.claude/workflows/b.js", &flow("other")),
    ]);
    let mut command = place.command(&["workflow", "list", "-o", "json"]);
    let got = ran(command.env("CLAUDE_CONFIG_DIR", place.path("elsewhere")));
    let names: Vec<Value> =
        json(&got)["workflows"].as_array().unwrap().iter().map(|entry| entry["name"].clone()).collect();
    assert!(names.contains(&json!("mine")) && !names.contains(&json!("other")), "{names:?}");
}

#[test]
fn a_workflow_is_shown_with_what_it_says_of_itself_and_its_source() {
    let place = place(&[("work/.claude/workflows/n.js", &flow("nightly"))]);
    let got = place.convoke(&["workflow", "show", "nightly"]);
    assert_eq!(got.code, 0, "{}", got.err);
    let digest = convoke_runtime::source_digest(&flow("nightly"));
    let expected = format!(
        "name         nightly\ndescription  Looks around, by the name of nightly.\nwhen to use  at night\n\
         phases       1. Look: one agent\n             2. Tell\nfrom         project, not trusted\n\
         file         .claude/workflows/n.js\ndigest       {}\n\n{}",
        &digest[..12],
        flow("nightly")
    );
    assert_eq!(got.out, expected);
    let shown = json(&place.convoke(&["workflow", "show", "nightly", "-o", "json"]));
    assert_eq!((&shown["sha256"], &shown["source"]), (&json!(digest), &json!(flow("nightly"))));
    assert_eq!(shown["meta"]["phases"][1], json!({"title": "Tell", "detail": null, "model": null}));
}

#[test]
fn a_name_that_nobody_has_is_told_with_the_nearest() {
    let place = place(&[("home/.config/convoke/workflows/n.js", &flow("nightly"))]);
    for command in ["show", "check"] {
        let got = place.convoke(&["workflow", command, "nigthly"]);
        assert_eq!(got.code, 2);
        let expected = "convoke: there is no workflow 'nigthly'\n  the nearest name is 'nightly'\n  \
            `convoke workflow list` shows all of them\n";
        assert_eq!(got.err, expected);
    }
}

#[test]
fn check_says_all_errors_of_each_file_with_the_place_and_a_mark_below_it() {
    let place = place(&[("work/broken.js", BROKEN), ("work/good.js", &flow("good"))]);
    let got = place.convoke(&["workflow", "check", "broken.js", "good.js"]);
    assert_eq!(got.code, 2, "{}{}", got.out, got.err);
    let lines: Vec<&str> = got.out.lines().collect();
    assert!(lines[0].starts_with("broken.js:2:13: "), "{}", got.out);
    assert_eq!(lines[1..3], ["  const one = Date.now()", "              ^"], "{}", got.out);
    assert!(lines[3].starts_with("broken.js:3:14: "), "{}", got.out);
    assert_eq!(lines[4..], ["      const two = Math.random()", "                  ^"], "{}", got.out);
    assert_eq!(got.err, "2 workflows checked, 1 cannot be run\n");
    let got = place.convoke(&["workflow", "check", "good.js"]);
    assert_eq!(
        (got.code, got.out.as_str(), got.err.as_str()),
        (0, "", "1 workflow checked, nothing wrong\n")
    );
}

#[test]
fn check_takes_names_and_tells_programs_the_same() {
    let place = place(&[
        ("home/.config/convoke/workflows/a.js", &flow("mine")),
        ("work/.convoke/workflows/broken.js", BROKEN),
    ]);
    let got = place.convoke(&["workflow", "check", "mine", "broken", "missing.js", "-o", "json"]);
    assert_eq!(got.code, 2);
    let files = json(&got)["files"].as_array().unwrap().clone();
    let sound: Vec<&Value> = files.iter().map(|file| &file["sound"]).collect();
    assert_eq!(sound, [true, false, false]);
    assert_eq!(files[0]["meta"]["name"], "mine");
    let places: Vec<Value> =
        files[1]["problems"].as_array().unwrap().iter().map(|at| json!([at["line"], at["column"]])).collect();
    assert_eq!(places, [json!([2, 13]), json!([3, 14])]);
    assert!(files[2]["problems"][0]["message"].as_str().unwrap().contains("missing.js"), "{}", files[2]);
}

#[test]
fn what_nobody_can_parse_is_told_by_its_line_too() {
    let place = place(&[(
        "work/typed.js",
        "export const meta = { name: 'a', description: 'b' }\nconst x: number = 1\n",
    )]);
    let got = place.convoke(&["workflow", "check", "typed.js"]);
    assert_eq!(got.code, 2);
    assert!(got.out.starts_with("typed.js:2:7: ") && got.out.contains("plain JavaScript"), "{}", got.out);
    assert!(got.out.contains("\n  const x: number = 1\n        ^\n"), "{}", got.out);
}

#[test]
fn a_workflow_is_saved_where_it_is_found() {
    let place = place(&[("work/.git/HEAD", ""), ("work/sub/flow.js", &flow("nightly"))]);
    let save = |args: &[&str]| place.convoke(&[&["workflow", "save"], args].concat());
    let got = save(&["nightly", "--from", "sub/flow.js", "-C", "sub"]);
    assert_eq!(got.code, 0, "{}", got.err);
    assert_eq!(place.normal(&got.out), "ROOT/work/.convoke/workflows/nightly.js\n");
    assert!(got.err.contains("--trust-project"), "{}", got.err);
    assert_eq!(
        std::fs::read_to_string(place.path("work/.convoke/workflows/nightly.js")).unwrap(),
        flow("nightly")
    );
    assert_eq!(place.convoke(&["workflow", "show", "nightly", "-C", "sub"]).code, 0);
    let again = save(&["nightly", "--from", "sub/flow.js"]);
    assert_eq!(again.code, 0, "the very same is no conflict: {}", again.err);
    let got = save(&["nightly", "--from", "sub/flow.js", "--user", "-o", "json"]);
    let path = place.path("home/.config/convoke/workflows/nightly.js");
    assert_eq!(json(&got)["path"], json!(path.to_string_lossy()));
    assert!(json(&got)["hidden"] == true && got.err.contains("is found first"), "{}{}", got.out, got.err);
    // The nearest directory that is there is taken.
    std::fs::create_dir_all(place.path("work/sub/.claude/workflows")).unwrap();
    let got = save(&["nightly", "--from", "sub/flow.js", "-C", "sub"]);
    assert_eq!(place.normal(&got.out), "ROOT/work/sub/.claude/workflows/nightly.js\n", "{}", got.err);
}

#[test]
fn nothing_is_replaced_unasked_and_nothing_is_saved_that_cannot_be_run() {
    let place = place(&[
        ("work/flow.js", &flow("nightly")),
        ("work/broken.js", BROKEN),
        ("work/.convoke/workflows/nightly.js", "old"),
    ]);
    let check = |args: &[&str], says: &str| {
        let got = place.convoke(&[&["workflow", "save"], args].concat());
        assert_eq!(got.code, 2, "{args:?}: {}{}", got.out, got.err);
        assert!(got.err.contains(says), "{args:?}: {}", got.err);
    };
    check(&["nightly", "--from", "flow.js"], "--force replaces it");
    check(&["daily", "--from", "flow.js"], "its meta says that its name is 'nightly'");
    check(&["broken", "--from", "broken.js"], "broken.js:2:13: ");
    check(&["../up", "--from", "flow.js"], "cannot be a name");
    check(&["nightly", "--from", "wf_0123456789abcdef"], "there is no session 'wf_0123456789abcdef'");
    check(&["nightly", "--from", "nowhere.js"], "nowhere.js");
    let old = place.path("work/.convoke/workflows/nightly.js");
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "old");
    let got = place.convoke(&["workflow", "save", "nightly", "--from", "flow.js", "--force", "-o", "json"]);
    assert_eq!((got.code, &json(&got)["replaced"]), (0, &json!(true)), "{}", got.err);
    assert_eq!(std::fs::read_to_string(&old).unwrap(), flow("nightly"));
    std::fs::remove_dir_all(place.path("work/.convoke")).unwrap();
    std::fs::create_dir(place.path("work/.convoke")).unwrap();
    symlink(place.path("elsewhere"), place.path("work/.convoke/workflows")).unwrap();
    check(&["nightly", "--from", "flow.js"], "is a symbolic link");
    assert_eq!(std::fs::read_dir(place.path("elsewhere")).unwrap().count(), 0);
}

const LEFT_OUT: &str = "warning: not loaded, because ROOT/work is not trusted: the workflow nightly and the \
    agent auditor; --trust-project loads them for this once, `trusted` in your configuration for good\n";

#[test]
fn what_a_project_brings_along_is_left_out_unless_somebody_trusts_it_and_that_is_said() {
    let check = |files: &[(&str, &str)], config: &str, args: &[&str], expected: bool| {
        let place = place(files);
        let text = format!("trusted = [\"{}\"]\n", place.path(config).to_string_lossy());
        place.write(&place.user_config(), if config.is_empty() { "" } else { &text });
        let got = place.convoke(&[&["run", "--offline", "--quiet"], args, &["what is here?"]].concat());
        assert_eq!(got.code, 0, "{}", got.err);
        assert_eq!(
            place.normal(&got.err).contains(LEFT_OUT),
            expected,
            "{config} {args:?}: {}",
            place.normal(&got.err)
        );
        assert_eq!(got.err.contains("trust"), expected, "{config} {args:?}: {}", got.err);
    };
    let nightly = flow("nightly");
    let both =
        [("work/.claude/workflows/nightly.js", nightly.as_str()), ("work/.convoke/agents/auditor.md", AGENT)];
    check(&both, "", &[], true);
    check(&both, "elsewhere", &[], true);
    check(&both, "work", &[], false);
    check(&both, "", &["--trust-project"], false);
    let others = [
        ("home/.claude/workflows/mine.js", nightly.as_str()),
        ("work/.claude/agents/README.md", "# Kinds\n"),
        ("work/.claude/workflows/notes.txt", "x"),
    ];
    check(&others, "", &[], false);
}

#[test]
fn a_project_cannot_trust_itself() {
    let place = place(&[("work/.convoke/workflows/nightly.js", &flow("nightly"))]);
    let text = format!("trusted = [\"{}\"]\n", place.path("work").to_string_lossy());
    place.write(&place.project_config(), &text);
    let got = place.convoke(&["workflow", "list"]);
    assert_eq!(got.code, 2);
    assert!(got.err.contains("'trusted' cannot be set by a project"), "{}", got.err);
    std::fs::remove_file(place.project_config()).unwrap();
    assert_eq!(listed(&place, &[]), [json!(["nightly", "project", true, false, false])]);
    place.write(&place.user_config(), &text);
    assert_eq!(listed(&place, &[]), [json!(["nightly", "project", true, true, false])]);
    place.write(&place.user_config(), "trusted = [\"work\"]\n");
    let got = place.convoke(&["workflow", "list"]);
    assert!(
        got.code == 2 && got.err.contains("config.toml:1: 'trusted': 'work' is no absolute path"),
        "{}",
        got.err
    );
}

#[tokio::test]
async fn a_person_at_a_terminal_is_asked_and_can_trust_a_project_for_good() {
    let stage = Stage::bare();
    let folder = stage.work().join(".convoke/workflows");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("nightly.js"), flow("nightly")).unwrap();
    let config = stage.home().join(".config/convoke/config.toml");
    let ask = async |answer: &str| {
        let mut terminal = Terminal::open(&stage, "--offline --fresh 'what is here?'");
        terminal.shows("brings along the workflow nightly").await;
        terminal.shows("Trust the workflows and agents of ").await;
        terminal.shows("[y/N/a] ").await;
        terminal.types(answer).await;
        terminal.end().await.exits(0).text
    };
    assert!(ask("\n").await.contains("is not trusted: the workflow"));
    assert!(!ask("y\n").await.contains("not loaded"));
    assert!(!config.exists(), "once is once");
    assert!(!ask("a\n").await.contains("not loaded"));
    let work = stage.work().canonicalize().unwrap();
    let written = std::fs::read_to_string(&config).unwrap();
    assert!(written.contains(&format!("trusted = [\"{}\"]", work.to_string_lossy())), "{written}");
    let terminal = Terminal::open(&stage, "--offline --fresh 'what is here?'");
    let text = terminal.end().await.exits(0).text;
    assert!(!text.contains("Trust the workflows") && !text.contains("not loaded"), "{text}");
}
