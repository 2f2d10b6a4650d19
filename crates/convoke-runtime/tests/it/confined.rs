//! Agents under their policies: what each role can write, what the file tools see, what a refusal says, and a
//! project's own tests run on a throwaway copy. Real sandboxes and real HTTP.

use std::path::Path;
use std::process::Command;

use convoke_kernel::{Approvals, AskWhen, Decision, Outcome, Rule, Sandbox};
use convoke_runtime::{AskedCall, Asker};
use convoke_sim::{Reply, calls, calls_many, says};
use serde_json::{Value, json};

use crate::support::Rig;
use crate::team::{Team, finding, report, verdicts, workflow};
use crate::workers::{lead_read, requests, rig};

fn bash(command: &str) -> Reply {
    calls("bash", json!({"command": command}))
}

fn edit(input: Value) -> Reply {
    calls("str_replace_based_edit_tool", input)
}

/// Every tool result that an agent of this role has read, all its requests taken together.
fn read_by(rig: &Rig, who: &str) -> String {
    let bodies = requests(rig, who);
    let blocks = bodies.iter().flat_map(|body| body["messages"].as_array().unwrap());
    let blocks = blocks.flat_map(|message| message["content"].as_array().unwrap());
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results
        .map(|block| block["content"].as_str().unwrap_or_default().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(dir)
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn commit_all(rig: &Rig) {
    for args in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "first"]] {
        git(rig.work.path(), args);
    }
}

#[tokio::test]
async fn d4_10_w76_the_lead_writes_in_the_directory_and_workers_and_verifiers_only_in_their_copies() {
    let look = |who: &'static str| {
        bash(&format!("cat seen; echo {who} > seen; echo {who} > of-{who}; cat seen; ls"))
    };
    let team = Team::new([bash("echo lead > seen"), workflow(&["look"]), says("done")])
        .workers(move |_| vec![look("worker"), report("r", vec![finding("f", "low")])])
        .verifiers(move |findings| vec![look("verifier"), verdicts(findings, "confirmed")]);
    let rig = rig(team).await.confined(Sandbox::Workspace);
    let (_, ended) = rig.ask("go").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
    assert_eq!(rig.read("seen"), "lead\n", "nobody but the lead changed the tree");
    assert!(!rig.work.path().join("of-worker").exists() && !rig.work.path().join("of-verifier").exists());
    let worker = read_by(&rig, "worker");
    let verifier = read_by(&rig, "verifier");
    assert!(
        worker.contains("lead\nworker\n") && worker.contains("of-worker"),
        "it sees what it wrote: {worker}"
    );
    assert!(
        verifier.contains("lead\nverifier\n") && !verifier.contains("of-worker"),
        "and not others': {verifier}"
    );
    let left = std::fs::read_dir(rig.scratch.path().join("private")).unwrap().count();
    assert_eq!(left, 0, "no private directory is left");
}

#[tokio::test]
async fn a_read_only_session_leaves_the_tree_as_it_is_whoever_writes() {
    let task = calls("task", json!({"prompt": "p"}));
    let created = edit(json!({"command": "create", "path": "b", "file_text": "x"}));
    let team = Team::new([bash("echo x > a; cat a"), task, created, says("done")])
        .tasks([bash("echo y > c"), says("ok")]);
    let rig = rig(team).await.confined(Sandbox::ReadOnly);
    rig.ask("go").await;
    assert_eq!(std::fs::read_dir(rig.work.path()).unwrap().count(), 0);
    assert!(lead_read(&rig).iter().all(|(_, is_error)| !is_error), "{:?}", lead_read(&rig));
}

#[tokio::test]
async fn what_cannot_be_held_is_refused_and_not_run() {
    let view = json!({"command": "view", "path": "."});
    let team = Team::new([bash("echo x > a"), edit(view), says("done")]);
    let mut rig = rig(team).await.confined(Sandbox::Workspace);
    rig.set = None;
    rig.ask("go").await;
    let results = lead_read(&rig);
    assert!(
        results.iter().all(|(text, is_error)| *is_error && text.contains("have to be confined")),
        "{results:?}"
    );
    assert!(!rig.work.path().join("a").exists());
}

#[tokio::test]
async fn git_metadata_is_protected_from_commands_and_file_tools_alike() {
    let hook = json!({"command": "create", "path": ".git/hooks/pre-commit", "file_text": "#!/bin/sh\n"});
    let team = Team::new([
        bash("echo hi > .git/config"),
        bash("mv .git elsewhere; rm -rf .git/HEAD"),
        edit(hook),
        bash("git status --short; git log --format=%s"),
        says("done"),
    ]);
    let rig = rig(team).await.confined(Sandbox::Workspace);
    std::fs::write(rig.work.path().join("a"), "a").unwrap();
    commit_all(&rig);
    let before = std::fs::read(rig.work.path().join(".git/config")).unwrap();
    rig.ask("go").await;
    assert_eq!(std::fs::read(rig.work.path().join(".git/config")).unwrap(), before);
    assert!(!rig.work.path().join(".git/hooks/pre-commit").exists());
    let results = lead_read(&rig);
    assert!(results[0].1 && results[1].1 && results[2].1, "{results:?}");
    assert!(!results[3].1 && results[3].0.contains("first"), "git itself works: {results:?}");
    assert_eq!(git(rig.work.path(), &["status", "--short"]), "");
}

#[tokio::test]
async fn a_denied_command_comes_back_with_the_policy_and_who_can_widen_it() {
    let team = Team::new([bash("touch /usr/x"), bash("grep nothing /etc/passwd"), says("done")]);
    let rig = rig(team).await.confined(Sandbox::Workspace);
    rig.ask("go").await;
    let results = lead_read(&rig);
    let denied = &results[0].0;
    let unrelated = &results[1].0;
    assert!(
        denied.contains("Read-only file system") && denied.contains("may come from the sandbox"),
        "{denied}"
    );
    assert!(denied.contains("--sandbox"), "{denied}");
    assert!(!unrelated.contains("sandbox"), "{unrelated}");
}

#[tokio::test]
async fn the_file_tools_see_and_change_what_commands_see_in_every_policy() {
    for sandbox in [Sandbox::Off, Sandbox::Workspace, Sandbox::ReadOnly] {
        let team = Team::new([
            bash("printf 'one\\ntwo\\n' > a.txt"),
            calls_many([
                ("str_replace_based_edit_tool", json!({"command": "view", "path": "a.txt"})),
                ("glob", json!({"pattern": "*.txt"})),
                ("grep", json!({"pattern": "^t.o"})),
            ]),
            edit(json!({"command": "str_replace", "path": "a.txt", "old_str": "two", "new_str": "three"})),
            edit(json!({"command": "insert", "path": "a.txt", "insert_line": 0, "insert_text": "zero\n"})),
            bash("cat a.txt"),
            edit(json!({"command": "view", "path": "/etc/passwd"})),
            says("done"),
        ]);
        let rig = rig(team).await.confined(sandbox);
        rig.ask("go").await;
        let results = lead_read(&rig);
        let text = |at: usize| results[at].0.as_str();
        assert!(
            text(1).contains("one") && text(2).contains("a.txt") && text(3).contains("two"),
            "{results:?}"
        );
        assert_eq!(text(6), "zero\none\nthree", "{sandbox:?}");
        assert!(results[7].1 && !text(7).contains("root:"), "outside is outside: {results:?}");
        assert_eq!(rig.work.path().join("a.txt").exists(), sandbox != Sandbox::ReadOnly);
    }
}

fn write(rig: &Rig, name: &str, text: &str) {
    let path = rig.work.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A verifier runs these commands on a copy of what `lay` lays down; what it reads, and that the tree stayed
/// as it was.
async fn tested_by_a_verifier(lay: impl Fn(&Rig), command: &'static str) -> String {
    let team = Team::new([workflow(&["look"]), says("done")])
        .workers(|_| vec![bash("ls"), report("r", vec![finding("the tests pass", "low")])])
        .verifiers(move |findings| vec![bash(command), verdicts(findings, "confirmed")]);
    let mut rig = rig(team).await.confined(Sandbox::Workspace);
    rig.limits.bash_timeout_ms = 100_000;
    let home = std::env::var_os("HOME").map_or("/root".to_owned(), |home| home.into_string().unwrap());
    let toolchain = |name: &str, default: &str| {
        (
            name.to_owned(),
            std::env::var_os(name).map_or(format!("{home}/{default}"), |path| path.into_string().unwrap()),
        )
    };
    let toolchains = [toolchain("CARGO_HOME", ".cargo"), toolchain("RUSTUP_HOME", ".rustup")];
    rig.caches = toolchains.iter().map(|(_, path)| path.into()).collect();
    rig.env.extend(toolchains);
    lay(&rig);
    let listing = || {
        let output =
            Command::new("find").current_dir(rig.work.path()).args([".", "-type", "f"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let before = listing();
    rig.ask("go").await;
    assert_eq!(listing(), before, "the build left nothing in the tree");
    read_by(&rig, "verifier")
}

#[tokio::test]
async fn a_verifier_runs_a_cargo_projects_own_tests_in_its_copy_offline() {
    let lay = |rig: &Rig| {
        write(
            rig,
            "Cargo.toml",
            "[package]\nname = \"sums\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
        );
        let code = "pub fn add(a: u32, b: u32) -> u32 { a + b }\n#[test]\nfn it_adds() \
            { assert_eq!(add(2, 2), 4); }\n";
        write(rig, "src/lib.rs", code);
    };
    let read = tested_by_a_verifier(lay, "cargo test --offline 2>&1").await;
    assert!(read.contains("test it_adds ... ok") && read.contains("1 passed"), "{read}");
}

#[tokio::test]
async fn a_verifier_runs_a_python_projects_own_tests_in_its_copy_offline() {
    let lay = |rig: &Rig| {
        write(rig, "sums/__init__.py", "def add(a, b):\n    return a + b\n");
        let test = "import unittest\nfrom sums import add\n\nclass Adds(unittest.TestCase):\n    def \
            test_adds(self):\n        self.assertEqual(add(2, 2), 4)\n";
        write(rig, "tests/test_sums.py", test);
        write(rig, "tests/__init__.py", "");
    };
    let read = tested_by_a_verifier(lay, "python3 -m unittest -v tests.test_sums 2>&1").await;
    assert!(read.contains("test_adds") && read.contains("OK"), "{read}");
}

#[tokio::test]
async fn w74_parallel_writers_get_worktrees_and_the_checkout_is_not_touched() {
    let apart = |prompt: &str| ("task", json!({"prompt": prompt, "isolation": "worktree"}));
    let team = Team::new([calls_many([apart("one"), apart("two")]), says("done")])
        .tasks([bash("echo changed > a; echo new > b; git status --short"), says("made it")]);
    let mut rig = rig(team).await.confined(Sandbox::Workspace);
    rig.keeps = true;
    write(&rig, "a", "a\n");
    commit_all(&rig);
    write(&rig, "dirty", "the person's own\n");
    let (lead, _) = rig.ask("go").await;
    assert_eq!(git(rig.work.path(), &["status", "--short"]), "?? dirty\n");
    let results = lead_read(&rig);
    for (text, is_error) in &results {
        assert!(!is_error && text.contains("a snapshot of the uncommitted changes"), "{text}");
        assert!(text.contains("2 changed files are kept on the branch convoke/"), "{text}");
    }
    let branches =
        git(rig.work.path(), &["for-each-ref", "--format=%(refname)", &format!("refs/heads/convoke/{lead}")]);
    let branches: Vec<&str> = branches.lines().collect();
    assert_eq!(branches.len(), 2);
    for branch in branches {
        let show = |name: &str| git(rig.work.path(), &["show", &format!("{branch}:{name}")]);
        assert_eq!([show("a"), show("b"), show("dirty")], ["changed\n", "new\n", "the person's own\n"]);
    }
    let read = read_by(&rig, "task");
    assert!(read.contains(" M a\n?? b"), "each sees its own changes and nobody else's: {read}");
}

#[tokio::test]
async fn without_a_repository_a_worktree_is_refused_and_nothing_runs_in_the_checkout_instead() {
    let apart = calls("task", json!({"prompt": "one", "isolation": "worktree"}));
    let team = Team::new([apart, says("done")]).tasks([bash("echo x > a"), says("made it")]);
    let mut rig = rig(team).await.confined(Sandbox::Workspace);
    rig.keeps = true;
    rig.ask("go").await;
    let (text, is_error) = lead_read(&rig).remove(0);
    assert!(is_error && text.contains("no worktree could be made") && text.contains("git init"), "{text}");
    assert!(requests(&rig, "task").is_empty() && !rig.work.path().join("a").exists());
}

#[tokio::test]
async fn a_cited_command_nobody_recorded_is_run_again_on_a_copy() {
    let cites = |command: &str| {
        let mut finding = finding(command, "low");
        finding["citations"] = json!([{"command": command, "quote": "forty-two"}]);
        finding
    };
    let team = Team::new([workflow(&["look"]), says("done")]).workers(move |_| {
        let findings = vec![cites("cat answer; echo x > left"), cites("echo nothing")];
        vec![bash("ls"), report("r", findings)]
    });
    let rig = rig(team).await.confined(Sandbox::Workspace);
    write(&rig, "answer", "forty-two\n");
    rig.ask("go").await;
    let read = lead_read(&rig).remove(0).0;
    assert!(read.contains("[confirmed] [low] cat answer"), "{read}");
    assert!(read.contains("does not hold the quote") && read.contains("[low] echo nothing"), "{read}");
    assert!(!rig.work.path().join("left").exists());
}

#[tokio::test]
async fn a_childs_question_reaches_the_person_with_agent_command_and_reason() {
    let asks = Rule { tool: None, command: Some("rm".into()), path: None, decision: Decision::Ask };
    let team = Team::new([workflow(&["look at it"]), says("done")])
        .workers(|_| vec![bash("rm -f x; echo gone"), report("r", vec![])]);
    let mut rig = rig(team).await.confined(Sandbox::Workspace);
    rig.approvals = Approvals { ask: AskWhen::WhenNeeded, rules: vec![asks], park: false };
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel::<AskedCall>();
    rig.asker = Some(Asker::new(move |question| {
        tell.send(question.call.unwrap()).unwrap();
        async { true }
    }));
    rig.ask("go").await;
    let asked = told.recv().await.unwrap();
    assert_eq!((asked.label.as_str(), asked.wanted.as_str()), ("look at it", "run: rm -f x; echo gone"));
    assert!(asked.why.contains("command = \"rm\""), "{}", asked.why);
    assert!(read_by(&rig, "worker").contains("gone"));
}

fn rule(tool: &str, command: &str, path: &str, decision: Decision) -> Rule {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Rule { tool: some(tool), command: some(command), path: some(path), decision }
}

#[tokio::test]
async fn a_path_that_leads_through_a_link_is_ruled_by_where_it_leads() {
    let create = |path: &str| edit(json!({"command": "create", "path": path, "file_text": "x"}));
    let team = Team::new([
        create("m2/1"),
        create("docs/out/2"),
        create("docs/3"),
        calls("grep", json!({"pattern": "s", "path": "m2"})),
        says("done"),
    ]);
    let mut rig = rig(team).await.confined(Sandbox::Workspace);
    let rules =
        vec![rule("", "", "migrations/**", Decision::Deny), rule("edit", "", "docs/**", Decision::Allow)];
    rig.approvals = Approvals { ask: AskWhen::Always, rules, park: false };
    for dir in ["migrations", "docs", "src"] {
        std::fs::create_dir(rig.work.path().join(dir)).unwrap();
    }
    write(&rig, "migrations/secret", "s\n");
    for (to, at) in [("migrations", "m2"), ("../src", "docs/out")] {
        std::os::unix::fs::symlink(to, rig.work.path().join(at)).unwrap();
    }
    // The asker's yes is to the link, and to nothing behind it.
    rig.asker = Some(Asker::new(|_| async { true }));
    rig.ask("go").await;
    let results = lead_read(&rig);
    assert!(
        results[0].0.contains("m2/1 leads to migrations/1") && results[0].0.contains("forbids"),
        "{results:?}"
    );
    assert!(
        results[1].0.contains("docs/out/2 leads to src/2") && results[1].0.contains("asked"),
        "{results:?}"
    );
    assert!(!results[2].1 && results[3].1, "{results:?}");
    assert!(!rig.work.path().join("migrations/1").exists() && !rig.work.path().join("src/2").exists());
}

#[tokio::test]
async fn what_a_person_forbids_now_counts_in_a_session_that_was_begun_before() {
    let mut rig = rig(Team::new([bash("echo x > a"), says("done")])).await.confined(Sandbox::Workspace);
    rig.forbidden = Approvals { rules: vec![rule("", "echo", "", Decision::Deny)], ..Approvals::default() };
    rig.ask("go").await;
    assert!(lead_read(&rig)[0].0.contains("forbids"), "{:?}", lead_read(&rig));
    assert!(!rig.work.path().join("a").exists());
}

#[tokio::test]
async fn a_refused_command_is_not_run_by_the_check_of_citations_either() {
    let team = Team::new([workflow(&["look"]), says("done")]).workers(|_| {
        let mut cited = finding("it prints forty-two", "low");
        cited["citations"] = json!([{"command": "cat answer", "quote": "forty-two"}]);
        vec![bash("ls"), bash("cat answer"), report("r", vec![cited])]
    });
    let mut rig = rig(team).await.confined(Sandbox::Workspace);
    rig.approvals = Approvals { rules: vec![rule("", "cat", "", Decision::Deny)], ..Approvals::default() };
    write(&rig, "answer", "forty-two\n");
    rig.ask("go").await;
    let read = lead_read(&rig).remove(0).0;
    assert!(read.contains("the agent never ran `cat answer`") && !read.contains("[confirmed]"), "{read}");
}

#[tokio::test]
async fn what_a_background_job_writes_between_and_after_commands_is_the_agents() {
    let late = "(sleep 0.1; echo late > between; while test ! -e f2; do sleep 0.05; done; sleep 0.3; echo \
        late > after; sleep 30) >/dev/null 2>&1 &";
    let wait = "echo run > f2; while test ! -e after; do sleep 0.05; done; echo run > f";
    let mut rig = rig(Team::new([bash(late), bash(wait), says("done")])).await.confined(Sandbox::Workspace);
    rig.keeps = true;
    write(&rig, "f", "f\n");
    commit_all(&rig);
    // The second command comes only when the job has written.
    let hold = rig.sim.hold("go", 1, 1);
    let between = rig.work.path().join("between");
    let written = async {
        hold.entered().await;
        while !between.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        hold.release();
    };
    let ((lead, _), ()) = tokio::join!(rig.ask("go"), written);
    let places = rig.places();
    let keeper = convoke_trees::Keeper::open(&places, rig.work.path(), lead.as_str()).await.unwrap();
    let changed = keeper.changes().await.unwrap();
    let names: Vec<String> =
        changed.iter().map(|file| format!("{} {:?}", file.path.display(), file.agents)).collect();
    let by = |name: &str| format!("{name} [\"{lead}\"]");
    assert_eq!(names, [by("after"), by("between"), by("f"), by("f2")]);
}
