//! The governor with tasks that really wait, on a clock that the test moves.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;

use super::{AdmissionRequest, Fate, Governor, Permit, Why};
use crate::clock::Clock;

fn worker() -> AdmissionRequest {
    AdmissionRequest::default()
}

fn lead() -> AdmissionRequest {
    AdmissionRequest { first: true, ..AdmissionRequest::default() }
}

fn sibling(prefix: &str) -> AdmissionRequest {
    AdmissionRequest { prefix: Some(prefix.to_owned()), ..AdmissionRequest::default() }
}

/// A governor whose asks are named, and the permits in the order they were given.
struct Bench {
    clock: Clock,
    governor: Governor,
    sender: tokio::sync::mpsc::UnboundedSender<(usize, Permit)>,
    permits: UnboundedReceiver<(usize, Permit)>,
}

impl Bench {
    fn new(max_concurrent: usize) -> Self {
        let clock = Clock::stepped(1_000_000);
        let (sender, permits) = unbounded_channel();
        Self { governor: Governor::new(clock.clone(), max_concurrent), clock, sender, permits }
    }

    /// Starts an ask and waits until it stands in the queue or has gone.
    async fn ask(&self, name: usize, ask: AdmissionRequest) -> JoinHandle<()> {
        let total = |governor: &Governor| governor.stats().admitted + governor.stats().waiting as u64;
        let before = total(&self.governor);
        let governor = self.governor.clone();
        let sender = self.sender.clone();
        let task = tokio::spawn(async move {
            let permit = governor.admit(ask).await.unwrap();
            let _ = sender.send((name, permit));
        });
        while total(&self.governor) == before {
            tokio::task::yield_now().await;
        }
        task
    }

    async fn ask_all(&self, names: std::ops::Range<usize>, ask: fn() -> AdmissionRequest) {
        for name in names {
            self.ask(name, ask()).await;
        }
    }

    /// The next permit, for which the clock need not be moved.
    async fn next(&mut self) -> (usize, Permit) {
        let next = tokio::time::timeout(Duration::from_secs(30), self.permits.recv()).await;
        next.expect("nobody was admitted").unwrap()
    }

    async fn take(&mut self, count: usize) -> Vec<(usize, Permit)> {
        let mut taken = Vec::new();
        for _ in 0..count {
            taken.push(self.next().await);
        }
        taken
    }

    /// Moves the clock from wake-up to wake-up until an ask is admitted; says which one and how long it took.
    async fn next_in_time(&mut self) -> (usize, Permit, u64) {
        let start = self.clock.now();
        loop {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            if let Ok((name, permit)) = self.permits.try_recv() {
                return (name, permit, self.clock.now() - start);
            }
            self.clock.advance_to_next().expect("nobody waits for a time and nobody is admitted");
        }
    }

    fn nobody(&mut self) {
        assert!(self.permits.try_recv().is_err(), "somebody was admitted");
    }
}

fn names(permits: &[(usize, Permit)]) -> Vec<usize> {
    permits.iter().map(|(name, _)| *name).collect()
}

#[tokio::test]
async fn never_more_than_allowed_are_under_way_and_they_go_in_order_of_asking() {
    let mut bench = Bench::new(3);
    assert_eq!((bench.governor.max_concurrent(), Governor::new(Clock::system(), 0).max_concurrent()), (3, 1));
    bench.ask_all(0..8, worker).await;
    let mut flying = bench.take(3).await;
    let mut order = names(&flying);
    bench.nobody();
    for _ in 0..5 {
        flying.remove(0).1.done(Fate::Replied);
        flying.push(bench.next().await);
        order.push(flying[2].0);
        assert_eq!(bench.governor.stats().in_flight, 3);
    }
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7]);
    drop(flying);
    let stats = bench.governor.stats();
    assert_eq!(
        (stats.admitted, stats.in_flight, stats.waiting),
        (8, 0, 0),
        "a dropped permit frees its slot"
    );
}

#[tokio::test]
async fn the_lead_overtakes_all_who_wait_and_may_go_one_beyond_the_window() {
    let mut bench = Bench::new(2);
    bench.ask_all(0..6, worker).await;
    let mut flying = bench.take(2).await;
    bench.ask(100, lead()).await;
    flying.push(bench.next().await);
    assert_eq!(flying[2].0, 100);
    bench.ask(101, lead()).await;
    bench.nobody();
    drop(flying.remove(2));
    assert_eq!(bench.next().await.0, 101);
}

/// Has the server say, with its headers, that nothing is left for any request for this long.
async fn told_all(governor: &Governor, wait: u64) {
    let none = convoke_claude::Bucket { limit: 1_000, remaining: 0, reset_at: None };
    let permit = governor.admit(worker()).await.unwrap();
    permit
        .limits(&convoke_claude::RateLimits { tokens: Some(none), ..convoke_claude::RateLimits::default() });
    permit.done(Fate::Limited { retry_after_ms: Some(wait) });
}

#[tokio::test]
async fn after_a_429_that_speaks_of_all_nobody_goes_before_retry_after_and_not_even_the_lead() {
    let mut bench = Bench::new(1);
    told_all(&bench.governor, 12_345).await;
    assert_eq!(bench.governor.stats().paused_until, Some(1_012_345));
    bench.ask(1, worker()).await;
    bench.ask(2, lead()).await;
    let (name, lead, waited) = bench.next_in_time().await;
    assert_eq!((name, waited), (2, 12_345));
    bench.nobody();
    drop(lead);
    assert_eq!(bench.next().await.0, 1);
    assert_eq!((bench.governor.stats().paused_until, bench.governor.stats().limited), (None, 1));
}

#[tokio::test]
async fn after_a_429_of_one_conversation_the_others_go_on_at_once() {
    let mut bench = Bench::new(1);
    bench.ask_all(0..3, worker).await;
    bench.next().await.1.done(Fate::Limited { retry_after_ms: Some(3_600_000) });
    for expected in [1, 2] {
        let (name, permit) = bench.next().await;
        assert_eq!(name, expected);
        permit.done(Fate::Replied);
    }
    assert_eq!((bench.governor.stats().paused_until, bench.clock.now()), (None, 1_000_000));
}

#[tokio::test]
async fn a_wait_of_all_is_told_with_its_reason_and_its_end_and_so_is_that_it_is_over() {
    let mut bench = Bench::new(3);
    let mut holds = bench.governor.holds();
    assert_eq!(*holds.borrow_and_update(), None);
    bench.ask_all(0..8, worker).await;
    for (_, permit) in bench.take(3).await {
        permit.done(Fate::Overloaded { retry_after_ms: None });
    }
    let _others = bench.take(2).await;
    let hold = holds.borrow_and_update().expect("all wait");
    assert_eq!((hold.why, hold.waiting), (Why::Overloaded, 3));
    assert!((1_001_000..=1_001_250).contains(&hold.until), "{hold:?}");
    let (_, _permit, waited) = bench.next_in_time().await;
    assert_eq!(waited, hold.until - 1_000_000);
    assert_eq!(*holds.borrow_and_update(), None);
}

#[tokio::test]
async fn when_the_server_is_given_up_whoever_waits_is_woken_and_leaves_nothing_behind() {
    let bench = Bench::new(3);
    let mut waiting = Vec::new();
    for _ in 0..50 {
        let governor = bench.governor.clone();
        let clock = bench.clock.clone();
        waiting.push(tokio::spawn(async move {
            loop {
                let permit = match governor.admit(worker()).await {
                    Ok(permit) => permit,
                    Err(given_up) => return (clock.now(), given_up),
                };
                if let Some(given_up) = permit.done(Fate::Overloaded { retry_after_ms: None }) {
                    return (clock.now(), given_up);
                }
                clock.sleep_until(clock.now() + 30_000).await;
            }
        }));
    }
    let mut ended = Vec::new();
    for task in waiting {
        while !task.is_finished() {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            bench.clock.advance_to_next();
        }
        ended.push(task.await.unwrap());
    }
    let last = ended.iter().map(|(at, _)| at - 1_000_000).max().unwrap();
    println!(
        "the last of 50 was told after {last} ms, {} requests were refused",
        bench.governor.stats().overloaded
    );
    assert!(last < 300_000);
    assert!(ended.iter().all(|(_, given_up)| given_up.ms >= 240_000));
    assert_eq!((bench.governor.stats().waiting, bench.governor.stats().in_flight), (0, 0));
}

#[tokio::test]
async fn the_window_shrinks_on_an_overload_and_recovers_with_replies() {
    let mut bench = Bench::new(8);
    bench.ask_all(0..200, worker).await;
    let mut flying = bench.take(8).await;
    flying.remove(0).1.done(Fate::Overloaded { retry_after_ms: None });
    flying.clear();
    assert_eq!(bench.governor.stats().window, 4);
    let (name, permit, _) = bench.next_in_time().await;
    flying.push((name, permit));
    let mut windows = vec![];
    for _ in 0..40 {
        while flying.len() < bench.governor.stats().window {
            flying.push(bench.next().await);
        }
        flying.remove(0).1.done(Fate::Replied);
        windows.push(bench.governor.stats().window);
    }
    assert!(windows.is_sorted(), "{windows:?}");
    assert_eq!(windows.last(), Some(&8));
}

#[tokio::test]
async fn siblings_wait_until_the_first_one_begins_and_hold_up_nobody_else() {
    let mut bench = Bench::new(10);
    for name in 0..4 {
        bench.ask(name, sibling("same")).await;
    }
    bench.ask(10, sibling("other")).await;
    bench.ask(11, worker()).await;
    let flying = bench.take(3).await;
    assert_eq!(names(&flying), [0, 10, 11]);
    bench.nobody();
    flying[0].1.began();
    let rest = bench.take(3).await;
    assert_eq!(names(&rest), [1, 2, 3]);
    bench.ask(4, sibling("same")).await;
    assert_eq!(bench.next().await.0, 4, "for five minutes the prefix is known");
}

#[tokio::test]
async fn siblings_wait_at_most_five_seconds() {
    let mut bench = Bench::new(10);
    bench.ask(0, sibling("same")).await;
    let _first = bench.next().await;
    bench.ask(1, sibling("same")).await;
    bench.ask(2, sibling("same")).await;
    let (name, _one, waited) = bench.next_in_time().await;
    assert_eq!((name, waited), (1, 5_000));
    assert_eq!(bench.next().await.0, 2);
}

#[tokio::test]
async fn when_the_first_sibling_ends_without_a_beginning_the_next_goes_ahead() {
    let mut bench = Bench::new(10);
    for name in 0..3 {
        bench.ask(name, sibling("same")).await;
    }
    let first = bench.next().await;
    bench.nobody();
    first.1.done(Fate::OtherFailure);
    let second = bench.next().await;
    assert_eq!(second.0, 1);
    bench.nobody();
    second.1.done(Fate::Replied);
    assert_eq!(bench.next().await.0, 2);
}

#[tokio::test]
async fn asks_that_are_given_up_leave_no_hole() {
    let mut bench = Bench::new(1);
    let mut tasks = Vec::new();
    for name in 0..5 {
        tasks.push(bench.ask(name, worker()).await);
    }
    let first = bench.next().await;
    for name in [1, 3] {
        tasks[name].abort();
        while !tasks[name].is_finished() {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(bench.governor.stats().waiting, 2);
    drop(first);
    let second = bench.next().await;
    drop(second.1);
    assert_eq!((second.0, bench.next().await.0), (2, 4));

    // One that was admitted and dropped before it could look.
    let mut admit = Box::pin(bench.governor.admit(worker()));
    let held = bench.governor.admit(worker()).await.unwrap();
    tokio::select! { biased; _ = &mut admit => panic!("the slot is taken"), () = async {} => {} }
    drop(held);
    assert_eq!(bench.governor.stats().in_flight, 1);
    drop(admit);
    assert_eq!(bench.governor.stats().in_flight, 0);
    let _next = bench.governor.admit(worker()).await.unwrap();
}

#[tokio::test]
async fn when_the_one_who_keeps_the_time_gives_up_another_keeps_it() {
    let mut bench = Bench::new(2);
    told_all(&bench.governor, 9_000).await;
    let keeper = bench.ask(0, worker()).await;
    bench.ask(1, worker()).await;
    while bench.clock.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    keeper.abort();
    let (name, _permit, waited) = bench.next_in_time().await;
    assert_eq!((name, waited), (1, 9_000));
}

#[tokio::test]
async fn a_thousand_asks_are_all_admitted_with_one_timer_and_in_order() {
    let mut bench = Bench::new(7);
    let limits = |remaining: u64| convoke_claude::RateLimits {
        requests: Some(convoke_claude::Bucket { limit: 600, remaining, reset_at: None }),
        ..convoke_claude::RateLimits::default()
    };
    let first = bench.governor.admit(worker()).await.unwrap();
    first.limits(&limits(20));
    first.done(Fate::Replied);
    bench.ask_all(0..1_000, worker).await;
    for expected in 0..1_000 {
        let (name, permit, _) = bench.next_in_time().await;
        assert_eq!(name, expected);
        assert!(bench.clock.sleepers() <= 1, "{} timers", bench.clock.sleepers());
        permit.done(if expected % 7 == 0 { Fate::OtherFailure } else { Fate::Replied });
    }
    let took = bench.clock.now() - 1_000_000;
    assert!((97_000..99_000).contains(&took), "980 of them came at 600 a minute, in {took} ms");
    assert_eq!((bench.governor.stats().waiting, bench.governor.stats().admitted), (0, 1_001));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_on_many_threads_that_fail_and_give_up_leave_nothing_behind() {
    let governor = Governor::new(Clock::jumping(1_000_000), 6);
    let tasks: Vec<_> = (0..600_u64)
        .map(|number| {
            let governor = governor.clone();
            tokio::spawn(async move {
                for turn in 0..5 {
                    let prefix = (number % 3 == 0).then(|| format!("p{}", number % 9));
                    let permit = governor
                        .admit(AdmissionRequest { first: number % 50 == 0, prefix, conversation: None })
                        .await
                        .unwrap();
                    assert!(governor.stats().in_flight <= 7, "six and one that goes first");
                    tokio::task::yield_now().await;
                    permit.began();
                    match (number + turn) % 11 {
                        0 => drop(permit),
                        1 => drop(permit.done(Fate::Limited { retry_after_ms: None })),
                        2 => drop(permit.done(Fate::Limited { retry_after_ms: Some(700) })),
                        3 => drop(permit.done(Fate::Overloaded { retry_after_ms: None })),
                        4 => drop(permit.done(Fate::OtherFailure)),
                        _ => drop(permit.done(Fate::Replied)),
                    }
                }
            })
        })
        .collect();
    let mut gave_up = 0;
    for (number, task) in tasks.into_iter().enumerate() {
        if number % 4 == 0 {
            task.abort();
        }
        let ended =
            tokio::time::timeout(Duration::from_secs(60), task).await.expect("somebody waits for ever");
        match ended {
            Ok(()) => {}
            Err(error) if error.is_cancelled() => gave_up += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(gave_up > 0);
    let stats = governor.stats();
    assert_eq!((stats.in_flight, stats.waiting), (0, 0));
    assert!(stats.window >= 1 && stats.admitted >= 450 * 5, "{stats:?}");
}
