//! Where a call stands in the structure of its program: the same in whatever order agents end, before and
//! after every `await`.

use std::collections::{BTreeMap, BTreeSet};

use convoke_script::Want;

use crate::drive::{Order, Ran, echo, program, run, start};

fn paths(ran: &Ran) -> BTreeMap<String, String> {
    ran.calls
        .iter()
        .filter_map(|call| {
            if let Want::Agent(agent) = &call.want {
                Some((agent.prompt.clone(), call.path.clone()))
            } else {
                None
            }
        })
        .collect()
}

/// The path of every prompt, which must be the same in every order.
fn stable(body: &str) -> BTreeMap<String, String> {
    let go = |order| paths(&run(start(&program(body)), order, 500, echo));
    let first = go(Order::First);
    for order in [Order::Last, Order::Shuffled(1), Order::Shuffled(2), Order::Shuffled(3), Order::Shuffled(4)]
    {
        assert_eq!(first, go(order), "{order:?}");
    }
    first
}

fn all_differ(paths: &BTreeMap<String, String>) {
    let unique: BTreeSet<&String> = paths.values().collect();
    assert_eq!(unique.len(), paths.len(), "{paths:?}");
}

#[test]
fn a_call_at_the_top_has_an_empty_path() {
    let paths = stable("await agent('a')\nawait agent('b')");
    assert_eq!(paths["a"], "");
    assert_eq!(paths["b"], "");
}

#[test]
fn slots_of_parallel_and_stages_of_pipeline_are_told_apart() {
    let paths = stable(
        "await parallel([() => agent('p0'), () => agent('p1')])
         await pipeline(['x', 'y'], v => agent(`s0${v}`), (_, v) => agent(`s1${v}`))",
    );
    all_differ(&paths);
}

#[test]
fn the_second_parallel_is_another_place_than_the_first() {
    let paths = stable("await parallel([() => agent('a')])\nawait parallel([() => agent('b')])");
    all_differ(&paths);
}

#[test]
fn a_path_goes_on_after_an_await() {
    let paths = stable(
        "await parallel(['a', 'b'].map(v => async () => {
           await agent(`${v}1`)
           await null
           await agent(`${v}2`)
           await Promise.resolve().then(() => agent(`${v}3`))
           return agent(`${v}4`).then(() => agent(`${v}5`))
         }))
         await agent('end')",
    );
    for slot in ["a", "b"] {
        for n in 2..=5 {
            assert_eq!(paths[&format!("{slot}1")], paths[&format!("{slot}{n}")], "{slot}{n}: {paths:?}");
        }
    }
    assert_ne!(paths["a1"], paths["b1"]);
    assert_eq!(paths["end"], "", "and ends with the thunk");
}

#[test]
fn nested_structures_nest_their_paths() {
    let paths = stable(
        "await pipeline(['x', 'y'], async v => {
           await agent(`${v} before`)
           return parallel([0, 1].map(m => async () => {
             await agent(`${v}${m} before`)
             return parallel([0, 1].map(k => () => agent(`${v}${m}${k}`)))
           }))
         }, (_, v) => agent(`${v} second`))",
    );
    all_differ(&paths);
    assert!(paths["x00"].starts_with(paths["x0 before"].as_str()), "{paths:?}");
    assert!(paths["x0 before"].starts_with(paths["x before"].as_str()), "{paths:?}");
}

#[test]
fn two_structures_that_run_at_once_in_one_thunk_are_two_places() {
    let paths = stable(
        "await parallel([async () => {
           await agent('first')
           const one = parallel([() => agent('a')])
           const two = parallel([() => agent('b')])
           await Promise.all([one, two])
           await parallel([() => agent('c')])
         }])",
    );
    all_differ(&paths);
}

#[test]
fn what_a_child_does_stands_below_the_call_that_started_it() {
    let body = "await parallel(['p', 'q'].map(p => () => workflow('child_count', \
        { package: p, parts: ['a', 'b'] }).catch(() => null)))";
    let paths = stable(body);
    assert_eq!(paths.len(), 4);
    all_differ(&paths);
}
