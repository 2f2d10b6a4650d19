//! Tables of what follows from what, at times that the test says.

use super::*;

const LIMITED: Fate = Fate::Limited { retry_after_ms: None };

fn ask(pace: &mut Pace, times: usize) {
    for _ in 0..times {
        pace.ask(AdmissionRequest::default());
    }
}

/// A pace with this many under way, all of them writing.
fn busy(most: usize, times: usize) -> (Pace, Vec<Ticket>) {
    let mut pace = Pace::new(most, 0);
    ask(&mut pace, times);
    let step = pace.step(0);
    step.admitted.iter().for_each(|ticket| pace.began(*ticket, 0));
    (pace, step.admitted)
}

fn headers(limit: u64, remaining: u64) -> RateLimits {
    let requests = convoke_claude::Bucket { limit, remaining, reset_at: None };
    RateLimits { requests: Some(requests), ..RateLimits::default() }
}

#[test]
fn the_window_starts_at_what_is_allowed_but_not_above_ten() {
    let check = |most: usize, expected: usize| {
        let mut pace = Pace::new(most, 0);
        ask(&mut pace, 100);
        assert_eq!(pace.step(0).admitted.len(), expected, "{most} allowed");
    };
    check(0, 1);
    check(1, 1);
    check(10, 10);
    check(64, 10);
}

#[test]
fn above_ten_the_window_grows_by_one_a_reply_while_it_is_full() {
    let mut pace = Pace::new(14, 0);
    ask(&mut pace, 100);
    let mut flying = pace.step(0).admitted;
    let mut sizes = Vec::new();
    for _ in 0..6 {
        pace.end(flying.remove(0), Some(Fate::Replied), 0);
        flying.extend(pace.step(0).admitted);
        sizes.push(flying.len());
    }
    assert_eq!(sizes, [11, 12, 13, 14, 14, 14]);

    let (mut idle, flying) = busy(64, 3);
    flying.iter().for_each(|ticket| _ = idle.end(*ticket, Some(Fate::Replied), 0));
    assert_eq!(idle.window, 10, "a window that nobody fills shows nothing");
}

const OVERLOADED: Fate = Fate::Overloaded { retry_after_ms: None };

fn after(wait: u64) -> Fate {
    Fate::Limited { retry_after_ms: Some(wait) }
}

#[test]
fn refusals_shrink_the_window_once_an_episode_and_hold_up_nobody_until_a_whole_round_is_refused() {
    // Refusals in one burst of ten; the window after them, how many more may go at once, and whether all
    // pause.
    let check = |fates: &[Fate], window: usize, more: usize, pauses: bool| {
        let mut pace = Pace::new(10, 0);
        ask(&mut pace, 20);
        let flying = pace.step(0).admitted;
        for (ticket, fate) in flying.iter().zip(fates) {
            assert_eq!(pace.end(*ticket, Some(*fate), 0), None);
        }
        let step = pace.step(0);
        assert_eq!((pace.window, step.admitted.len()), (window, more), "{fates:?}");
        assert_eq!(pace.stats(0).paused_until.is_some(), pauses, "{fates:?}");
        assert_eq!(pace.hold().is_some(), pauses, "{fates:?}");
    };
    check(&[LIMITED], 5, 0, false);
    check(&[LIMITED; 5], 5, 0, false);
    check(&[LIMITED; 6], 5, 1, false);
    check(&[OVERLOADED; 6], 5, 1, false);
    check(&[after(3_600_000)], 10, 1, false);
    check(&[after(7_000), after(9_000)], 5, 0, false);
    check(&[after(0)], 5, 0, false);
    check(&[OVERLOADED; 10], 5, 0, true);
    check(&[LIMITED; 10], 5, 0, true);
    check(&[after(7_000); 10], 5, 0, true);
}

#[test]
fn several_go_on_trying_however_often_an_overloaded_server_refuses() {
    for most in [1, 2, 3, 10] {
        let mut pace = Pace::new(most, 0);
        let mut now = 0;
        ask(&mut pace, 100);
        let mut tries = Vec::new();
        for _ in 0..8 {
            let flying = pace.step(now).admitted;
            tries.push(flying.len());
            for ticket in flying {
                pace.end(ticket, Some(OVERLOADED), now);
            }
            now += 20_000;
        }
        assert_eq!(tries.iter().min(), Some(&most.min(PROBES)), "{most} allowed: {tries:?}");
    }
}

#[test]
fn whoever_waits_when_the_server_is_given_up_is_told_so_and_whoever_comes_after_may_try_once() {
    let mut pace = Pace::new(3, 0);
    let mut now = 0;
    ask(&mut pace, 100);
    let given_up = loop {
        let flying = pace.step(now).admitted;
        if let Some(given_up) = flying.into_iter().find_map(|ticket| pace.end(ticket, Some(OVERLOADED), now))
        {
            break given_up;
        }
        now += 10_000;
    };
    assert_eq!((given_up.ms, now), (240_000, 240_000));
    let told = pace.take_given_up();
    assert!(!told.is_empty() && told.iter().all(|(_, told)| *told == given_up));
    assert_eq!((pace.stats(now).waiting, pace.front()), (0, None));
    let late = pace.ask(AdmissionRequest::default());
    now += 10_000;
    assert!(pace.step(now).admitted.contains(&late));
    assert!(pace.end(late, Some(OVERLOADED), now).is_some());
}

#[test]
fn headers_that_say_that_no_tokens_are_left_pause_all() {
    let (mut pace, flying) = busy(10, 3);
    let none = convoke_claude::Bucket { limit: 1_000, remaining: 0, reset_at: None };
    pace.limits(flying[0], &RateLimits { output_tokens: Some(none), ..RateLimits::default() }, 0);
    pace.end(flying[0], Some(after(12_000)), 0);
    ask(&mut pace, 1);
    assert_eq!(pace.step(0), Step { admitted: vec![], wake_at: Some(12_000) });
    assert_eq!(pace.hold(), Some(GovernorHold { why: Why::Limited, until: 12_000, waiting: 1 }));
}

#[test]
fn a_wait_longer_than_the_bucket_takes_to_fill_is_not_about_the_bucket() {
    let (mut pace, flying) = busy(10, 3);
    pace.limits(flying[0], &headers(60, 0), 0);
    pace.end(flying[0], Some(after(3_600_000)), 0);
    ask(&mut pace, 1);
    assert_eq!(pace.step(0).wake_at, Some(1_000), "sixty a minute are one a second");
    assert_eq!(pace.window, 10, "it was said to one");
}

#[test]
fn after_a_refusal_the_window_grows_by_one_a_round() {
    let (mut pace, flying) = busy(10, 10);
    let mut now = 0;
    flying.iter().for_each(|t| _ = pace.end(*t, Some(Fate::Limited { retry_after_ms: Some(100) }), now));
    let mut windows = Vec::new();
    for _ in 0..6 {
        now += 2_000;
        ask(&mut pace, 30);
        let flying = pace.step(now).admitted;
        for ticket in flying {
            pace.end(ticket, Some(Fate::Replied), now);
            // The queue is never empty, so a slot that is free is taken at once.
            let _ = pace.step(now);
        }
        windows.push(pace.window);
        let rest: Vec<Ticket> = pace.flights.keys().copied().collect();
        rest.into_iter().for_each(|ticket| _ = pace.end(ticket, None, now));
    }
    assert_eq!(windows, [6, 7, 8, 9, 10, 10]);
}

#[test]
fn how_many_at_once_a_server_takes_is_learned_and_tried_again_seldom() {
    let (mut pace, flying) = busy(10, 10);
    // The server takes eight: those write, two are refused.
    flying[8..].iter().for_each(|ticket| _ = pace.end(*ticket, Some(LIMITED), 0));
    assert_eq!((pace.window, pace.ceiling), (9, Some(9)), "nine are writing, which is no crowd");
    let (mut pace, flying) = {
        let mut pace = Pace::new(10, 0);
        ask(&mut pace, 10);
        let flying = pace.step(0).admitted;
        flying[8..].iter().for_each(|ticket| _ = pace.end(*ticket, Some(LIMITED), 0));
        (pace, flying)
    };
    assert_eq!(pace.window, 5, "none is writing yet");
    flying[..8].iter().for_each(|ticket| pace.began(*ticket, 100));
    assert_eq!(pace.window, 8, "eight are writing, so eight can");
    ask(&mut pace, 10);
    let _ = pace.step(2_000);
    pace.end(flying[0], Some(LIMITED), 2_000);
    assert_eq!(pace.window, 8, "what went before the first refusal is not held against the new window");
}

#[test]
fn a_failed_try_costs_one_place_and_the_next_waits_longer() {
    let mut pace = Pace { window: 6, ceiling: Some(5), careful: true, ..Pace::new(10, 0) };
    ask(&mut pace, 6);
    let flying = pace.step(0).admitted;
    flying[..5].iter().for_each(|ticket| pace.began(*ticket, 0));
    pace.end(flying[5], Some(LIMITED), 0);
    assert_eq!((pace.window, pace.ceiling, pace.probe_at), (5, Some(5), 60_000));
    let mut pace =
        Pace { window: 6, ceiling: Some(5), careful: true, probe_wait: 120_000, ..Pace::new(10, 0) };
    ask(&mut pace, 6);
    let flying = pace.step(7).admitted;
    flying.iter().for_each(|ticket| pace.began(*ticket, 7));
    assert_eq!((pace.ceiling, pace.probe_wait, pace.probe_at), (Some(6), 30_000, 7), "a try that went well");
}

#[test]
fn a_refusal_that_the_request_limit_explains_costs_little_of_the_window() {
    let (mut pace, flying) = busy(8, 8);
    pace.limits(flying[0], &headers(60, 0), 0);
    pace.end(flying[0], Some(Fate::Limited { retry_after_ms: Some(2_000) }), 0);
    assert_eq!((pace.window, pace.ceiling), (6, None));
    flying[1..].iter().for_each(|ticket| _ = pace.end(*ticket, None, 0));
    ask(&mut pace, 9);
    assert_eq!(pace.step(0), Step { admitted: vec![], wake_at: Some(2_000) });
    assert_eq!(pace.step(2_000).admitted.len(), 1);
    assert_eq!(pace.step(2_000).wake_at, Some(3_000), "sixty a minute are one a second");
}

#[test]
fn a_limit_that_is_no_longer_told_no_longer_holds_but_a_refusal_need_not_tell_it() {
    // Whether the answer without headers was a reply, and how many may go after it.
    let check = |began: bool, expected: usize| {
        let (mut pace, flying) = busy(10, 1);
        pace.limits(flying[0], &headers(60, 1), 0);
        ask(&mut pace, 9);
        let next = pace.step(0).admitted;
        assert_eq!(next.len(), 1);
        pace.limits(next[0], &RateLimits::default(), 0);
        if began {
            pace.began(next[0], 0);
        }
        assert_eq!(pace.step(0).admitted.len(), expected);
    };
    check(true, 8);
    check(false, 0);
}

#[test]
fn the_lead_goes_first_and_one_beyond_the_window_unless_that_is_known_to_be_refused() {
    let first = || AdmissionRequest { first: true, ..AdmissionRequest::default() };
    let (mut pace, _) = busy(3, 5);
    let lead = pace.ask(first());
    let other = pace.ask(first());
    assert_eq!(pace.step(0).admitted, [lead]);
    pace.end(0, None, 0);
    assert_eq!(pace.step(0).admitted, [other], "before the workers that asked earlier");

    let mut full = Pace { window: 3, ceiling: Some(3), ..Pace::new(10, 0) };
    ask(&mut full, 3);
    assert_eq!(full.step(0).admitted.len(), 3);
    full.ask(first());
    assert_eq!(full.step(0), Step { admitted: vec![], wake_at: None });
}

#[test]
fn whoever_gives_up_leaves_neither_a_place_nor_a_slot_nor_a_request_behind() {
    let mut pace = Pace::new(1, 0);
    ask(&mut pace, 3);
    assert_eq!(pace.step(0).admitted, [0]);
    pace.limits(0, &headers(60, 1), 0);
    pace.withdraw(1);
    pace.end(0, None, 0);
    assert_eq!(pace.step(0).admitted, [2]);
    pace.withdraw(2);
    ask(&mut pace, 1);
    assert_eq!(pace.step(0).admitted, [3], "the one request that was left is still there");
}
