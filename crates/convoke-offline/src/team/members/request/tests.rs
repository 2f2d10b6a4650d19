//! What is heard in the wordings that people use, and what is left to others.

use super::*;

#[track_caller]
fn heard(request: &str) -> TeamRequest {
    read(request, &[]).unwrap_or_else(|| panic!("no team's business: {request}"))
}

fn names(wishes: &TeamRequest) -> Vec<&str> {
    wishes.spawns.iter().map(|one| one.name.as_str()).collect()
}

#[test]
fn tasks_and_teammates_are_heard_in_several_wordings() {
    for request in [
        "Create 3 tasks on the board, then spawn alice and bob. Watch them auto-claim.",
        "create 3 tasks on the board, then spawn alice and bob and watch them claim",
        "Please put three tasks on the board. Then spawn Alice and Bob and let them claim tasks.",
        "Spawn alice and bob. Create three tasks on the board and watch them work.",
        "Add 3 tasks to the board and spawn alice and bob",
    ] {
        let wishes = heard(request);
        assert_eq!((wishes.tasks.len(), names(&wishes)), (3, vec!["alice", "bob"]), "{request}");
        assert_eq!(wishes.unknown, [""; 0], "{request}");
        assert!(
            !wishes.ordered && wishes.spawns.iter().all(|one| one.work.is_none()),
            "{request}: {wishes:?}"
        );
    }
}

#[test]
fn tasks_that_are_named_are_taken_as_they_are() {
    let expected = ["list the files", "count the lines", "find the largest file"];
    for request in [
        "Create tasks: list the files, count the lines, find the largest file. Spawn alice and bob.",
        "Create three tasks: list the files, count the lines and find the largest file, then spawn alice and \
            bob",
        "Create tasks on the board:\n- list the files\n- count the lines\n- find the largest file\nSpawn \
            alice and bob.",
        "Create tasks \"list the files\", \"count the lines\" and \"find the largest file\". Spawn alice and \
            bob",
    ] {
        let wishes = heard(request);
        assert_eq!(wishes.tasks, expected, "{request}");
        assert_eq!(names(&wishes), ["alice", "bob"], "{request}");
    }
    assert_eq!(heard("Create a task to count the lines").tasks, ["count the lines"]);
    assert_eq!(heard("Put a task on the board to count the lines").tasks, ["count the lines"]);
}

#[test]
fn dependencies_are_heard_and_somebody_is_spawned_to_be_watched() {
    let wishes = heard("Create tasks with dependencies. Watch teammates respect the blocked order.");
    assert!(wishes.ordered && wishes.tasks.len() == 3);
    assert_eq!(names(&wishes), ["alice", "bob"]);
    let known = ["carol".to_owned()];
    let again =
        read("Create tasks with dependencies. Watch teammates respect the blocked order.", &known).unwrap();
    assert!(again.spawns.is_empty(), "there is somebody already");
    let chain = heard("Create tasks: list the files -> count the lines -> find TODO comments");
    assert!(chain.ordered && chain.tasks.len() == 3, "{chain:?}");
}

#[test]
fn messages_and_broadcasts_are_heard() {
    let wishes = heard("Spawn alice (coder) and bob (tester). Have alice send bob a message.");
    assert_eq!(wishes.spawns[1].role, "tester");
    let [(to, text)] = wishes.letters.as_slice() else { panic!("{wishes:?}") };
    assert_eq!(to, "alice");
    assert!(text.starts_with("Send bob a message: Hello bob"), "{text}");
    let wishes = heard("Broadcast \"status update: phase 1 complete\" to all teammates");
    assert_eq!(wishes.broadcasts, ["status update: phase 1 complete"]);
    let wishes = heard("Spawn alice and bob, then broadcast: the build is green");
    assert_eq!(
        (names(&wishes), wishes.broadcasts.as_slice()),
        (vec!["alice", "bob"], &["the build is green".to_owned()][..])
    );
    let wishes = heard("Send bob a message saying hello");
    assert_eq!(wishes.letters, [("bob".to_owned(), "hello".to_owned())]);
    let known = ["bob".to_owned()];
    let wishes = read("Ask bob to count the lines", &known).unwrap();
    assert_eq!(wishes.letters, [("bob".to_owned(), "count the lines".to_owned())]);
}

#[test]
fn what_is_only_looked_up_is_heard() {
    for (request, tool) in [
        ("Check the lead inbox for any messages", "read_inbox"),
        ("Check your inbox", "read_inbox"),
        ("List teammates", "list_teammates"),
        ("Show the team", "list_teammates"),
        ("List teammates to see alice's status after shutdown approval", "list_teammates"),
        ("Show the task board", "task_list"),
    ] {
        let wishes = heard(request);
        assert_eq!((wishes.looks.as_slice(), wishes.shutdowns.len()), (&[tool][..], 0), "{request}");
    }
}

#[test]
fn work_from_the_board_shutdown_and_plans_are_heard() {
    let wishes = heard("Spawn a coder teammate and let it find work from the task board itself");
    assert_eq!((names(&wishes), wishes.spawns[0].work.as_deref()), (vec!["coder"], None));
    let wishes = heard("Spawn alice as a coder. Then request her shutdown.");
    assert_eq!((names(&wishes), wishes.shutdowns.as_slice()), (vec!["alice"], &["alice".to_owned()][..]));
    assert_eq!(heard("Request alice's shutdown").shutdowns, ["alice"]);
    let wishes = heard("Spawn bob with a risky refactoring task. Review and reject his plan.");
    assert_eq!((wishes.spawns[0].plan, wishes.verdicts.as_slice()), (true, &[false][..]));
    assert_eq!(wishes.spawns[0].work.as_deref(), Some("a risky refactoring task"));
    assert_eq!(wishes.unknown, [""; 0]);
    let wishes = heard("Spawn charlie, have him submit a plan, then approve it.");
    assert_eq!(
        (names(&wishes), wishes.spawns[0].plan, wishes.verdicts.as_slice()),
        (vec!["charlie"], true, &[true][..])
    );
    let known = ["bob".to_owned()];
    assert_eq!(read("Approve bob's plan", &known).unwrap().verdicts, [true]);
}

#[test]
fn what_is_no_teams_business_is_left_alone() {
    for request in [
        "Review this repository",
        "Hello!",
        "What is 2+2?",
        "Find where teammates are spawned",
        "Create a task queue in src/queue.rs",
        "Add tasks to the README",
        "List the files",
        "Show the largest files",
        "Check for TODO comments",
        "Tell me how many lines there are",
        "Use a workflow to review this repository",
        "run the review workflow on src/",
        "Stop at the first error and report it",
        "Have a look at src/",
        "Check the inbox handling code",
        "Review the plan in docs/plan.md",
        "Send patches upstream",
        "Make a list of all TODO comments",
        "[run wf_abcdefgh has ended]\nThis is told by Convoke.\n| spawn alice",
    ] {
        assert_eq!(read(request, &["bob".to_owned()]), None, "{request}");
    }
}

#[test]
fn what_no_rule_knows_is_kept_to_be_said() {
    let wishes = heard("Spawn alice and bob. Then write a poem about them.");
    assert_eq!(wishes.unknown, ["write a poem about them"]);
}
