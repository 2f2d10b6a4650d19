//! One agent in full.

use convoke_kernel::{
    ApprovalAsked, ApprovalGiven, Failure, FailureKind, Kept, ModelFailed, ModelReplied, Outcome, Purpose,
    Retry, ToolFinished, ToolResult,
};
use serde_json::json;

use super::stage::*;
use super::*;
use crate::place::FilePosition;

/// A page on which these events stand, a tenth of a second apart.
fn page(events: &[Event]) -> Page {
    let mut page = Page::new(id(1));
    for (seq, event) in (1..).zip(events) {
        page.hear(seq, seq * 100, event);
    }
    page
}

/// The entries in short: `turn kind title | came to`, with a mark where something went wrong.
fn told(page: &Page) -> Vec<String> {
    let short = |entry: &Entry| {
        let bad = if entry.is_bad { " !" } else { "" };
        format!("{} {:?} {} | {}{bad}", entry.turn, entry.kind, entry.title, entry.came_to)
    };
    page.entries.iter().map(short).collect()
}

fn started(call: &str, name: &str, input: serde_json::Value) -> Event {
    let input = convoke_kernel::Segment::encode(&input);
    convoke_kernel::ToolStarted { id: call.into(), name: name.into(), input }.into()
}

fn finished(call: &str, result: ToolResult) -> Event {
    ToolFinished { id: call.into(), result }.into()
}

const REPLY: &str = "0.1 s · 900 in (200 from cache), 100 out · $0.0010";

#[test]
fn a_page_tells_every_turn_its_commands_and_what_they_put_out() {
    let ls = json!({"command": "ls -l\nwc"});
    let edit = json!({"command": "str_replace", "path": "src/a.rs", "old_str": "x", "new_str": "y"});
    let calls = [("t1", "bash", ls.clone()), ("t2", "str_replace_based_edit_tool", edit)];
    let output = ToolResult { exit_code: Some(0), ..ToolResult::done("one\u{1b}[2J\ntwo\n") };
    let events = [
        opened("what is here?", Vec::new()).into(),
        called(1, Purpose::Turn).into(),
        replied("I look.\nCarefully.", &calls).into(),
        started("t1", "bash", ls),
        finished("t1", output),
        finished("t2", ToolResult::refused("not allowed")),
        called(1, Purpose::Turn).into(),
        replied("", &[]).into(),
        closed(None, None).into(),
    ];
    let page = page(&events);
    let reply = |title: &str, turn| format!("{turn} Text {title} | {REPLY}");
    let expected = [
        "0 Prompt what is here? | ".to_owned(),
        reply("I look. (+1 line)", 1),
        "1 Call $ ls -l (+1 line) | exit 0 · 0.1 s · 2 lines".to_owned(),
        "1 Call edit src/a.rs | refused · 1 line !".to_owned(),
        reply("reply 1", 2),
        "2 End answered | ".to_owned(),
    ];
    assert_eq!(told(&page), expected);
    assert_eq!(page.entries[2].body, "$ ls -l\n> wc\n\none␛[2J\ntwo");
    assert_eq!(page.entries[3].body, "edit src/a.rs\n- x\n+ y\n\nnot allowed");
    assert_eq!(page.entries[3].place, Some(FilePosition { path: "src/a.rs".into(), line: None }));
    assert_eq!(page.entries[1].body, "I look.\nCarefully.");
}

#[test]
fn a_call_is_there_before_it_runs_and_says_when_it_went_wrong() {
    let bash = || json!({"command": "false"});
    let mut page = page(&[called(1, Purpose::Turn).into(), replied("go", &[("t", "bash", bash())]).into()]);
    assert_eq!(told(&page)[1], "1 Call $ false | ");
    page.hear(3, 300, &started("t", "bash", bash()));
    assert_eq!((told(&page)[1].as_str(), page.entries[1].at), ("1 Call $ false | ", 300));
    let check = |result: ToolResult, expected: &str| {
        let mut page = page.clone();
        page.hear(4, 1_500, &finished("t", result));
        assert_eq!(told(&page)[1], expected);
    };
    check(ToolResult { exit_code: Some(1), ..ToolResult::done("") }, "1 Call $ false | exit 1 · 1.2 s !");
    check(ToolResult::done("a"), "1 Call $ false | done · 1.2 s · 1 line");
    check(ToolResult::interrupted("cut"), "1 Call $ false | interrupted, outcome unknown · 1.2 s · 1 line !");
    page.hear(3, 1_500, &finished("t", ToolResult::done("a")));
    assert_eq!(told(&page)[1], "1 Call $ false | ", "what was heard before changes nothing");
    page.hear(9, 1_500, &finished("unheard of", ToolResult::done("a")));
    assert_eq!(told(&page)[2], "1 Call (a call) {} | done · 1 line");
}

#[test]
fn questions_failures_and_what_was_not_kept_are_told() {
    let failure = Failure {
        kind: FailureKind::RateLimited,
        message: "slow down".into(),
        retry: Retry::Soon,
        request_id: Some("req_1".into()),
        unbilled: true,
        refused: None,
    };
    let events = [
        called(1, Purpose::Turn).into(),
        ModelFailed { call: 1, attempt: 1, failure, retry_at: Some(4_200) }.into(),
        called(2, Purpose::Turn).into(),
        ModelReplied { kept: Kept::Cut, ..replied("half", &[]) }.into(),
        ApprovalAsked { id: "t".into(), what: "run: rm\tx".into(), why: "a rule".into() }.into(),
        ApprovalGiven { id: "t".into(), allow: false, by: "person".into() }.into(),
        opened("mail", vec![letter(1, "bob", "lead", "hi")]).into(),
        closed(Some(FailureKind::Api), None).into(),
    ];
    let page = page(&events);
    let expected = [
        "0 Failure request 1, attempt 1 failed (rate_limited) after 0.1 s | sent again in 4.0 s !".to_owned(),
        "0 Note request 1 again, attempt 2 | ".to_owned(),
        format!("0 Text half | {REPLY} · not kept: cut at max_tokens !"),
        "0 Question run: rm\\tx | refused by person !".to_owned(),
        "0 Mail mail from bob | ".to_owned(),
        "0 End failed (api) |  !".to_owned(),
    ];
    assert_eq!(told(&page), expected);
    assert_eq!(page.entries[0].body, "slow down\nrequest id req_1");
    assert_eq!(page.entries[3].body, "run: rm\\tx\nbecause a rule");
}

#[test]
fn the_end_of_an_exchange_holds_what_was_answered() {
    let closed = |outcome: Outcome| -> Event {
        let taken_back = false;
        let report = None;
        let ballot = None;
        let degraded = None;
        let returned = Vec::new();
        convoke_kernel::ExchangeClosed {
            exchange: 1,
            outcome,
            taken_back,
            report,
            ballot,
            degraded,
            returned,
        }
        .into()
    };
    let well = page(&[closed(Outcome::Ok { text: "# All\nis well".into() })]);
    assert_eq!(well.entries[0].body, "# All\nis well");
    let failed = Outcome::Failed {
        kind: FailureKind::TurnLimit,
        message: "no turn is left".into(),
        text: "half".into(),
    };
    assert_eq!(page(&[closed(failed)]).entries[0].body, "no turn is left\n\nhalf");
}
