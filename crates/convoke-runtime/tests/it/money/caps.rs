//! Small caps: fifty subtasks that cost more than the cap, and how much of the cap was spent on them.

use std::sync::Mutex;

use super::*;

/// A review as it is done for real: every worker reads three files and reports, a verifier reads one and
/// judges.
pub(super) struct Review {
    pub(super) subtasks: usize,
    /// Bytes of prose in each reply.
    pub(super) prose: usize,
    /// The worker that is the nth to write a second reply writes ten times as much in it, however often it is
    /// asked.
    pub(super) long: Option<usize>,
    /// The tasks of workers that wrote a second reply, in that order.
    pub(super) second: Mutex<Vec<String>>,
}

impl Review {
    pub(super) fn of_fifty(long: Option<usize>) -> Review {
        Review { subtasks: 50, prose: 1_200, long, second: Mutex::default() }
    }

    fn rambles(&self, task: String) -> bool {
        let mut second = self.second.lock().unwrap();
        if !second.contains(&task) {
            second.push(task.clone());
        }
        self.long.is_some_and(|nth| second.get(nth) == Some(&task))
    }
}

impl Brain for Review {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let id = tool_use_id(context, "", 0);
        let says =
            |bytes: usize| json!({"type": "text", "text": "I look at it closely. ".repeat(bytes / 22)});
        let calls = |bytes: usize, name: &str, input: Value| {
            Scripted::new(vec![
                says(bytes),
                json!({"type": "tool_use", "id": id, "name": name, "input": input}),
            ])
        };
        let look = |bytes: usize| {
            calls(bytes, "str_replace_based_edit_tool", json!({"command": "view", "path": "part.txt"}))
        };
        let last = is_hand_back(request);
        let finding = json!({"claim": "it is wrong here", "evidence": "line 3 says so", "severity": "low"});
        match role(request) {
            "lead" if context.position == 0 => {
                let subtasks: Vec<String> =
                    (0..self.subtasks).map(|n| format!("look at part {n} of it")).collect();
                calls(300, "Workflow", json!({"subtasks": subtasks}))
            }
            "lead" => Scripted::new(vec![says(1_500)]),
            "worker" if last || context.position >= 3 => {
                calls(400, "report_findings", json!({"summary": "seen", "findings": [finding]}))
            }
            "worker" => {
                let long = context.position == 1 && self.rambles(request["messages"][0].to_string());
                look(if long { self.prose * 10 } else { self.prose })
            }
            _ if last || context.position >= 1 => calls(
                300,
                "report_verdicts",
                json!({"summary": "s", "verdicts": [{"finding": 1, "verdict": "confirmed", "evidence": "I \
                    saw it"}]}),
            ),
            _ => look(self.prose),
        }
    }
}

/// What a review came to: the bill, and subtasks that were done and not done.
struct Came {
    bill: u64,
    done: usize,
    cut: usize,
    requests: usize,
    /// Requests that were sent twice with the same words: the room of the first and of the second.
    widened: Vec<(u64, u64)>,
    /// What the first subtask that was not begun was told.
    skipped: String,
}

/// What all of them look at.
pub(super) fn write_part(rig: &Rig) {
    let part: String =
        (0..40).map(|n| format!("{n}: a line of the part that is looked at, as it stands\n")).collect();
    std::fs::write(rig.work.path().join("part.txt"), part).unwrap();
}

async fn review(caps: Caps, long: Option<usize>) -> Came {
    let mut rig = Rig::new(SimConfig::new(Review::of_fifty(long))).await;
    write_part(&rig);
    rig.fan_out = Some(Rig::fanning_out());
    rig.caps = caps;
    let (agent, ended) = rig.ask("Review this").await;
    assert!(!ended.outcome.unwrap().text().is_empty(), "the lead says what there is");
    let ledger = rig.life(None).await.ledger(&session(&rig, &agent).await).await.unwrap();
    let bill = rig.sim.bill();
    if let Some(cap) = caps.nano {
        check_books(&rig, &ledger, cap);
    }
    let tokens =
        bill.lines.iter().map(|line| line.usage.prompt_tokens() + line.usage.output_tokens).sum::<u64>();
    assert!(caps.tokens.is_none_or(|cap| tokens <= cap), "{tokens} of {caps:?}");
    let requests = rig.sim.requests();
    let reports = requests.iter().filter(|request| role(&request.body) == "worker" && request.replied);
    let done =
        reports.map(|request| request.conversation.clone()).collect::<std::collections::BTreeSet<_>>().len();
    let cut = bill.lines.iter().filter(|line| !line.completed).count();
    let bill = if caps.tokens.is_some() { tokens } else { bill.total_nano };
    let read = read_by_the_lead(&rig);
    let skipped =
        read.split("skipped(").nth(1).and_then(|rest| rest.split(')').next()).unwrap_or_default().to_owned();
    Came { bill, done, cut, requests: requests.len(), widened: widened(&requests), skipped }
}

fn widened(requests: &[Received]) -> Vec<(u64, u64)> {
    let room = |request: &Received| request.body["max_tokens"].as_u64().unwrap();
    let mut twice = Vec::new();
    for (n, first) in requests.iter().enumerate() {
        let again = |other: &&Received| {
            other.conversation == first.conversation && other.body["messages"] == first.body["messages"]
        };
        twice.extend(requests[n + 1..].iter().find(again).map(|second| (room(first), room(second))));
    }
    twice
}

/// What stays of a cap here, in cents, is what has to be there as a bound and is not billed in the end. The
/// lead keeps 8.5 for its answer: 9,700 tokens of prompt that may have to be written to the cache again, 6.0,
/// and 1,024 of reply, 2.5; it is billed 3.4, because the cache held most of it. A further worker is begun
/// only where its first request (2,800 and 768 tokens, 3.7) and its hand-back (about 5,600 and 768, 5.4 or a
/// little more) fit, so up to about 10 are left when none does. Together that is about 15: under 50 cents
/// about 70 % are billed whatever the moment at which the last worker ends, under 75 cents about 80 %. No
/// order of the work brings 50 cents to 80 % for certain: the server may write the whole prompt to the cache
/// each time, and then all that was kept is billed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_caps_are_spent_on_work_and_not_on_room_that_nobody_needs() {
    let whole = review(Caps::default(), None).await;
    let dollars = |nano: u64| nano as f64 / DOLLAR as f64;
    println!("without a cap: ${:.2}, {} requests", dollars(whole.bill), whole.requests);
    println!("cap      bill     share  workers begun of 50  requests");
    let mut least = u64::MAX;
    for cents in [50, 75, 100, 150, 200, 300] {
        let cap = cents * DOLLAR / 100;
        assert!(whole.bill > cap, "the work needs more than the cap");
        let came = review(Caps { nano: Some(cap), ..Caps::default() }, None).await;
        let share = came.bill * 100 / cap;
        println!(
            "${:.2}    ${:.4}  {share:>3} %  {:>10}  {:>16}",
            dollars(cap),
            dollars(came.bill),
            came.done,
            came.requests
        );
        if !came.skipped.is_empty() {
            println!("         {}", came.skipped);
        }
        assert!(came.cut == 0, "{cents} cents: {} cut", came.cut);
        assert!(came.done > 0, "{cents} cents start somebody");
        // Below 75 cents what has to be kept is itself more than a fifth of the cap: see the text of the
        // test.
        let at_least = if cents < 75 { 65 } else { 80 };
        assert!(share >= at_least, "{cents} cents: {share} %");
        if cents >= 75 {
            least = least.min(share);
        }
    }
    let came = review(Caps { tokens: Some(100_000), ..Caps::default() }, None).await;
    println!("100,000 tokens: {} used, {} workers begun", came.bill, came.done);
    println!("least share from 75 cents on: {least} %");
    assert!(came.done > 0 && came.bill >= 80_000, "{} tokens used", came.bill);
}

/// A reply that is longer than what such replies take is asked for once more with more room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_was_cut_in_a_small_room_is_asked_for_again_with_more() {
    // Now and then the one that rambles comes to its turn while rooms are still wide, or when nothing is left
    // for a second try. Then another one rambles.
    let mut widened = Vec::new();
    for rambles in [5, 6, 4, 7, 3] {
        let came = review(Caps { nano: Some(DOLLAR), ..Caps::default() }, Some(rambles)).await;
        println!("{} workers begun, {} requests, rooms {:?}", came.done, came.requests, came.widened);
        assert!(came.widened.len() <= 1, "asked more than once again: {:?}", came.widened);
        widened = came.widened;
        if !widened.is_empty() {
            break;
        }
    }
    let [(first, second)] = widened[..] else { panic!("in none of five reviews it was asked again") };
    assert!(second >= 2 * first, "{first} and then {second}");
}
