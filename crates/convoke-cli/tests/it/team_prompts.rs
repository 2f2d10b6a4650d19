//! The mission's example prompts through the real binary, offline and headless in a small repository: what is
//! told while it goes on, what is answered, and what is on the board and in the roster afterwards. What
//! docs/teams.md shows of them is compared with what is printed now.

mod docs;
mod examples;

use serde_json::Value;

use crate::repo::repository;
use crate::stage::{Seen, Stage};

/// A repository of three files, and the session that was made in it.
struct Room {
    stage: Stage,
}

impl Room {
    fn new() -> Self {
        let stage = Stage::bare();
        let main = "fn main() {\n    // TODO: greet by name\n    println!(\"hi\");\n}\n";
        let add = "def add(a, b):\n    return a + b\n";
        repository(&stage, &[("src/main.rs", main), ("README.md", "# Sample\n"), ("add.py", add)]);
        Self { stage }
    }

    /// A prompt, which has to be done.
    async fn ask(&self, prompt: &str) -> Told {
        Told::of(self.stage.run(&["--offline", prompt]).await.exits(0))
    }

    /// A later prompt to the same session; only what it adds to the answer.
    async fn say(&self, before: &Told, prompt: &str) -> Told {
        let mut told = Told::of(self.stage.run(&["resume", &before.run, "--say", prompt]).await.exits(0));
        if let Some(rest) = told.answer.strip_prefix(before.answer.trim_end()) {
            told.answer = rest.to_owned();
        }
        told
    }

    /// The tasks on the board.
    async fn tasks(&self) -> Vec<Value> {
        let listed = self.stage.run(&["tasks", "list", "--output", "json"]).await.exits(0).json();
        listed["tasks"].as_array().unwrap().clone()
    }

    /// The members beside the lead as `name role state`.
    async fn members(&self) -> Vec<String> {
        let listed = self.stage.run(&["team", "list", "--output", "json"]).await.exits(0).json();
        let text = |member: &Value, name: &str| member[name].as_str().unwrap().to_owned();
        let line = |member: &Value| ["name", "role", "state"].map(|name| text(member, name)).join(" ");
        let members = listed["members"].as_array().unwrap();
        assert_eq!(
            (text(&members[0], "name"), text(&members[0], "state")),
            ("lead".to_owned(), "idle".to_owned())
        );
        assert_eq!(listed["requests"], Value::Array(Vec::new()), "nothing waits for an answer");
        members[1..].iter().map(line).collect()
    }
}

/// What a prompt came to.
struct Told {
    answer: String,
    /// The [team] lines, without their sign.
    team: Vec<String>,
    run: String,
}

impl Told {
    fn of(seen: Seen) -> Self {
        let team =
            seen.stderr.lines().filter_map(|line| line.strip_prefix("[team] ")).map(str::to_owned).collect();
        let run = seen.stderr.trim_end().rsplit(' ').next().unwrap().to_owned();
        assert!(run.starts_with("s_"), "{}", seen.stderr);
        let ends = seen.stdout.matches("(Offline model: fixed rules, no intelligence.)").count();
        assert!(ends > 0 && seen.stdout.trim_end().ends_with("intelligence.)"), "{}", seen.stdout);
        Self { answer: seen.stdout, team, run }
    }

    /// What the answer holds, in this order.
    #[track_caller]
    fn answers(&self, parts: &[&str]) -> &Self {
        let mut rest = self.answer.as_str();
        for part in parts {
            let Some(at) = rest.find(part) else { panic!("no {part:?} (in its place) in\n{}", self.answer) };
            rest = &rest[at + part.len()..];
        }
        self
    }

    /// What is told of the team, in this order, among other things.
    #[track_caller]
    fn tells(&self, lines: &[&str]) -> &Self {
        let mut told = self.team.iter();
        for line in lines {
            assert!(told.any(|other| other == line), "no {line:?} (in its place) in {:#?}", self.team);
        }
        self
    }

    /// How often something is told of the team.
    fn count(&self, part: &str) -> usize {
        self.team.iter().filter(|line| line.contains(part)).count()
    }
}

/// The board after a session in which all of it was done by these: subjects in their order.
#[track_caller]
fn all_done(tasks: &[Value], subjects: &[&str], members: &[&str]) {
    let told: Vec<&str> = tasks.iter().map(|task| task["subject"].as_str().unwrap()).collect();
    assert_eq!(told, subjects);
    for task in tasks {
        assert_eq!((task["state"].as_str(), task["attempts"].as_u64()), (Some("done"), Some(1)), "{task:#}");
        assert!(members.contains(&task["owner"].as_str().unwrap()), "{task:#}");
        assert!(task["result"].as_str().unwrap().starts_with("The"), "{task:#}");
    }
}

const THREE: [&str; 3] = ["List the files here", "Count the lines by language", "Find the largest files"];

#[tokio::test]
async fn b1_b6_c11_c19_three_tasks_are_claimed_by_two_without_being_told() {
    for prompt in [
        "Create 3 tasks on the board, then spawn alice and bob. Watch them auto-claim.",
        "create 3 tasks on the board, then spawn alice and bob and watch them claim",
    ] {
        let room = Room::new();
        let told = room.ask(prompt).await;
        told.tells(&["new task: List the files here", "alice joins (teammate)", "bob joins (teammate)"]);
        for subject in THREE {
            assert_eq!(told.count(&format!("claims \"{subject}\"")), 1, "{:#?}", told.team);
            assert_eq!(told.count(&format!("has done \"{subject}\"")), 1, "{:#?}", told.team);
        }
        let spawned =
            "Spawned alice (teammate) and bob (teammate). They claim tasks by themselves when free.";
        told.answers(&[
            "3 tasks are written on the board:",
            spawned,
            "The tasks (3) are all done. Who did what:",
        ]);
        told.answers(&[
            "There are 3 files here: README.md, add.py, src/main.rs.",
            "3 files with 7 lines",
            "src/main.rs (4 lines)",
        ]);
        assert_eq!(told.answer.matches("Offline model").count(), 1, "{}", told.answer);
        all_done(&room.tasks().await, &THREE, &["alice", "bob"]);
        assert_eq!(room.members().await, ["alice teammate idle", "bob teammate idle"]);
    }
}

#[tokio::test]
async fn c19_tasks_that_the_person_names_are_done_and_told_with_their_results() {
    let room = Room::new();
    let prompt = "Create tasks: list the files, count the lines, find the largest file. Spawn alice and bob.";
    let told = room.ask(prompt).await;
    told.answers(&[
        "“list the files” (t_",
        "“count the lines” (t_",
        "“find the largest file” (t_",
        "src/main.rs (4 lines)",
    ]);
    all_done(
        &room.tasks().await,
        &["list the files", "count the lines", "find the largest file"],
        &["alice", "bob"],
    );
}

#[tokio::test]
async fn c20_tasks_that_wait_for_others_are_claimed_when_those_are_done_and_not_before() {
    let room = Room::new();
    let told = room.ask("Create tasks with dependencies. Watch teammates respect the blocked order.").await;
    let what: Vec<String> = told.team.iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect();
    let place = |said: String| {
        what.iter().position(|line| *line == said).unwrap_or_else(|| panic!("{said}: {what:#?}"))
    };
    for pair in THREE.windows(2) {
        let done = place(format!("has done \"{}\"", pair[0]));
        let claimed = place(format!("claims \"{}\"", pair[1]));
        assert!(done < claimed, "{:#?}", told.team);
    }
    told.answers(&["(t_", "), after t_", "), after t_", "The tasks (3) are all done."]);
    let tasks = room.tasks().await;
    all_done(&tasks, &THREE, &["alice", "bob"]);
    for pair in tasks.windows(2) {
        assert_eq!(pair[1]["blocked_by"], Value::from(vec![pair[0]["task"].clone()]));
        assert!(pair[0]["ended_at"].as_u64() <= pair[1]["ended_at"].as_u64(), "{tasks:#?}");
    }
}

#[tokio::test]
async fn b16_b17_a_message_goes_from_one_to_another_and_a_broadcast_to_all_and_the_lead_tells_of_both() {
    let room = Room::new();
    let told = room.ask("Spawn alice (coder) and bob (tester). Have alice send bob a message.").await;
    told.tells(&[
        "alice joins (coder)",
        "bob joins (tester)",
        "lead writes to alice",
        "alice writes to bob",
        "bob writes to alice",
    ]);
    told.answers(&["Spawned alice (coder) and bob (tester).", "Sent alice a message: ", "Who did what:"]);
    told.answers(&[
        "Who did what:",
        "- alice wrote to bob: “Hello bob, this is alice. Are you ready to work?”",
    ]);
    told.answers(&["Who did what:", "- bob has answered alice."]);
    told.answers(&[
        "Who did what:",
        "- alice has read the letter from bob: “Re: Hello bob",
        "I am bob (tester)",
    ]);
    assert_eq!(told.answer.matches("Offline model").count(), 1, "only the last answer: {}", told.answer);
    assert!(
        told.answer.matches("- bob has answered alice.").count() <= 2,
        "when it came and at the end: {}",
        told.answer
    );

    let all = room.say(&told, "Broadcast \"status update: phase 1 complete\" to all teammates").await;
    all.tells(&["lead writes to alice"]).tells(&["lead writes to bob"]);
    all.answers(&[
        "Sent broadcast to 2 (alice, bob).",
        "Who did what:",
        "has read the letter from lead: “status update: phase 1 complete”",
    ]);
    assert_eq!(room.members().await, ["alice coder idle", "bob tester idle"]);
    assert!(room.tasks().await.is_empty());
}

#[tokio::test]
async fn b17_the_inbox_and_the_team_are_looked_up_on_demand() {
    let room = Room::new();
    let alone = room.ask("Check the lead inbox for any messages").await;
    alone.answers(&["No letter waits in my inbox"]);
    room.say(&alone, "List teammates").await.answers(&["Team default:", "- lead (lead): working"]);
    let room = Room::new();
    let told = room.ask("Spawn alice (coder) and bob (tester).").await;
    room.say(&told, "List teammates").await.answers(&[
        "- lead (lead): working",
        "- alice (coder): ",
        "- bob (tester): ",
    ]);
}

#[tokio::test]
async fn c11_a_teammate_without_a_name_rests_until_the_person_puts_work_on_the_board() {
    let room = Room::new();
    let told = room.ask("Spawn a coder teammate and let it find work from the task board itself").await;
    told.tells(&["coder joins (coder)"])
        .answers(&["Spawned coder (coder). It claims tasks by itself when there are any."]);
    assert_eq!((told.count("claims"), room.members().await), (0, vec!["coder coder idle".to_owned()]));
    room.stage.run(&["tasks", "add", "Find TODO comments", "--role", "coder"]).await.exits(0);
    let later = Told::of(room.stage.run(&["resume", &told.run]).await.exits(0));
    later.answers(&[
        "- coder, “Find TODO comments” (t_",
        "1 TODO, FIXME, XXX or HACK comment, first src/main.rs:2.",
    ]);
    let tasks = room.tasks().await;
    assert_eq!((&tasks[0]["state"], &tasks[0]["owner"]), (&Value::from("done"), &Value::from("coder")));
}

#[tokio::test]
async fn c4_w23_w24_a_shutdown_that_is_asked_for_is_agreed_to_and_seen_afterwards() {
    let room = Room::new();
    let told = room.ask("Spawn alice as a coder. Then request her shutdown.").await;
    told.tells(&["alice joins (coder)", "alice is asked to stop", "alice agrees to stop"]);
    told.tells(&["alice has stopped: it was asked to stop"]);
    told.answers(&["Asked alice to stop.", "Who did what:", "- alice has stopped: it was asked to stop."]);
    assert_eq!(room.members().await, ["alice coder stopped"]);
    let after = room.say(&told, "List teammates to see alice's status after shutdown approval").await;
    after.answers(&["- alice (coder): stopped (it was asked to stop)"]);
}

#[tokio::test]
async fn a_risky_plan_is_rejected_twice_and_the_work_left_undone() {
    let room = Room::new();
    let told = room.ask("Spawn bob with a risky refactoring task. Review and reject his plan.").await;
    told.tells(&[
        "bob joins (teammate)",
        "bob hands in a plan",
        "lead rejects the plan",
        "bob hands in a plan",
        "lead rejects the plan",
    ]);
    told.answers(&[
        "Who did what:",
        "Plan for: a risky",
        "Second plan for: a risky",
        "My plan was rejected 2 times; I leave the work undone.",
    ]);
    told.answers(&["I rejected 2 plans of bob, as you asked."]);
    assert_eq!(told.count("approves"), 0, "{:#?}", told.team);
    assert_eq!(room.members().await, ["bob teammate idle"]);
}

#[tokio::test]
async fn a_plan_that_is_approved_is_carried_out() {
    let room = Room::new();
    let told = room.ask("Spawn charlie, have him submit a plan, then approve it.").await;
    told.tells(&[
        "charlie joins (teammate)",
        "charlie hands in a plan",
        "lead approves the plan",
        "charlie reports to the lead",
    ]);
    told.answers(&[
        "Who did what:",
        "- charlie: My plan was approved. There are 3 files with 7 lines here",
        "I approved the plan of charlie",
    ]);
    assert_eq!((told.count("rejects"), room.members().await), (0, vec!["charlie teammate idle".to_owned()]));
}
