//! What a person is told while the server is waited for, second by second on times that the test says.

use convoke_kernel::{Failure, FailureKind, ModelFailed, Retry};

use super::tests::{Watched, called, lead};
use super::*;

fn worker(number: u8) -> AgentId {
    AgentId::from_bits([number + 10; 10])
}

fn overloaded(retry_at: u64) -> Event {
    failed(FailureKind::Api, "the API answered 529 (overloaded_error): Overloaded", 1, Some(retry_at))
}

fn failed(kind: FailureKind, message: &str, attempt: u32, retry_at: Option<u64>) -> Event {
    let message = message.to_owned();
    let retry = Retry::Soon;
    let failure = Failure { kind, message, retry, request_id: None, unbilled: true, refused: None };
    ModelFailed { call: 1, attempt, failure, retry_at }.into()
}

/// Ten workers that a server refuses for four minutes: each asks again after doubling waits, and all pause in
/// between. Calls `look` every second, with the seconds passed.
fn overload(seen: &mut Watched, mut look: impl FnMut(&mut Watched, u64)) {
    let spec = super::super::tree::worker("Look for TODOs");
    for number in 0..10 {
        seen.live.recorded(&worker(number), 0, &convoke_kernel::AgentStarted { spec: spec.clone() }.into());
    }
    let mut due = [0_u64; 10];
    let mut failures = [0_u32; 10];
    for second in 0..240_u64 {
        let now = second * 1_000;
        for number in 0..10_u8 {
            let due = &mut due[usize::from(number)];
            let failures = &mut failures[usize::from(number)];
            if *due <= now {
                *due = now + (500_u64 << (*failures).min(6)).min(32_000) - u64::from(number) * 7;
                *failures += 1;
                seen.live.recorded(&worker(number), now, &called());
                seen.live.recorded(&worker(number), now, &overloaded(*due));
            }
        }
        if second % 20 == 0 {
            seen.live.held(Some(Hold { overloaded: true, until: now + 8_000, waiting: 3 }));
        }
        if second % 20 == 8 {
            seen.live.held(None);
        }
        seen.now += Duration::from_secs(1);
        seen.live.tick(seen.now, now);
        look(seen, second);
    }
}

#[test]
fn in_a_pipe_a_wait_is_told_at_once_and_then_at_least_every_ten_seconds_and_without_a_flood() {
    let mut seen = Watched::new(Talk::Sparse);
    let mut last = 0;
    let mut longest = 0;
    let mut known = 0;
    overload(&mut seen, |seen, second| {
        let lines = seen.shown().len();
        if lines > known {
            longest = longest.max(second - last);
            (last, known) = (second, lines);
        }
    });
    longest = longest.max(239 - last);
    let lines = seen.shown();
    println!(
        "four minutes of overload in a pipe: {} lines, the longest silence {longest} s\n{}",
        lines.len(),
        lines[1]
    );
    assert!(longest <= 10, "{longest} s");
    assert!(lines.len() <= 30, "{} lines", lines.len());
    assert!(
        lines.iter().all(|line| line.contains("overloaded, next try ") && line.contains(" waiting")),
        "{lines:#?}"
    );
    assert!(lines.iter().all(|line| !line.contains(" in 0 s")), "{lines:#?}");
    assert!(lines[1].contains("10 waiting") && !lines[1].contains("10 running"), "{}", lines[1]);
}

#[test]
fn at_a_terminal_the_countdown_moves_every_second() {
    let mut seen = Watched::new(Talk::Live);
    let mut before = Vec::new();
    let mut longest = 0;
    let mut last = 0;
    overload(&mut seen, |seen, second| {
        let shown = seen.shown();
        assert!(shown.iter().any(|row| row.starts_with("overloaded, next try ")), "{shown:#?}");
        assert!(shown.iter().all(|row| !row.contains(" in 0 s")), "{shown:#?}");
        if shown != before {
            longest = longest.max(second - last);
            (before, last) = (shown, second);
        }
    });
    println!("four minutes of overload at a terminal: the longest time without a change {longest} s");
    assert!(longest <= 1, "{longest} s");
}

#[test]
fn a_lead_that_waits_alone_says_it_once_and_with_the_true_next_try() {
    let mut seen = Watched::new(Talk::Sparse);
    seen.live.recorded(&lead(), 0, &called());
    seen.live.recorded(&lead(), 0, &overloaded(2_000));
    seen.live.held(Some(Hold { overloaded: true, until: 7_000, waiting: 1 }));
    seen.now += Duration::from_secs(1);
    seen.live.tick(seen.now, 3_000);
    let lines = seen.shown();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("asking again in 4 s: the API answered 529"), "{lines:?}");
    assert!(!lines[0].contains("next try"), "{lines:?}");
}

/// Agents whose server is away until each has tried ten times, after doubling waits. Says how many lines
/// there were after 16 s and at the end.
fn away(talk: Talk, agents: u8) -> (Vec<String>, Vec<String>) {
    let mut seen = Watched::new(talk);
    let who = |number: u8| if number == 0 { lead() } else { worker(number) };
    let mut next = vec![(0_u64, 0_u32); usize::from(agents)];
    let mut early = Vec::new();
    for second in 0..150_u64 {
        let now = second * 1_000;
        for number in 0..agents {
            let (due, failures) = &mut next[usize::from(number)];
            if *due <= now && *failures < 10 {
                *due = now + (500_u64 << (*failures).min(6)).min(32_000) - u64::from(number) * 7;
                *failures += 1;
                seen.live.recorded(&who(number), now, &called());
                let again = (*failures < 10).then_some(*due);
                let message = "cannot connect to http://127.0.0.1:9 (Connection refused (os error 111)); \
                    check the base URL";
                seen.live.recorded(
                    &who(number),
                    now,
                    &failed(FailureKind::Transport, message, *failures, again),
                );
            }
        }
        seen.now += Duration::from_secs(1);
        seen.live.tick(seen.now, now);
        if second == 16 {
            early = seen.shown();
        }
    }
    seen.live.close();
    (early, seen.shown())
}

#[test]
fn a_server_that_cannot_be_reached_is_one_line_that_says_until_when_it_is_tried_for_any_number_of_agents() {
    for agents in [1, 20] {
        let (early, lines) = away(Talk::Sparse, agents);
        println!(
            "{agents} agents, a server that is away: {} line in 16 s, {} until the end",
            early.len(),
            lines.len()
        );
        assert_eq!(early.len(), 1, "{early:#?}");
        assert!(
            early[0].starts_with("[wait] cannot connect to http://127.0.0.1:9 (Connection refused"),
            "{early:?}"
        );
        assert!(
            early[0].contains(": next try ") && early[0].contains(", the last one in at most 2 min"),
            "{early:?}"
        );
        assert!(early[0].ends_with(&format!("; {agents} waiting")), "{early:?}");
        let waits = lines.iter().filter(|line| line.starts_with("[wait]")).count();
        assert!(waits <= 3 && lines.len() <= waits + 1, "{lines:#?}");
    }
    let (_, lines) = away(Talk::Live, 1);
    let told = lines.iter().filter(|line| line.starts_with("… (no reply")).count();
    assert!(told <= 2, "once where it begins and once where it ends: {lines:#?}");
}

#[test]
fn a_server_that_is_reached_again_is_told_of_again_when_it_is_lost_again() {
    let mut seen = Watched::new(Talk::Sparse);
    let lose = |seen: &mut Watched, second: u64| {
        seen.live.recorded(&lead(), second * 1_000, &called());
        let message = format!("the connection was lost at {second}");
        let event = failed(FailureKind::Transport, &message, 1, Some((second + 5) * 1_000));
        seen.live.recorded(&lead(), second * 1_000, &event);
        seen.now += Duration::from_secs(1);
        seen.live.tick(seen.now, (second + 1) * 1_000);
    };
    lose(&mut seen, 0);
    lose(&mut seen, 5);
    assert_eq!(seen.shown().len(), 1);
    seen.live.piece(&lead(), &Piece::Began);
    seen.now += Duration::from_secs(10);
    lose(&mut seen, 20);
    let lines = seen.shown();
    assert!(lines.len() == 2 && lines[1].contains("was lost at 20"), "{lines:#?}");
}
