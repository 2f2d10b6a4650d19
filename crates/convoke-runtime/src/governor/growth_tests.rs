//! How the number of requests under way grows with replies of half a minute: a thousand agents on a clock
//! that jumps when nothing else can happen.

use std::sync::Arc;

use super::storm_tests::{Allows, on_jumping_time};

/// How long the server writes one reply.
const REPLY: u64 = 30_000;

/// What was seen in each second.
#[derive(Debug, Clone, Copy)]
struct Second {
    running: usize,
    window: usize,
    in_flight: usize,
    refused: usize,
}

/// A thousand agents that always have a request, for so many seconds. `begins` says whether a reply begins
/// when its request arrives; else nothing is heard before its end.
fn thousand(allows: Allows, begins: bool, seconds: usize) -> Vec<Second> {
    on_jumping_time(1_000, allows, |world| async move {
        let agents: Vec<_> = (0..1_000)
            .map(|number| {
                let world = Arc::clone(&world);
                tokio::spawn(async move {
                    loop {
                        world.long_request(number, REPLY, begins).await;
                    }
                })
            })
            .collect();
        let mut seen = Vec::new();
        for _ in 0..seconds {
            world.pass(1_000).await;
            let (running, refused) = world.served();
            let stats = world.governor().stats();
            seen.push(Second { running, window: stats.window, in_flight: stats.in_flight, refused });
        }
        agents.iter().for_each(|agent| agent.abort());
        seen
    })
}

#[test]
fn a_thousand_are_under_way_within_a_minute_at_a_server_that_never_refuses() {
    for begins in [true, false] {
        let seen = thousand(Allows::AtOnce(usize::MAX), begins, 60);
        let first = seen.iter().position(|second| second.running == 1_000);
        let after = |seconds: usize| seen[seconds - 1].running;
        println!(
            "replies begin at once: {begins}; 1,000 under way after {} s; 5 s: {}, 10 s: {}, 20 s: {}, \
             30 s: {}",
            first.map_or_else(|| "more than 60".to_owned(), |at| (at + 1).to_string()),
            after(5),
            after(10),
            after(20),
            after(30),
        );
        assert!(first.is_some(), "{:?}", seen.last());
        assert_eq!(seen.last().map(|second| second.refused), Some(0));
        // Servers refuse a sharp rise: in no second does it grow by more than a fifth and the first few.
        let mut pairs = seen.windows(2).map(|pair| (pair[0].running, pair[1].running));
        assert!(pairs.all(|(was, is)| is <= was + was / 5 + 2), "{seen:?}");
    }
}

#[test]
fn a_server_that_refuses_is_kept_within_what_it_takes_and_few_refusals_teach_it() {
    // What it takes, how it refuses and whether replies begin at once; how many refusals there may be in the
    // ten minutes, and the least share of what it takes that has to be used in the last five.
    let check = |allows: Allows, takes: usize, begins: bool, most_refused: usize, least: f64| {
        let seen = thousand(allows, begins, 600);
        let first = seen.iter().position(|second| second.refused > 0).unwrap();
        let refused = seen.last().map(|second| second.refused).unwrap();
        let used = seen[300..].iter().map(|second| second.running).sum::<usize>() as f64;
        let share = used / (takes * 300) as f64;
        let beyond = seen[first..].iter().map(|second| second.in_flight.saturating_sub(takes)).max().unwrap();
        let windows: Vec<usize> = seen[first..].iter().map(|second| second.window).collect();
        println!(
            "takes {takes}, replies begin at once: {begins}; first refused after {first} s, {refused} \
             refused in ten minutes, at most {beyond} too many under way, window {}..={}, {:.0} % used",
            windows.iter().min().unwrap(),
            windows.iter().max().unwrap(),
            share * 100.0
        );
        assert!(refused <= most_refused, "{refused} refused");
        assert!(beyond <= 8, "{beyond} more than it takes");
        assert!(share >= least, "{share}");
        let halved = windows.iter().take(3).any(|window| *window <= takes / 2 + 5);
        let proven = begins && matches!(allows, Allows::AtOnce(_));
        assert!(proven || halved, "halved, unless it is known to write so many: {:?}", &windows[..3]);
    };
    check(Allows::AtOnce(200), 200, true, 50, 0.95);
    check(Allows::AtOnce(200), 200, false, 50, 0.75);
    check(Allows::Carries(200), 200, true, 200, 0.6);
    check(Allows::Carries(200), 200, false, 200, 0.6);
}
