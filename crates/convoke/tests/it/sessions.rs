//! Sessions against the built-in model.

use std::path::Path;

use convoke::{
    Change, Error, Event, Question, Reply, Rule, Session, SessionBuilder, Status, TaskStatus, Workflow, json,
};
use tempfile::TempDir;

/// A small project and a state directory beside it.
struct Project {
    root: TempDir,
}

impl Project {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = root.path().join("work").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put(
            "src/lib.rs",
            "/// Adds.\npub fn add(a: u32, b: u32) -> u32 {\n    a.checked_add(b).unwrap()\n}\n",
        );
        put("src/main.rs", "fn main() {\n    println!(\"{}\", work::add(1, 2));\n}\n");
        put("README.md", "# Work\n\nAdds two numbers.\n");
        Self { root }
    }

    fn dir(&self) -> std::path::PathBuf {
        self.root.path().join("work")
    }

    fn with(&self, builder: SessionBuilder) -> SessionBuilder {
        builder
            .state_dir(self.root.path().join("state"))
            .journal(self.root.path().join("state/journal.db"))
            .helper(Path::new(env!("CARGO_BIN_EXE_convoke-library-helper")))
            .max_concurrent(4)
    }

    fn builder(&self) -> SessionBuilder {
        self.with(Session::builder(self.dir())).offline()
    }
}

#[tokio::test]
async fn a_task_comes_to_an_answer_with_findings_spend_and_an_id() {
    let place = Project::new();
    let session = place.builder().build().await.unwrap();
    assert_eq!(session.id().await, None);
    let answer = session.run("Review this directory").await.unwrap();
    assert_eq!(answer.status, Status::Done, "{answer:?}");
    assert_eq!(answer.problem, None);
    assert!(!answer.text.trim().is_empty());
    assert!(!answer.findings.is_empty(), "{answer:?}");
    assert!(answer.spend.agents > 0 && answer.spend.tokens > 0, "{:?}", answer.spend);
    assert_eq!(answer.spend.usd, Some(0.0), "the built-in model costs nothing");
    assert_eq!(session.id().await, Some(answer.session));
}

#[tokio::test]
async fn a_follow_up_is_the_same_conversation_and_another_process_can_go_on_with_it() {
    let place = Project::new();
    let session = place.builder().build().await.unwrap();
    assert!(matches!(session.follow_up("more").await, Err(Error::NotBegun)));
    assert!(matches!(session.go_on().await, Err(Error::NotBegun)));
    let first = session.run("How many files and lines are there?").await.unwrap();
    let second = session.follow_up("Where are TODO comments?").await.unwrap();
    assert_eq!(first.session, second.session);
    assert!(second.spend.tokens > first.spend.tokens);
    let same = session.go_on().await.unwrap();
    assert_eq!(same, second, "nothing was left open, and nothing was asked again");
    session.close().await.unwrap();
    // The builder says nothing of a model: the session was begun with the built-in one.
    let again = place.with(Session::resume(&first.session)).build().await.unwrap();
    let third = again.run("Which functions are long?").await.unwrap();
    assert_eq!(third.session, first.session);
    assert!(third.spend.tokens > second.spend.tokens);
    let none = place.with(Session::resume("s_none")).build().await.unwrap_err();
    assert!(matches!(none, Error::NoSuchSession(_)), "{none}");
}

#[tokio::test]
async fn events_come_in_order_and_the_end_is_the_last() {
    let place = Project::new();
    let session = place.builder().build().await.unwrap();
    let mut events = session.events();
    let answer = session.run("Review this directory").await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = events.try_next() {
        seen.push(event);
    }
    assert!(matches!(seen.first(), Some(Event::AgentStarted { role: "lead", .. })), "{:?}", seen.first());
    assert_eq!(seen.last(), Some(&Event::Finished { status: Status::Done }));
    let count = |is: fn(&Event) -> bool| seen.iter().filter(|event| is(event)).count();
    assert_eq!(count(|event| matches!(event, Event::FindingReported { .. })), answer.findings.len());
    assert_eq!(count(|event| matches!(event, Event::FindingVerified { .. })), answer.findings.len());
    assert!(count(|event| matches!(event, Event::AgentStarted { role: "worker", .. })) > 0);
    let started = count(|event| matches!(event, Event::ToolStarted { .. }));
    assert!(started > 0 && started <= count(|event| matches!(event, Event::ToolEnded { .. })));
    assert!(count(|event| matches!(event, Event::Text { .. })) > 0);
    assert!(count(|event| matches!(event, Event::Spent { tokens, .. } if *tokens > 0)) > 0);
}

#[tokio::test]
async fn a_callback_is_asked_and_without_one_the_call_is_refused() {
    let place = Project::new();
    let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = asked.clone();
    let session = place
        .builder()
        .rule(Rule::ask().tool("bash"))
        .on_question(move |question| {
            heard.lock().unwrap().push(question);
            async { Reply::Allow }
        })
        .build()
        .await
        .unwrap();
    let mut events = session.events();
    session.run("How many files and lines are there?").await.unwrap();
    let asked = asked.lock().unwrap().clone();
    assert!(
        asked.iter().any(|it| matches!(it, Question::Call { wanted, .. } if wanted.starts_with("run: "))),
        "{asked:?}"
    );
    let mut ran = 0;
    while let Some(event) = events.try_next() {
        ran += usize::from(matches!(event, Event::ToolEnded { exit_code: Some(0), .. }));
    }
    assert!(ran > 0);

    let refused = place.builder().rule(Rule::ask().tool("bash")).build().await.unwrap();
    let mut events = refused.events();
    let _ = refused.run("How many files and lines are there?").await;
    let mut refusals = 0;
    while let Some(event) = events.try_next() {
        if let Event::ToolEnded { text, exit_code, .. } = event {
            assert_eq!(exit_code, None, "{text}");
            refusals += usize::from(text.contains("nobody is there to be asked"));
        }
    }
    assert!(refusals > 0);
}

#[tokio::test]
async fn a_workflow_returns_its_value_and_one_that_is_wrong_is_refused_before_anything_is_asked() {
    let place = Project::new();
    let session = place.builder().build().await.unwrap();
    let source = "export const meta = { name: 'sum', description: 'Adds' }\nreturn args.a + args.b";
    let answer = session.run_workflow(Workflow::source(source), Some(json!({"a": 1, "b": 2}))).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.status), ("3", Status::Done));
    let again = session.run_workflow(Workflow::source(source), Some(json!({"a": 2, "b": 2}))).await.unwrap();
    assert_eq!((again.text.as_str(), &again.session), ("4", &answer.session));
    let thrown =
        "export const meta = { name: 'bad', description: 'Throws' }\nthrow new Error('no such luck')";
    match session.run_workflow(Workflow::source(thrown), None).await {
        Err(Error::Failed { message, answer }) => {
            assert!(message.contains("no such luck"), "{message}");
            assert_eq!(answer.status, Status::Failed);
        }
        other => panic!("{other:?}"),
    }
    let wrong = session.run_workflow(Workflow::source("return 1"), None).await.unwrap_err();
    assert!(matches!(wrong, Error::Workflow(_)), "{wrong}");
    let unknown = session.run_workflow(Workflow::named("nothing"), None).await.unwrap_err().to_string();
    assert!(unknown.contains("review") && unknown.contains("audit"), "{unknown}");
}

#[tokio::test]
async fn a_stopped_task_goes_on_later() {
    let place = Project::new();
    let session = place.builder().build().await.unwrap();
    let mut events = session.events();
    let stopper = session.clone();
    let stopping = tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if matches!(event, Event::ToolStarted { .. }) {
                stopper.stop();
                break;
            }
        }
    });
    let answer = session.run("Review this directory").await.unwrap();
    stopping.await.unwrap();
    assert_eq!(answer.status, Status::Stopped, "{answer:?}");
    let answer = session.go_on().await.unwrap();
    assert_eq!(answer.status, Status::Done, "{answer:?}");
    assert!(!answer.findings.is_empty());
}

#[tokio::test]
async fn a_task_whose_future_was_dropped_goes_on_later() {
    let place = Project::new();
    let session = place.builder().build().await.unwrap();
    let mut events = session.events();
    let begun = async {
        while let Some(event) = events.next().await {
            if matches!(event, Event::ToolStarted { .. }) {
                break;
            }
        }
    };
    tokio::select! {
        answer = session.run("Review this directory") => panic!("{answer:?}"),
        () = begun => {}
    }
    let answer = session.go_on().await.unwrap();
    assert_eq!(answer.status, Status::Done, "{answer:?}");
    assert!(!answer.findings.is_empty());
}

#[tokio::test]
async fn files_that_were_changed_are_listed() {
    let place = Project::new();
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        let done =
            command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args).current_dir(place.dir());
        assert!(done.output().unwrap().status.success(), "{args:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    let session = place.builder().build().await.unwrap();
    let answer = session.run("Use a task to create a new module, then verify it from here").await.unwrap();
    let added: Vec<_> =
        answer.files.iter().filter(|file| file.change == Change::Added).map(|file| &file.path).collect();
    assert!(!added.is_empty(), "{answer:?}");
}

#[tokio::test]
async fn what_cannot_be_is_said_before_anything_is_started() {
    let place = Project::new();
    let check = |error: Error, part: &str| assert!(error.to_string().contains(part), "{error}");
    // This test process never called `helper_entry`.
    let without =
        Session::builder(place.dir()).offline().journal("memory").state_dir(place.root.path().join("state"));
    check(without.build().await.unwrap_err(), "make it the first line of main");
    let missing = place.with(Session::builder(place.root.path().join("none"))).offline();
    check(missing.build().await.unwrap_err(), "cannot work in");
    check(place.builder().budget_usd(-1.0).build().await.unwrap_err(), "a number of dollars");
    check(place.builder().journal("redis://x").build().await.unwrap_err(), "postgres://");
    check(
        place.builder().journal(place.dir().join("j.db")).build().await.unwrap_err(),
        "name a place outside",
    );
    let unpriced =
        place.with(Session::builder(place.dir())).base_url("http://127.0.0.1:1").model("home-grown");
    check(unpriced.build().await.unwrap_err(), "budget_usd(None)");
}

#[tokio::test]
async fn a_team_takes_tasks_and_letters_from_the_embedder() {
    let place = Project::new();
    let session = place.builder().build().await.unwrap();
    assert!(matches!(session.team().await, Err(Error::NotBegun)));
    let task = "Create 3 tasks on the board, then spawn alice and bob. Watch them auto-claim.";
    session.run(task).await.unwrap();
    let team = session.team().await.unwrap();
    let names: Vec<String> = team.members().await.unwrap().into_iter().map(|member| member.name).collect();
    assert_eq!(names, ["lead", "alice", "bob"]);
    let first = team.tasks().await.unwrap();
    assert!(first.iter().all(|task| matches!(task.status, TaskStatus::Done { .. })), "{first:?}");
    // What is written between two drives is done by the next one, in its order.
    let listed = team.add_task("List the files here", "", &[]).await.unwrap();
    let counted = team.add_task("Count the lines by language", "", &[&listed.id]).await.unwrap();
    assert_eq!(counted.status, TaskStatus::Pending);
    let dropped = team.add_task("Find the largest files", "", &[]).await.unwrap();
    let dropped = team.cancel_task(&dropped.id).await.unwrap();
    assert!(matches!(dropped.status, TaskStatus::Failed { .. }), "{dropped:?}");
    team.send("alice", "Say hello to bob.").await.unwrap();
    let none = team.send("carol", "Hello.").await.unwrap_err().to_string();
    assert!(none.contains("carol"), "{none}");
    assert!(team.retry_task("seven").await.unwrap_err().to_string().contains("Team::tasks"));
    session.go_on().await.unwrap();
    let tasks = team.tasks().await.unwrap();
    let find = |id: &str| tasks.iter().find(|task| task.id == id).cloned().unwrap();
    for id in [&listed.id, &counted.id] {
        let task = find(id);
        assert!(matches!(task.status, TaskStatus::Done { .. }) && task.result.is_some(), "{task:?}");
    }
    assert_eq!(find(&dropped.id), dropped);
}
