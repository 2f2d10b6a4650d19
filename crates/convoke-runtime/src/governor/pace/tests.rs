//! Tables of what follows from what, at times that the test says.

use super::*;

const LIMITED: Fate = Fate::Limited { retry_after_ms: None };

fn ask(pace: &mut Pace, times: usize) {
    for _ in 0..times {
        pace.ask(Ask::default());
    }
}

/// A pace with this many under way, all of them writing.
fn busy(most: usize, times: usize) -> (Pace, Vec<Ticket>) {
    let mut pace = Pace::new(most);
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
        let mut pace = Pace::new(most);
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
    let mut pace = Pace::new(14);
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
    flying.iter().for_each(|ticket| idle.end(*ticket, Some(Fate::Replied), 0));
    assert_eq!(idle.window, 10, "a window that nobody fills shows nothing");
}

#[test]
fn a_refusal_pauses_everybody_and_shrinks_the_window_once_an_episode() {
    // Refusals in one burst of ten; the pause and the window after them.
    let check = |fates: &[Fate], pause: u64, window: usize| {
        let mut pace = Pace::new(10);
        ask(&mut pace, 20);
        let flying = pace.step(0).admitted;
        for (ticket, fate) in flying.iter().zip(fates) {
            pace.end(*ticket, Some(*fate), 0);
        }
        assert_eq!((pace.paused_until(0), pace.window), (Some(pause), window), "{fates:?}");
        assert_eq!(pace.step(pause - 1), Step { admitted: vec![], wake_at: Some(pause) });
    };
    let after = |wait: u64| Fate::Limited { retry_after_ms: Some(wait) };
    check(&[LIMITED], 1_000, 5);
    check(&[LIMITED; 5], 1_000, 5);
    check(&[after(7_000)], 7_000, 5);
    check(&[after(7_000), after(9_000), after(1_000), LIMITED], 9_000, 5);
    check(&[after(0)], 1_000, 5);
    check(&[Fate::Overloaded { retry_after_ms: None }], 1_000, 5);
    check(&[Fate::Overloaded { retry_after_ms: Some(3_000) }; 2], 3_000, 5);
}

#[test]
fn pauses_double_up_to_a_minute_while_nothing_goes_through() {
    let pauses = |fate: Fate| {
        let (mut pace, mut now, mut pauses) = (Pace::new(1), 0, Vec::new());
        for _ in 0..9 {
            ask(&mut pace, 1);
            let flying = pace.step(now).admitted;
            pace.end(flying[0], Some(fate), now);
            let until = pace.paused_until(now).unwrap();
            pauses.push((until - now) / 1_000);
            now = until;
        }
        ask(&mut pace, 2);
        let flying = pace.step(now).admitted;
        pace.end(flying[0], Some(Fate::Replied), now);
        let flying = pace.step(now).admitted;
        pace.end(flying[0], Some(fate), now);
        pauses.push((pace.paused_until(now).unwrap() - now) / 1_000);
        pauses
    };
    assert_eq!(pauses(LIMITED), [1, 2, 4, 8, 16, 32, 60, 60, 60, 1]);
    assert_eq!(pauses(Fate::Overloaded { retry_after_ms: None }), [1, 2, 4, 8, 16, 32, 60, 60, 60, 1]);
}

#[test]
fn after_a_refusal_the_window_grows_by_one_a_round() {
    let (mut pace, flying) = busy(10, 10);
    let mut now = 0;
    flying.iter().for_each(|t| pace.end(*t, Some(Fate::Limited { retry_after_ms: Some(100) }), now));
    let mut windows = Vec::new();
    for _ in 0..6 {
        now += 1_000;
        ask(&mut pace, 30);
        let flying = pace.step(now).admitted;
        for ticket in flying {
            pace.end(ticket, Some(Fate::Replied), now);
            // The queue is never empty, so a slot that is free is taken at once.
            let _ = pace.step(now);
        }
        windows.push(pace.window);
        let rest: Vec<Ticket> = pace.flights.keys().copied().collect();
        rest.into_iter().for_each(|ticket| pace.end(ticket, None, now));
    }
    assert_eq!(windows, [6, 7, 8, 9, 10, 10]);
}

#[test]
fn how_many_at_once_a_server_takes_is_learned_and_tried_again_seldom() {
    let (mut pace, flying) = busy(10, 10);
    // The server takes eight: those write, two are refused.
    flying[8..].iter().for_each(|ticket| pace.end(*ticket, Some(LIMITED), 0));
    assert_eq!((pace.window, pace.ceiling), (9, Some(9)), "nine are writing, which is no crowd");
    let (mut pace, flying) = {
        let mut pace = Pace::new(10);
        ask(&mut pace, 10);
        let flying = pace.step(0).admitted;
        flying[8..].iter().for_each(|ticket| pace.end(*ticket, Some(LIMITED), 0));
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
    let mut pace = Pace { window: 6, ceiling: Some(5), careful: true, ..Pace::new(10) };
    ask(&mut pace, 6);
    let flying = pace.step(0).admitted;
    flying[..5].iter().for_each(|ticket| pace.began(*ticket, 0));
    pace.end(flying[5], Some(LIMITED), 0);
    assert_eq!((pace.window, pace.ceiling, pace.probe_at), (5, Some(5), 60_000));
    let mut pace = Pace { window: 6, ceiling: Some(5), careful: true, probe_wait: 120_000, ..Pace::new(10) };
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
    flying[1..].iter().for_each(|ticket| pace.end(*ticket, None, 0));
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
    let first = || Ask { first: true, prefix: None };
    let (mut pace, _) = busy(3, 5);
    let (lead, other) = (pace.ask(first()), pace.ask(first()));
    assert_eq!(pace.step(0).admitted, [lead]);
    pace.end(0, None, 0);
    assert_eq!(pace.step(0).admitted, [other], "before the workers that asked earlier");

    let mut full = Pace { window: 3, ceiling: Some(3), ..Pace::new(10) };
    ask(&mut full, 3);
    assert_eq!(full.step(0).admitted.len(), 3);
    full.ask(first());
    assert_eq!(full.step(0), Step { admitted: vec![], wake_at: None });
}

#[test]
fn whoever_gives_up_leaves_neither_a_place_nor_a_slot_nor_a_request_behind() {
    let mut pace = Pace::new(1);
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
