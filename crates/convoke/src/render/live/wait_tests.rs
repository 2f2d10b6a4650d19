//! What a person is told while the server is waited for, second by second on times that the test says.

use convoke_kernel::{Failure, FailureKind, Retry};

use super::tests::{Watched, called, lead};
use super::*;

fn worker(number: u8) -> AgentId {
    AgentId::from_bits([number + 10; 10])
}

fn overloaded(retry_at: u64) -> Event {
    let message = "the API answered 529 (overloaded_error): Overloaded".to_owned();
    let failure = Failure { kind: FailureKind::Api, message, retry: Retry::Soon, request_id: None, unbilled: true };
    ModelFailed { call: 1, attempt: 1, failure, retry_at: Some(retry_at) }.into()
}

/// Ten workers that a server refuses for four minutes: each asks again after doubling waits, and all pause in between. Calls `look` every
/// second, with the seconds passed.
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
            let (due, failures) = (&mut due[usize::from(number)], &mut failures[usize::from(number)]);
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
    let (mut last, mut longest, mut known) = (0, 0, 0);
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
    assert!(lines.iter().all(|line| line.contains("overloaded, next try ") && line.contains(" waiting")), "{lines:#?}");
    assert!(lines.iter().all(|line| !line.contains(" in 0 s")), "{lines:#?}");
    assert!(lines[1].contains("10 waiting") && !lines[1].contains("10 running"), "{}", lines[1]);
}

#[test]
fn at_a_terminal_the_countdown_moves_every_second() {
    let mut seen = Watched::new(Talk::Live);
    let (mut before, mut longest, mut last) = (Vec::new(), 0, 0);
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
