//! Every command of a session, once, typed and judged by what it shows and by what reaches the model.

use std::path::Path;

use convoke_sim::{Script, says};

use super::{IDLE, bash, runs, say, session};
use crate::pane::Pane;
use crate::repo::{files, read, repository};
use crate::stage::Stage;

/// A lead that says these one after the other, whatever it is told.
async fn saying(words: &[&str]) -> Stage {
    Stage::with(Script::new().conversation("*", words.iter().map(|word| says(word)))).await
}

#[tokio::test]
async fn commands_that_look_show_what_the_command_line_shows() {
    let stage = saying(&["Seen."]).await;
    let pane = session(&stage, "").await;
    let check = async |line: &str, expected: &[&str]| {
        pane.enter(line).await;
        for part in expected {
            pane.shows(part).await;
        }
        pane.press("C-l").await;
        pane.shows(IDLE).await;
    };
    check("/help", &["/undo ", "More about one: /help NAME"]).await;
    check("/help workflows", &["Example: /workflows review"]).await;
    check("/team", &["nothing has been said in this session yet"]).await;
    check("/sessions", &["/sessions", "nothing"]).await;
    say(&pane, "Look").await;
    let run = runs(&stage).await.remove(0);
    check("/runs", &[&run[..10], "Look"]).await;
    check("/tasks", &["there are no tasks on the board"]).await;
    check("/inbox", &["no letter waits for lead"]).await;
    check("/team", &["has no team: its lead works alone"]).await;
    check("/cost", &["claude-opus-4-8", "DOLLARS"]).await;
    check("/workflows", &["audit", "review", "shipped"]).await;
    check("/diff", &["nothing was kept for"]).await;
    // A list to pick from.
    pane.enter("/model").await;
    pane.shows("▸ claude-").await;
    pane.press("C-u").await;
    pane.shows(IDLE).await;
    check("/effort", &["effort xhigh", "low|medium|high|xhigh|max"]).await;
    check("/budget", &["of $10.00", "of 500"]).await;
    assert_eq!(stage.sim().requests().len(), 1, "looking asks the model nothing");

    pane.enter("/agents").await;
    pane.shows("[1 Agents 1]").await;
    pane.press("q").await;
    pane.shows(IDLE).await;
    pane.enter("/findings").await;
    pane.shows("[4 Findings 0]").await;
    pane.press("C-o").await;
    pane.shows(IDLE).await;
    pane.enter("/quit").await;
    pane.shows(&format!("to go on: convoke session {run}")).await;
    pane.is_usable().await;
}

#[tokio::test]
async fn an_unknown_command_is_told_the_nearest_and_says_nothing_to_the_lead() {
    let stage = saying(&["Heard."]).await;
    let pane = session(&stage, "").await;
    let check = async |line: &str, expected: &str| {
        pane.enter(line).await;
        pane.shows(expected).await;
        // What was written is still there to be mended.
        pane.shows(&format!("› {line}")).await;
        pane.press("C-u").await;
        pane.shows(IDLE).await;
    };
    check("/taem", "no command /taem; did you mean /team?").await;
    check("/inboz", "did you mean /inbox?").await;
    check("/zzzzzzzz", "no command /zzzzzzzz; /help lists them").await;
    check("/export \"half", "is never closed").await;
    pane.enter("/help nonsense").await;
    pane.shows("no command /nonsense").await;
    assert!(stage.sim().requests().is_empty());
    say(&pane, "//team is a word").await;
    let said = stage.sim().requests()[0].body["messages"][0].to_string();
    assert!(said.contains("\"/team is a word\""), "{said}");
}

#[tokio::test]
async fn what_is_set_by_a_command_is_in_the_next_request() {
    let stage = saying(&["One.", "Two.", "Three.", "Four."]).await;
    let pane = session(&stage, "").await;
    let body = |index: usize| stage.sim().requests()[index].body.clone();
    say(&pane, "first").await;
    assert_eq!(
        (&body(0)["model"], &body(0)["output_config"]["effort"]),
        (&"claude-opus-4-8".into(), &"xhigh".into())
    );

    pane.enter("/effort low").await;
    pane.shows("from your next message on: claude-opus-4-8, effort low").await;
    say(&pane, "second").await;
    assert_eq!(
        (&body(1)["model"], &body(1)["output_config"]["effort"]),
        (&"claude-opus-4-8".into(), &"low".into())
    );
    pane.enter("/effort enormous").await;
    pane.shows("enormous").await;

    pane.enter("/model claude-opus-5").await;
    pane.shows("from your next message on: claude-opus-5").await;
    pane.enter("/mode off").await;
    pane.shows("mode off · claude-opus-5").await;
    say(&pane, "third").await;
    assert_eq!(body(2)["model"], "claude-opus-5");
    assert!(body(2)["messages"].to_string().contains("orchestration mode: off"), "{}", body(2)["messages"]);
    assert!(!body(1)["messages"].to_string().contains("orchestration mode: off"));

    // An alias is the model it stands for: behind this server, which is not Anthropic's, it is asked with
    // everything too.
    pane.enter("/model sonnet").await;
    pane.shows("from your next message on: claude-sonnet-5-5").await;
    say(&pane, "and by another").await;
    assert_eq!(body(3)["model"], "claude-sonnet-5-5");
    assert!(body(3)["cache_control"].is_object() && body(3)["thinking"].is_object(), "{}", body(3));

    pane.enter("/mode sideways").await;
    pane.shows("it is `on` or `off`").await;
    pane.enter("/budget usd 3").await;
    pane.shows("granted in all: $3.00").await;
    pane.shows("of $3.00").await;
    pane.enter("/budget usd").await;
    pane.shows("how much?").await;
    pane.enter("/budget usd 0.01").await;
    pane.shows("granted in all: $0.01").await;
    pane.enter("fourth").await;
    pane.shows("the budget does not suffice").await;
    assert_eq!(stage.sim().requests().len(), 4, "nothing is spent beyond it");
}

#[tokio::test]
async fn a_conversation_that_is_compacted_goes_on_from_a_summary() {
    let stage = Stage::with(summing_up()).await;
    let pane = session(&stage, "").await;
    say(&pane, "The secret word is heron.").await;
    pane.enter("/compact the secret word").await;
    pane.shows("a new history begins before the next request").await;
    say(&pane, "What was it?").await;
    pane.told("a new history begins with a summary", 1).await;
    let requests = stage.sim().requests();
    let bodies: Vec<String> = requests.iter().map(|request| request.body["messages"].to_string()).collect();
    assert_eq!(bodies.len(), 3, "the answer, the summary, the next answer");
    assert!(bodies[1].contains("the secret word"), "what to keep is said: {}", bodies[1]);
    assert!(bodies[2].contains("In short: a heron.") && bodies[2].contains("What was it?"), "{}", bodies[2]);
    assert!(!bodies[2].contains("Noted down."), "{}", bodies[2]);
}

/// A lead that takes note, sums up when it is asked to, and answers.
fn summing_up() -> Script {
    let short = says("In short: a heron.");
    Script::new()
        .conversation("*", [says("Noted down.").when_last_contains("What was it?", says("A heron.")), short])
}

#[tokio::test]
async fn what_a_session_changed_is_shown_exported_and_taken_back() {
    let script = Script::new()
        .conversation("*", [bash("echo changed >> notes.txt; echo new > made.txt"), says("Changed.")]);
    let stage = Stage::with(script).await;
    let dir = repository(&stage, &[("notes.txt", "as it was\n")]);
    let pane = session(&stage, "").await;
    say(&pane, "Change it").await;
    pane.enter("/diff").await;
    pane.shows("+changed").await;
    pane.shows("+new").await;
    pane.enter("/export \"my notes\"").await;
    pane.shows("my notes/conversation.md").await;
    let exported = files(&dir.join("my notes"));
    assert!(exported[Path::new("conversation.md")].contains("Changed."), "{exported:#?}");
    assert!(exported[Path::new("events.jsonl")].contains("tool_finished"), "{exported:#?}");
    std::fs::remove_dir_all(dir.join("my notes")).unwrap();
    pane.enter("/undo").await;
    pane.shows("to bring a file back").await;
    assert_eq!(read(&dir, "notes.txt"), "as it was\n");
    assert!(!dir.join("made.txt").exists());
    assert_eq!(stage.sim().requests().len(), 2);
}

#[tokio::test]
async fn sessions_are_begun_taken_up_and_forked_from_within_one() {
    let stage = saying(&["Answer one.", "Answer two.", "Answer three."]).await;
    let pane = session(&stage, "").await;
    say(&pane, "First session").await;
    let first = runs(&stage).await.remove(0);
    pane.enter("/new").await;
    pane.shows("a new session: what is to be done?").await;
    say(&pane, "Second session").await;
    let second = runs(&stage).await.into_iter().find(|run| *run != first).unwrap();

    // The list has those of this directory: what is said in a session is done where it was begun.
    let other = stage.home().join("other");
    std::fs::create_dir(&other).unwrap();
    let mut elsewhere = stage.command(&["run", "Third session, elsewhere"]);
    assert!(elsewhere.current_dir(&other).output().await.unwrap().status.success());
    pane.enter("/resume").await;
    let list = pane.shows("First session").await;
    assert!(!list.contains("elsewhere"), "{list}");
    pane.press("C-u").await;
    pane.shows(IDLE).await;

    pane.enter("/resume s_nothing").await;
    pane.shows("there is no session 's_nothing'").await;
    pane.enter(&format!("/resume {}", &first[..12])).await;
    pane.shows(&format!("this is session {first}")).await;
    pane.told("› First session", 2).await;
    say(&pane, "Go on there").await;
    let bodies = stage.sim().requests();
    let last = bodies.last().unwrap().body["messages"].to_string();
    assert!(
        last.contains("First session") && last.contains("Go on there") && !last.contains("Second"),
        "{last}"
    );

    pane.enter(&format!("/fork {second}")).await;
    pane.shows(&format!("forked from {second}")).await;
    pane.shows(IDLE).await;
    assert_eq!(stage.sim().requests().len(), 4, "neither of them asked anything again");
    say(&pane, "Another way").await;
    let request = stage.sim().requests().pop().unwrap();
    let last = request.body["messages"].to_string();
    assert!(last.contains("Second session") && last.contains("Another way"), "{last}");
    assert!(request.usage.unwrap().cache_read_tokens > 0, "what was said there is read from the cache");
    assert_eq!(runs(&stage).await.len(), 3);
}

/// Waits for these words, wherever the lines are broken.
async fn is_told(pane: &Pane, words: &str) {
    pane.until(words, |screen| screen.split_whitespace().collect::<Vec<_>>().join(" ").contains(words)).await;
}

#[tokio::test]
async fn a_workflow_is_called_by_its_name_with_words_and_asks_no_lead() {
    let stage = Stage::with(crate::workflow_run::callees()).await;
    let workflows = stage.home().join(".config/convoke/workflows");
    std::fs::create_dir_all(&workflows).unwrap();
    let source = "export const meta = { name: 'greet', description: 'Greets somebody' }\nreturn await \
        agent('greet ' + args)\n";
    std::fs::write(workflows.join("greet.js"), source).unwrap();
    let pane = session(&stage, "").await;
    // The menu has it behind the commands.
    pane.types("/gre").await;
    pane.shows("▸ /greet").await;
    pane.press("C-u").await;
    pane.shows(IDLE).await;
    let call = async |words: &str, answer: &str, expected: &str| {
        pane.enter(&format!("/greet {words}")).await;
        pane.shows("? run the workflow greet?").await;
        pane.shows("plan: 1 agent").await;
        pane.enter(answer).await;
        pane.shows(expected).await;
        pane.shows(IDLE).await;
    };
    call("nobody", "n", "not run: you did not agree").await;
    assert!(stage.sim().requests().is_empty());
    call("the world's \"end", "y", "did greet the world's").await;
    is_told(&pane, "the first paid request in this directory: claude-opus-4-8, at most $10.00").await;
    is_told(&pane, "the plan expects 1 agent, $").await;
    // In a session that has a lead, too.
    call("it again", "y", "did greet it again").await;
    assert_eq!(stage.sim().requests().len(), 2, "one for each agent, and none for a lead");
    pane.enter("/gret it").await;
    pane.shows("no command /gret; did you mean /greet?").await;
    pane.press("C-u").await;
    pane.shows(IDLE).await;
    assert_eq!(runs(&stage).await.len(), 1);
}

#[tokio::test]
async fn a_workflow_of_a_project_that_is_not_trusted_is_told_as_that() {
    let stage = saying(&["Heard."]).await;
    let workflows = stage.work().join(".convoke/workflows");
    std::fs::create_dir_all(&workflows).unwrap();
    let source = "export const meta = { name: 'greet', description: 'Greets somebody' }\nreturn await \
        agent('greet ' + args)\n";
    std::fs::write(workflows.join("greet.js"), source).unwrap();
    let pane = Pane::open(&stage).await;
    pane.enter("convoke").await;
    pane.shows("Trust the workflows and agents").await;
    pane.enter("n").await;
    pane.shows(IDLE).await;
    pane.types("/gre").await;
    pane.shows("workflow (project)").await;
    pane.press("C-u").await;
    pane.enter("/greet me").await;
    pane.shows("project is not trusted").await;
    assert!(stage.sim().requests().is_empty());
}

#[tokio::test]
async fn the_first_paid_request_of_a_directory_is_told_of_before_it_is_sent() {
    let stage = saying(&["One.", "Two."]).await;
    let pane = session(&stage, "").await;
    say(&pane, "first").await;
    is_told(&pane, "the first paid request in this directory: claude-opus-4-8, at most $10.00").await;
    is_told(&pane, "`convoke plan` says more").await;
    pane.enter("/new").await;
    pane.shows("a new session: what is to be done?").await;
    pane.press("C-l").await;
    pane.shows(IDLE).await;
    say(&pane, "second").await;
    assert_eq!(pane.all().await.matches("first paid request").count(), 1);
}
