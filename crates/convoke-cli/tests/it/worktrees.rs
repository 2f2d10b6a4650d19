//! Agents in worktrees of their own: listed, shown, taken over, dropped; and a lead that works in one.

use std::path::Path;

use convoke_sim::{Brain, Context, Reply, Script, Scripted, SimConfig, calls, calls_many, says};
use serde_json::{Value, json};

use crate::repo::{git, read, repository, standing, write};
use crate::stage::Stage;
use crate::team::role;
use crate::undo::{run_id, until};

fn bash(command: &str) -> Reply {
    calls("bash", json!({"command": command}))
}

/// A lead with these replies, and tasks that run what they are told as a command.
struct TaskBrain(Vec<Reply>);

impl Brain for TaskBrain {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let first = request["messages"][0]["content"][0]["text"].as_str().unwrap_or_default();
        let replies = match role(request) {
            "lead" => self.0.clone(),
            _ => vec![bash(first), says("Done.")],
        };
        Script::new().conversation("*", replies).reply(request, context)
    }
}

/// Two tasks side by side, each in a worktree: one edits the first line, the other the last.
async fn two_tasks() -> (Stage, std::path::PathBuf) {
    let task = |command: &str| ("task", json!({"prompt": command, "isolation": "worktree"}));
    let first = task("sed -i '1s/.*/first by a task/' a.txt; echo one > one.txt");
    let last = task("sed -i '9s/.*/last by a task/' a.txt; echo two > two.txt");
    let stage =
        Stage::with(SimConfig::new(TaskBrain(vec![calls_many([first, last]), says("Both are done.")]))).await;
    let dir = repository(&stage, &[("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")]);
    (stage, dir)
}

async fn list(stage: &Stage, run: &str) -> Vec<Value> {
    let data = stage.run(&["--output", "json", "worktrees", "list", run]).await.exits(0).json();
    data["worktrees"].as_array().unwrap().clone()
}

/// The agent whose worktree has this file.
fn agent_with(trees: &[Value], file: &str) -> String {
    let has = |tree: &&Value| tree["files"].as_array().unwrap().iter().any(|name| name == file);
    trees.iter().find(has).unwrap_or_else(|| panic!("{file}: {trees:#?}"))["agent"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn two_tasks_side_by_side_are_listed_shown_and_taken_over_one_after_the_other() {
    let (stage, dir) = two_tasks().await;
    let before = standing(&dir);
    let seen = stage.run(&["do", "both"]).await.exits(0);
    assert_eq!(standing(&dir), before, "the checkout is as it was");
    let run = run_id(&seen);
    assert!(
        seen.stderr.contains("worktrees: 2")
            && seen.stderr.contains(&format!("convoke worktrees apply {run} AGENT")),
        "{}",
        seen.stderr
    );
    let trees = list(&stage, &run).await;
    assert_eq!(trees.len(), 2, "{trees:#?}");
    assert!(
        trees
            .iter()
            .all(|tree| tree["state"] == "stored" && tree["run"] == *run && tree["snapshot"] == false),
        "{trees:#?}"
    );
    let one = agent_with(&trees, "one.txt");
    let two = agent_with(&trees, "two.txt");
    for width in ["40", "80", "120"] {
        let mut command = stage.command(&["worktrees", "list"]);
        command.env("COLUMNS", width);
        let shown = crate::stage::to_its_end(command).await.exits(0).stdout;
        let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(
            longest <= width.parse::<usize>().unwrap()
                && shown.contains(&one[..10])
                && shown.contains("stored"),
            "{shown}"
        );
    }
    let patch = stage.run(&["worktrees", "diff", &run, &one]).await.exits(0).stdout;
    assert!(patch.contains("+first by a task") && !patch.contains("last by a task"), "{patch}");
    // Any unique beginning names an agent.
    let applied = stage.run(&["worktrees", "apply", &run[..8], &one[..12]]).await.exits(0);
    assert_eq!(applied.stdout, "applied: a.txt\napplied: one.txt\n");
    stage.run(&["worktrees", "apply", &run, &two]).await.exits(0);
    assert_eq!(
        read(&dir, "a.txt"),
        "first by a task\n2\n3\n4\n5\n6\n7\n8\nlast by a task\n",
        "both changes are there"
    );
    let trees = list(&stage, &run).await;
    assert!(trees.iter().all(|tree| tree["applied"] == true), "{trees:#?}");
    for agent in [&one, &two] {
        stage.run(&["worktrees", "drop", &run, agent]).await.exits(0);
    }
    assert_eq!(list(&stage, &run).await, Vec::<Value>::new());
    assert_eq!(git(&dir, &["branch", "--list", "convoke/*"]), "");
    let none = stage.run(&["worktrees", "diff", &run, &one]).await.exits(2);
    assert!(none.stderr.contains("has no worktree in"), "{}", none.stderr);
}

#[tokio::test]
async fn a_conflict_is_listed_and_nothing_is_written() {
    let (stage, dir) = two_tasks().await;
    let run = run_id(&stage.run(&["do", "both"]).await.exits(0));
    let trees = list(&stage, &run).await;
    let one = agent_with(&trees, "one.txt");
    let two = agent_with(&trees, "two.txt");
    write(&dir, "a.txt", "mine\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let before = standing(&dir);
    let refused = stage.run(&["worktrees", "apply", &run, &one]).await.exits(1);
    assert!(refused.stdout.starts_with("conflict: a.txt ("), "{}", refused.stdout);
    assert!(refused.stderr.contains("1 conflict: nothing was written"), "{}", refused.stderr);
    let data = stage.run(&["--output", "json", "worktrees", "apply", &run, &one]).await.exits(1).json();
    assert_eq!((&data["conflicts"][0]["path"], &data["applied"]), (&json!("a.txt"), &json!([])));
    assert_eq!(standing(&dir), before, "nothing was written");
    stage.run(&["worktrees", "apply", &run, &two]).await.exits(0);
    assert_eq!(read(&dir, "a.txt"), "mine\n2\n3\n4\n5\n6\n7\n8\nlast by a task\n");

    // Pruning keeps what was not taken over and forgets the rest; what is kept is found by its own name.
    let pruned = stage.run(&["runs", "prune", &run, "--yes"]).await.exits(0);
    assert!(
        pruned.stderr.contains(&format!("{one} stays: it has work that was not applied")),
        "{}",
        pruned.stderr
    );
    assert!(!pruned.stderr.contains(&two), "{}", pruned.stderr);
    let all = stage.run(&["--output", "json", "worktrees", "list"]).await.exits(0).json();
    assert_eq!((all["worktrees"].as_array().unwrap().len(), &all["worktrees"][0]["agent"]), (1, &json!(one)));
    let lead = git(&dir, &["for-each-ref", "--format=%(refname)", "refs/convoke/"]);
    let lead = lead.lines().next().unwrap().split('/').nth(2).unwrap();
    let kept = stage.run(&["worktrees", "drop", lead, &one]).await.exits(1);
    assert!(
        kept.stderr.contains("has not been applied") && kept.stderr.contains("--force"),
        "{}",
        kept.stderr
    );
    let dropped = stage.run(&["worktrees", "drop", lead, &one, "--force"]).await.exits(0);
    assert!(dropped.stderr.contains("git branch NAME "), "{}", dropped.stderr);
    assert_eq!(git(&dir, &["for-each-ref", "refs/convoke/", "refs/heads/convoke/"]), "");
}

#[tokio::test]
async fn what_was_applied_is_shown_and_taken_back_and_can_be_applied_again() {
    let (stage, dir) = two_tasks().await;
    write(&dir, "mine.txt", "not committed\n");
    let before = standing(&dir);
    let run = run_id(&stage.run(&["do", "both"]).await.exits(0));
    let trees = list(&stage, &run).await;
    let one = agent_with(&trees, "one.txt");
    let two = agent_with(&trees, "two.txt");
    let none = stage.run(&["runs", "undo", &run]).await.exits(1);
    assert!(none.stderr.contains("nothing was kept"), "{}", none.stderr);
    let applied = stage.run(&["--output", "json", "worktrees", "apply", &run, &one]).await.exits(0).json();
    assert_eq!(
        (&applied["undo"], &applied["not_taken_back"]),
        (&json!(format!("convoke sessions undo {run}")), &json!([]))
    );
    write(&dir, "mine.txt", "changed beside it\n");
    stage.run(&["worktrees", "apply", &run, &two]).await.exits(0);
    let names = stage.run(&["runs", "diff", &run, "--name-only"]).await.exits(0).stdout;
    assert_eq!(names, "a.txt\none.txt\ntwo.txt\n", "what both did, and nothing of the person's");
    let report = stage.run(&["--output", "json", "resume", &run]).await.exits(0).json();
    assert_eq!(
        report["changed"][1],
        json!({"path": "one.txt", "how": "added", "agents": [one], "mixed": false})
    );

    // A file that was changed since is left alone, and a dry run changes nothing: not what is applied either.
    write(&dir, "two.txt", "two\nand mine\n");
    stage.run(&["runs", "undo", &run, "--dry-run"]).await.exits(3);
    assert!(list(&stage, &run).await.iter().all(|tree| tree["applied"] == true));
    let undone = stage.run(&["runs", "undo", &run]).await.exits(3);
    assert!(
        undone.stdout.contains("two.txt (it was changed after the run's last change)"),
        "{}",
        undone.stdout
    );
    write(&dir, "two.txt", "two\n");
    assert_eq!(stage.run(&["runs", "undo", &run]).await.exits(0).stdout, "removed: two.txt\n");
    write(&dir, "mine.txt", "not committed\n");
    assert_eq!(standing(&dir), before, "everything is as it was");
    let trees = list(&stage, &run).await;
    assert!(trees.iter().all(|tree| tree["applied"] == false && tree["state"] == "stored"), "{trees:#?}");
    let kept = stage.run(&["worktrees", "drop", &run, &one]).await.exits(1);
    assert!(kept.stderr.contains("has not been applied"), "{}", kept.stderr);
    for agent in [&one, &two] {
        stage.run(&["worktrees", "apply", &run, agent]).await.exits(0);
    }
    assert_eq!(read(&dir, "a.txt"), "first by a task\n2\n3\n4\n5\n6\n7\n8\nlast by a task\n");
    assert_eq!((read(&dir, "one.txt"), read(&dir, "two.txt")), ("one\n".into(), "two\n".into()));
    stage.run(&["runs", "undo", &run]).await.exits(0);
    assert_eq!(standing(&dir), before);
}

#[tokio::test]
async fn an_apply_that_is_killed_can_be_taken_back_or_gone_on_with() {
    let task = json!({"prompt": "for n in $(seq 100 499); do echo $n > f$n; done", "isolation": "worktree"});
    let stage = Stage::with(SimConfig::new(TaskBrain(vec![calls("task", task), says("Done.")]))).await;
    let dir = repository(&stage, &[("a.txt", "first\n")]);
    let before = standing(&dir);
    let run = run_id(&stage.run(&["do", "it"]).await.exits(0));
    let agent = agent_with(&list(&stage, &run).await, "f100");
    let killed = async || {
        let started = stage.start(&["worktrees", "apply", &run, &agent]);
        until(|| dir.join("f120").exists()).await;
        started.signal("KILL");
        started.code().await;
    };
    killed().await;
    stage.run(&["runs", "undo", &run]).await.exits(0);
    assert_eq!(standing(&dir), before, "what was written so far is taken back");
    let trees = list(&stage, &run).await;
    assert_eq!((&trees[0]["applied"], trees[0]["files"].as_array().unwrap().len()), (&json!(false), 400));
    // What the cut off apply had planned is forgotten with it: another one looks at the directory anew.
    write(&dir, "f100", "mine\n");
    let refused = stage.run(&["worktrees", "apply", &run, &agent]).await.exits(1);
    assert!(refused.stdout.starts_with("conflict: f100 ("), "{} {}", refused.stdout, refused.stderr);
    std::fs::remove_file(dir.join("f100")).unwrap();
    killed().await;
    stage.run(&["worktrees", "apply", &run, &agent]).await.exits(0);
    assert!((100..500).all(|n| read(&dir, &format!("f{n}")) == format!("{n}\n")));
    stage.run(&["runs", "undo", &run]).await.exits(0);
    assert_eq!(standing(&dir), before);
}

#[tokio::test]
async fn a_lead_in_a_worktree_leaves_the_checkout_alone_and_its_work_on_a_branch() {
    let replies = [bash("pwd; cat mine.txt; echo edited >> a.txt; echo new > new.txt"), says("Done.")];
    let stage = Stage::with(Script::new().conversation("*", replies)).await;
    let dir = repository(&stage, &[("a.txt", "first\n")]);
    write(&dir, "mine.txt", "not committed\n");
    let before = standing(&dir);
    let seen = stage.run(&["--isolation", "worktree", "--output", "json", "edit", "it"]).await.exits(0);
    assert!(
        seen.stderr
            .contains("works in a worktree of its own, cut from a snapshot of the uncommitted changes"),
        "{}",
        seen.stderr
    );
    assert_eq!(standing(&dir), before);
    let report = seen.json();
    let run = report["run"].as_str().unwrap();
    assert_eq!(Path::new(report["dir"].as_str().unwrap()), dir.canonicalize().unwrap());
    assert_eq!((&report["changed"], &report["undo"]), (&json!([]), &json!(null)));
    assert_eq!(report["worktrees"][0]["files"], json!(["a.txt", "new.txt"]));
    assert_eq!(report["apply"], format!("convoke worktrees apply {run} lead"));
    let note = report["notes"].to_string();
    let branch = git(&dir, &["branch", "--list", "--format=%(refname:short)", "convoke/*"]);
    assert!(
        !branch.trim().is_empty()
            && note.contains(&format!("2 changed files are kept on the branch {}", branch.trim())),
        "{note}"
    );
    assert!(
        std::fs::read_dir(stage.state().join("worktrees"))
            .unwrap()
            .flatten()
            .all(|at| !at.path().join("lead/tree").exists())
    );

    // The session is one of the directory in which it was started.
    assert!(stage.run(&["runs", "list"]).await.exits(0).stdout.contains(&run[..10]));
    let patch = stage.run(&["runs", "diff", run]).await.exits(0).stdout;
    assert!(patch.contains("+edited") && !patch.contains("not committed"), "{patch}");
    let undo = stage.run(&["runs", "undo", run]).await.exits(2);
    assert!(
        undo.stderr.contains("worked in a worktree of its own and changed nothing in"),
        "{}",
        undo.stderr
    );
    let applied = stage.run(&["worktrees", "apply", run, "lead"]).await.exits(0);
    assert!(
        applied.stderr.ends_with(&format!("to take it back: convoke sessions undo {run}\n")),
        "{}",
        applied.stderr
    );
    assert_eq!((read(&dir, "a.txt"), read(&dir, "new.txt")), ("first\nedited\n".into(), "new\n".into()));
    let undone = stage.run(&["runs", "undo", run]).await.exits(0);
    assert_eq!(undone.stdout, "restored: a.txt\nremoved: new.txt\n");
    assert_eq!(standing(&dir), before, "what was applied is taken back");
    let kept = stage.run(&["worktrees", "drop", run, "lead"]).await.exits(1);
    assert!(kept.stderr.contains("has not been applied"), "{}", kept.stderr);
    stage.run(&["worktrees", "apply", run, "lead"]).await.exits(0);
    assert_eq!((read(&dir, "a.txt"), read(&dir, "new.txt")), ("first\nedited\n".into(), "new\n".into()));
    stage.run(&["worktrees", "drop", run, "lead"]).await.exits(0);
    stage.run(&["runs", "prune", run, "--yes"]).await.exits(0);
    assert_eq!(git(&dir, &["for-each-ref", "refs/convoke/", "refs/heads/convoke/"]), "");
    assert!(
        !stage.state().join("trees/leads").exists()
            || std::fs::read_dir(stage.state().join("trees/leads")).unwrap().next().is_none()
    );
}

#[tokio::test]
async fn without_a_repository_or_a_commit_a_worktree_is_refused_and_the_directory_is_not_used_instead() {
    let stage =
        Stage::with(Script::new().conversation("*", [bash("echo new > new.txt"), says("Done.")])).await;
    let refused = stage.run(&["--isolation", "worktree", "edit", "it"]).await.exits(2);
    assert!(
        refused.stderr.contains("no worktree could be made, so nothing was started"),
        "{}",
        refused.stderr
    );
    git(&stage.work(), &["init", "-q"]);
    let refused = stage.run(&["run", "--isolation", "worktree", "edit", "it"]).await.exits(2);
    assert!(refused.stderr.contains("has no commit yet"), "{}", refused.stderr);
    assert_eq!(stage.sim().requests().len(), 0, "nothing was asked");
    assert!(!stage.work().join("new.txt").exists());
    let runs = stage.run(&["runs", "list"]).await.exits(0);
    assert_eq!(runs.stdout, "", "nothing was started");
}

/// A lead in a worktree is killed in a command that has written `half.txt` and sleeps.
pub(crate) async fn killed_half_way(stage: &Stage) {
    let mut started = stage.start(&["--isolation", "worktree", "edit", "it"]);
    started.says("sleep 600").await;
    let trees = stage.state().join("worktrees");
    let half = || {
        let lead = std::fs::read_dir(&trees).into_iter().flatten().flatten().next();
        lead.is_some_and(|at| at.path().join("lead/tree/half.txt").exists())
    };
    until(half).await;
    started.signal("KILL");
    started.code().await;
}

#[tokio::test]
async fn a_lead_in_a_worktree_that_is_killed_goes_on_in_it() {
    let replies = [
        bash("echo one > one.txt"),
        bash("echo half > half.txt; sleep 600"),
        bash("cat one.txt half.txt > both.txt"),
        says("Done."),
    ];
    let stage = Stage::with(Script::new().conversation("*", replies)).await;
    let dir = repository(&stage, &[("a.txt", "first\n")]);
    let before = standing(&dir);
    killed_half_way(&stage).await;
    let resumed = stage.run(&["resume"]).await.exits(0);
    assert!(resumed.stderr.contains("works in a worktree of its own, cut from HEAD"), "{}", resumed.stderr);
    let run = run_id(&resumed);
    assert_eq!(standing(&dir), before);
    let names = stage.run(&["worktrees", "diff", &run, "lead", "--name-only"]).await.exits(0).stdout;
    assert_eq!(names, "both.txt\nhalf.txt\none.txt\n");
    let patch = stage.run(&["runs", "diff", &run]).await.exits(0).stdout;
    assert!(patch.contains("+++ b/both.txt\n@@ -0,0 +1,2 @@\n+one\n+half\n"), "{patch}");
}
