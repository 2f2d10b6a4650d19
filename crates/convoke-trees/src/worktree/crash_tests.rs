//! Every operation is stopped before every one of its steps and then done again. Whatever the step, no byte
//! of the agent's work is lost and the person's checkout is what it was.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::disk;
use super::{Finished, WorktreeError, Worktrees};
use convoke_sandbox::{Sight, Unseen};

use crate::keeper::Keeper;
use crate::places::HostPlaces;
use crate::stops::Steps;

/// Every file below a directory with its content, links and the bit that lets it run.
type Files = BTreeMap<PathBuf, (Vec<u8>, bool)>;

struct Bed {
    _dir: tempfile::TempDir,
    top: PathBuf,
    places: HostPlaces,
}

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let top = root.join("repo");
        let state = root.join("state");
        fs::create_dir(&top).unwrap();
        let sight = Sight::LikeCommands(Unseen::default());
        let bed = Self { _dir: dir, top, places: HostPlaces { path, state, sight } };
        bed.git(&["init", "-q", "-b", "main"]);
        for (name, text) in
            [("kept", "1\n"), ("changed", "a\nb\nc\nd\ne\nf\ng\n"), ("deleted", "x\n"), ("dir/deep", "y\n")]
        {
            fs::create_dir_all(bed.top.join(name).parent().unwrap()).unwrap();
            fs::write(bed.top.join(name), text).unwrap();
        }
        fs::write(bed.top.join(".gitignore"), "*.o\n").unwrap();
        bed.git(&["add", "."]);
        bed.git(&["-c", "user.name=p", "-c", "user.email=p@p", "commit", "-qm", "first"]);
        // The person has changes of every kind of their own.
        fs::write(bed.top.join("kept"), "staged\n").unwrap();
        bed.git(&["add", "kept"]);
        fs::write(bed.top.join("kept"), "staged and more\n").unwrap();
        fs::write(bed.top.join("untracked"), "mine\n").unwrap();
        bed
    }

    fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(args)
            .current_dir(&self.top)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Everything that is the person's: files, index, HEAD, logs, and refs but ours.
    fn person(&self) -> (Files, Vec<u8>, String, Files) {
        let refs = self.git(&["for-each-ref"]);
        let refs = refs
            .lines()
            .filter(|line| !line.contains("refs/convoke/") && !line.contains("refs/heads/convoke/"));
        let refs = format!(
            "{}{}",
            refs.collect::<String>(),
            fs::read_to_string(self.top.join(".git/HEAD")).unwrap()
        );
        (
            files(&self.top),
            fs::read(self.top.join(".git/index")).unwrap(),
            refs,
            files(&self.top.join(".git/logs")),
        )
    }

    async fn open(&self, steps: Steps) -> Worktrees {
        let mut worktrees = Worktrees::open(self.places.clone(), &self.top).await.unwrap();
        worktrees.steps = steps;
        worktrees
    }

    async fn calm(&self) -> Worktrees {
        self.open(Steps::default()).await
    }

    /// What a commit holds.
    fn stored(&self, commit: &str) -> Files {
        let out = tempfile::tempdir().unwrap();
        let index = out.path().join("index");
        let top = out.path().join("top");
        fs::create_dir(&top).unwrap();
        let run = |args: &[&str]| {
            let git_dir = self.top.join(".git");
            let mut git = Command::new("git");
            git.arg("--git-dir").arg(git_dir).arg("--work-tree").arg(&top).args(args).current_dir(&top);
            assert!(git.env("GIT_INDEX_FILE", &index).status().unwrap().success());
        };
        run(&["read-tree", "--reset", "-u", commit]);
        files(&top)
    }
}

fn files(top: &Path) -> Files {
    let mut found = Files::new();
    let mut open = vec![top.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().map(Result::unwrap) {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            if entry.file_name() == ".git" {
                continue;
            }
            if kind.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(top).unwrap().to_owned();
            let content = if kind.is_symlink() {
                (fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(), false)
            } else {
                (fs::read(&path).unwrap(), entry.metadata().unwrap().permissions().mode() & 0o100 != 0)
            };
            found.insert(name, content);
        }
    }
    found
}

/// What an agent does: changes, adds, deletes, links, makes something that runs.
fn work(top: &Path) -> Files {
    fs::write(top.join("changed"), "A\nb\nc\nd\ne\nf\ng\n").unwrap();
    fs::remove_file(top.join("deleted")).unwrap();
    fs::create_dir_all(top.join("new/dir")).unwrap();
    fs::write(top.join("new/dir/binary"), [0, 159, 13, 10, 255]).unwrap();
    fs::write(top.join("runs"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(top.join("runs"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("nowhere", top.join("link")).unwrap();
    files(top)
}

const RUN: &str = "wf_1";

#[tokio::test]
async fn create_stopped_at_every_step_is_found_again_and_leaves_the_checkout_alone() {
    let bed = Bed::new();
    let person = bed.person();
    let wanted = files(&bed.top);
    let mut steps = 0;
    loop {
        let agent = format!("a_{steps}");
        let ended =
            Steps::stopped_at(steps, async |steps| bed.open(steps).await.create(RUN, &agent).await.unwrap())
                .await;
        assert_eq!(bed.person(), person, "step {steps}");
        let made = bed.calm().await.create(RUN, &agent).await.unwrap();
        assert_eq!(files(&made.top), wanted, "step {steps}");
        assert_eq!(bed.person(), person, "step {steps}");
        if let Some(first) = ended {
            assert_eq!(first.base, made.base);
            break;
        }
        steps += 1;
    }
    assert!(steps > 10, "only {steps} steps");
    println!("create: {steps} steps");
}

#[tokio::test]
async fn finish_stopped_at_every_step_loses_no_byte_of_the_work() {
    let bed = Bed::new();
    let person = bed.person();
    let mut steps = 0;
    loop {
        let agent = format!("a_{steps}");
        let calm = bed.calm().await;
        let made = calm.create(RUN, &agent).await.unwrap();
        let done = work(&made.top);
        let ended =
            Steps::stopped_at(steps, async |steps| bed.open(steps).await.finish(RUN, &agent).await.unwrap())
                .await;
        assert_eq!(bed.person(), person, "step {steps}");
        if made.top.exists() {
            assert_eq!(files(&made.top), done, "step {steps}: the directory is there but not whole");
        } else {
            assert_eq!(bed.stored(&format!("refs/convoke/{RUN}/{agent}/work")), done, "step {steps}");
        }
        // A removal that was under way can have taken anything already.
        let half = calm.site(RUN, &agent).unwrap().removing.join("kept");
        if half.exists() {
            fs::remove_file(half).unwrap();
        }
        let again = calm.finish(RUN, &agent).await.unwrap();
        let Finished::Kept { branch: Some(branch), commit, path: None, .. } = &again else {
            panic!("{again:?}")
        };
        assert_eq!(bed.stored(branch), done, "step {steps}");
        assert_eq!(bed.stored(commit), done, "step {steps}");
        assert!(!made.top.exists() && !disk::exists(&calm.site(RUN, &agent).unwrap().admin).unwrap());
        assert_eq!(bed.person(), person, "step {steps}");
        if let Some(first) = ended {
            assert_eq!(first, again);
            break;
        }
        steps += 1;
    }
    assert!(steps > 10, "only {steps} steps");
    println!("finish: {steps} steps");
}

#[tokio::test]
async fn a_created_worktree_whose_finish_was_stopped_comes_back_with_its_work() {
    let bed = Bed::new();
    for steps in (0..).step_by(2) {
        let agent = format!("a_{steps}");
        let calm = bed.calm().await;
        let done = work(&calm.create(RUN, &agent).await.unwrap().top);
        let ended =
            Steps::stopped_at(steps, async |steps| bed.open(steps).await.finish(RUN, &agent).await.unwrap())
                .await;
        let back = calm.create(RUN, &agent).await.unwrap();
        assert_eq!(files(&back.top), done, "step {steps}");
        if ended.is_some() {
            break;
        }
    }
}

#[tokio::test]
async fn finish_of_an_unchanged_worktree_stopped_at_every_step_leaves_nothing_in_the_end() {
    let bed = Bed::new();
    let person = bed.person();
    let refs = bed.git(&["for-each-ref"]);
    for steps in 0.. {
        let calm = bed.calm().await;
        calm.create(RUN, "a_1").await.unwrap();
        let ended =
            Steps::stopped_at(steps, async |steps| bed.open(steps).await.finish(RUN, "a_1").await.unwrap())
                .await;
        assert_eq!(calm.finish(RUN, "a_1").await.unwrap(), Finished::Removed, "step {steps}");
        assert_eq!(bed.git(&["for-each-ref"]), refs, "step {steps}");
        assert!(!bed.places.state.join("worktrees").join(RUN).exists(), "step {steps}");
        assert_eq!(bed.person(), person, "step {steps}");
        if ended.is_some() {
            break;
        }
    }
}

#[tokio::test]
async fn drop_stopped_at_every_step_can_be_done_again() {
    let bed = Bed::new();
    let person = bed.person();
    let refs = bed.git(&["for-each-ref"]);
    for steps in 0.. {
        let calm = bed.calm().await;
        let made = calm.create(RUN, "a_1").await.unwrap();
        work(&made.top);
        fs::write(made.top.join("built.o"), "ignored").unwrap();
        calm.finish(RUN, "a_1").await.unwrap();
        let ended = Steps::stopped_at(steps, async |steps| {
            bed.open(steps).await.drop(RUN, "a_1", true).await.unwrap()
        })
        .await;
        assert_eq!(bed.person(), person, "step {steps}");
        if ended.is_none() {
            calm.drop(RUN, "a_1", true).await.unwrap();
        }
        assert_eq!(bed.git(&["for-each-ref"]), refs, "step {steps}");
        assert!(!made.top.exists(), "step {steps}");
        if ended.is_some() {
            break;
        }
    }
}

#[tokio::test]
async fn apply_stopped_at_every_step_goes_on_where_it_stopped() {
    let bed = Bed::new();
    let before = files(&bed.top);
    let index = fs::read(bed.top.join(".git/index")).unwrap();
    let person_edit = "a\nb\nc\nd\ne\nf\nperson\n";
    let mut steps = 0;
    loop {
        let agent = format!("a_{steps}");
        let calm = bed.calm().await;
        let made = calm.create(RUN, &agent).await.unwrap();
        let mut wanted = work(&made.top);
        wanted.get_mut(Path::new("changed")).unwrap().0 = b"A\nb\nc\nd\ne\nf\nperson\n".to_vec();
        // The person goes on in the same file meanwhile, so that one file is merged.
        fs::write(bed.top.join("changed"), person_edit).unwrap();
        let ended =
            Steps::stopped_at(steps, async |steps| bed.open(steps).await.apply(RUN, &agent).await.unwrap())
                .await;
        let again = calm.apply(RUN, &agent).await.unwrap();
        assert_eq!(files(&bed.top), wanted, "step {steps}");
        assert_eq!(fs::read(bed.top.join(".git/index")).unwrap(), index, "step {steps}");
        if let Some(first) = ended {
            assert_eq!(first.files, ["changed", "deleted", "link", "new/dir/binary", "runs"]);
            assert_eq!(again.files, Vec::<String>::new());
            break;
        }
        for name in files(&bed.top).into_keys() {
            fs::remove_file(bed.top.join(name)).unwrap();
        }
        fs::remove_dir_all(bed.top.join("new")).unwrap();
        for (name, (text, _)) in &before {
            fs::create_dir_all(bed.top.join(name).parent().unwrap()).unwrap();
            fs::write(bed.top.join(name), text).unwrap();
        }
        steps += 1;
    }
    assert!(steps > 10, "only {steps} steps");
    println!("apply: {steps} steps");
}

#[tokio::test]
async fn an_apply_that_finds_a_file_changed_half_way_says_what_is_done_and_goes_on_when_it_is_put_back() {
    let bed = Bed::new();
    let calm = bed.calm().await;
    let made = calm.create(RUN, "a_1").await.unwrap();
    let wanted = work(&made.top);
    let removed = bed.top.join("deleted");
    for steps in 0.. {
        let ended =
            Steps::stopped_at(steps, async |steps| bed.open(steps).await.apply(RUN, "a_1").await).await;
        assert!(ended.is_none(), "the apply ended before it was seen half done");
        if !removed.exists() {
            break;
        }
    }
    let before = fs::read(bed.top.join("changed")).unwrap();
    fs::write(bed.top.join("changed"), "by the person, just now\n").unwrap();
    let stopped = calm.apply(RUN, "a_1").await;
    let Err(WorktreeError::HalfApplied { path, done, left }) = stopped else { panic!("{stopped:?}") };
    assert_eq!((path.as_str(), done), ("changed", vec!["deleted".to_owned()]));
    assert_eq!(left, ["changed", "link", "new/dir/binary", "runs"]);
    assert_eq!(fs::read_to_string(bed.top.join("changed")).unwrap(), "by the person, just now\n");
    fs::write(bed.top.join("changed"), before).unwrap();
    calm.apply(RUN, "a_1").await.unwrap();
    assert_eq!(files(&bed.top), wanted);
}

#[tokio::test]
async fn a_recorded_apply_stopped_at_every_step_is_taken_back_whole_and_can_be_done_again() {
    let bed = Bed::new();
    let before = files(&bed.top);
    let keeper = async || Keeper::open(&bed.places, &bed.top, RUN).await.unwrap();
    for steps in 0.. {
        let agent = format!("a_{steps}");
        let calm = bed.calm().await;
        let wanted = work(&calm.create(RUN, &agent).await.unwrap().top);
        let ended = Steps::stopped_at(steps, async |steps| {
            let worktrees = bed.open(steps).await;
            let keeper = keeper().await;
            keeper.take_over(&agent, "", worktrees.apply(RUN, &agent)).await.unwrap().unwrap()
        });
        let ended = ended.await;
        let is_under_way = calm.applied(RUN).await.unwrap().contains(&agent);
        assert!(is_under_way || files(&bed.top) == before, "step {steps}");
        calm.unapply(RUN, &agent).await.unwrap();
        let undone = keeper().await.undo(false).await.unwrap();
        assert_eq!(undone.kept, [], "step {steps}");
        assert_eq!(files(&bed.top), before, "step {steps}");
        keeper().await.take_over(&agent, "", calm.apply(RUN, &agent)).await.unwrap().unwrap();
        assert_eq!(files(&bed.top), wanted, "step {steps}");
        calm.unapply(RUN, &agent).await.unwrap();
        keeper().await.undo(false).await.unwrap();
        assert_eq!(files(&bed.top), before, "step {steps}");
        if ended.is_some() {
            assert!(steps > 10, "only {steps} steps");
            break;
        }
    }
}
