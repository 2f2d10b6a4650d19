//! The rules of the cache, on prompts made of numbers.

use super::*;
use crate::accounts::prompt::Block;

const MINUTE: u64 = 60_000;
const SHORT: Option<Ttl> = Some(Ttl::FiveMinutes);
const LONG: Option<Ttl> = Some(Ttl::Hour);

/// A prompt of blocks of 100 tokens each, marked at these positions, for a model with a minimum of 1,000.
fn prompt(length: usize, marks: &[(usize, Option<Ttl>)]) -> Prompt {
    let block = |index: usize| Block {
        key: index as u64,
        tokens: 100 * (index as u64 + 1),
        mark: marks.iter().find(|(at, _)| *at == index).and_then(|(_, ttl)| *ttl),
        eligible: true,
    };
    Prompt { blocks: (0..length).map(block).collect(), minimum: 1_000 }
}

/// Runs a request at this time and gives back its tokens: fresh, read, written for five minutes and for an
/// hour.
fn run(cache: &mut Cache, prompt: &Prompt, now: u64) -> [u64; 4] {
    let plan = cache.look(prompt, now);
    cache.refresh(&plan, now);
    cache.write(&plan, now);
    let Usage { input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, .. } =
        plan.usage;
    assert_eq!(plan.usage.prompt_tokens(), prompt.tokens());
    [input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens]
}

#[test]
fn a_prefix_below_the_minimum_is_never_written() {
    let cache = &mut Cache::default();
    assert_eq!(run(cache, &prompt(12, &[(8, SHORT)]), 0), [1_200, 0, 0, 0]);
    assert_eq!(run(cache, &prompt(12, &[(9, SHORT)]), 0), [200, 0, 1_000, 0]);
    assert_eq!(run(cache, &prompt(12, &[(8, SHORT)]), 0), [1_200, 0, 0, 0]);
    assert_eq!(run(cache, &prompt(12, &[(9, SHORT)]), 0), [200, 1_000, 0, 0]);
}

#[test]
fn nothing_is_written_or_read_without_a_mark() {
    let cache = &mut Cache::default();
    assert_eq!(run(cache, &prompt(30, &[]), 0), [3_000, 0, 0, 0]);
    assert_eq!(run(cache, &prompt(30, &[(29, SHORT)]), 0), [0, 0, 3_000, 0]);
    assert_eq!(run(cache, &prompt(30, &[]), 0), [3_000, 0, 0, 0]);
}

#[test]
fn a_mark_looks_back_over_twenty_positions_its_own_counted() {
    let check = |mark: usize, expected: [u64; 4]| {
        let cache = &mut Cache::default();
        run(cache, &prompt(12, &[(11, SHORT)]), 0);
        assert_eq!(run(cache, &prompt(40, &[(mark, SHORT)]), 0), expected, "mark at {mark}");
    };
    check(30, [900, 1_200, 1_900, 0]);
    check(31, [800, 0, 3_200, 0]);
}

#[test]
fn a_second_mark_near_the_old_one_saves_a_turn_of_many_blocks() {
    let cache = &mut Cache::default();
    run(cache, &prompt(12, &[(11, SHORT)]), 0);
    assert_eq!(run(cache, &prompt(40, &[(20, SHORT), (39, SHORT)]), 0), [0, 1_200, 2_800, 0]);
    // Both marks have written.
    assert_eq!(run(cache, &prompt(21, &[(20, SHORT)]), 0), [0, 2_100, 0, 0]);
}

#[test]
fn an_entry_is_read_only_at_a_place_where_somebody_wrote() {
    let cache = &mut Cache::default();
    run(cache, &prompt(20, &[(19, SHORT)]), 0);
    assert_eq!(run(cache, &prompt(15, &[(14, SHORT)]), 0), [0, 0, 1_500, 0], "a longer entry does not help");
}

#[test]
fn an_entry_expires_five_minutes_after_the_start_of_its_last_use() {
    let cache = &mut Cache::default();
    let asked = prompt(10, &[(9, SHORT)]);
    assert_eq!(run(cache, &asked, 0), [0, 0, 1_000, 0]);
    assert_eq!(run(cache, &asked, 5 * MINUTE - 1), [0, 1_000, 0, 0]);
    assert_eq!(run(cache, &asked, 10 * MINUTE - 2), [0, 1_000, 0, 0], "the use before has refreshed it");
    assert_eq!(run(cache, &asked, 15 * MINUTE - 2), [0, 0, 1_000, 0]);
}

#[test]
fn an_entry_of_an_hour_lives_for_an_hour() {
    let cache = &mut Cache::default();
    let asked = prompt(10, &[(9, LONG)]);
    assert_eq!(run(cache, &asked, 0), [0, 0, 0, 1_000]);
    assert_eq!(run(cache, &asked, 60 * MINUTE - 1), [0, 1_000, 0, 0]);
    assert_eq!(run(cache, &asked, 120 * MINUTE - 1), [0, 0, 0, 1_000]);
}

#[test]
fn a_mark_of_an_hour_uses_an_entry_of_five_minutes_as_it_is() {
    let cache = &mut Cache::default();
    run(cache, &prompt(10, &[(9, SHORT)]), 0);
    assert_eq!(run(cache, &prompt(10, &[(9, LONG)]), MINUTE), [0, 1_000, 0, 0]);
    assert_eq!(run(cache, &prompt(10, &[(9, LONG)]), 6 * MINUTE), [0, 0, 0, 1_000]);
}

#[test]
fn what_is_written_is_split_at_the_last_mark_of_an_hour() {
    let cache = &mut Cache::default();
    let asked = prompt(30, &[(9, LONG), (19, LONG), (24, SHORT)]);
    assert_eq!(run(cache, &asked, 0), [500, 0, 500, 2_000]);
    assert_eq!(run(cache, &asked, 10 * MINUTE), [500, 2_000, 500, 0], "the hour's part is still there");
}

#[test]
fn looking_changes_nothing_and_a_request_that_never_begins_leaves_nothing() {
    let cache = &mut Cache::default();
    let asked = prompt(10, &[(9, SHORT)]);
    let plan = cache.look(&asked, 0);
    cache.refresh(&plan, 0);
    assert_eq!(cache.look(&asked, 1).usage.cache_read_tokens, 0);
    cache.write(&plan, 0);
    assert_eq!(cache.look(&asked, 2).usage.cache_read_tokens, 1_000);
    assert_eq!(
        cache.look(&asked, 5 * MINUTE).usage.cache_read_tokens,
        0,
        "it lives from the request's start"
    );
}
