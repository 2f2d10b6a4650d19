//! Requests that are cut off: what is booked for them is a bound of what they can have cost, and comes down when more is known.
//! Random schedules of kills are played in `convoke-runtime` (`money::kills`), where their number can be set from outside.

use super::*;

/// Tokens a second.
const FASTEST: u32 = 200;

fn timed() -> Rates {
    let tiers = vec![RateTier { above: 0, input: 6_250, output: 25_000 }];
    Rates { tiers, overhead_tokens: 2_000, output_per_second: Some(FASTEST) }
}

fn sending(process: &str, input_tokens: u64, max_tokens: u32) -> Sending {
    Sending {
        process: process.to_owned(),
        input_tokens,
        max_tokens,
        rates: timed(),
        kind: String::new(),
        prefix: String::new(),
    }
}

fn bound(input_tokens: u64, max_tokens: u32) -> Amount {
    let tokens = input_tokens + 2_000 + u64::from(max_tokens);
    amount(tokens, timed().bound(input_tokens, max_tokens))
}

/// A ledger with one request in flight, sent at 10 s.
fn sent() -> Book {
    let mut book = Book::with(usd(10_000));
    book.at = 10_000;
    let sending = sending("p1", 10_000, 64_000);
    book.keep(book.ledger.send("a", 1, 1, (bound(10_000, 64_000), nano(5)), Some(sending)).unwrap());
    book
}

#[test]
fn a_request_that_was_cut_off_is_booked_at_what_its_time_allowed() {
    let check = |fate: Fate, output: u32| {
        let mut book = sent();
        book.at = 100_000;
        book.keep(book.ledger.take_up("p2", |_, _| fate));
        assert_eq!(book.ledger.spent(), bound(10_000, output), "{fate:?}");
        assert_eq!(book.ledger.unconfirmed(), book.ledger.spent());
        assert_eq!(book.rebuilt(), book.ledger);
    };
    // Three seconds, and two in which the server finds out.
    check(Fate::Ended { by: 13_000 }, 1_000);
    check(Fate::Ended { by: 13_001 }, 1_001);
    check(Fate::Ended { by: 9_000 }, 400);
    check(Fate::Ended { by: u64::MAX }, 64_000);
    check(Fate::Unknown, 64_000);
    let mut book = sent();
    book.keep(book.ledger.take_up("p2", |_, _| Fate::Lives));
    assert_eq!((book.ledger.spent(), book.ledger.held()), (Amount::ZERO, bound(10_000, 64_000).plus(nano(5))));
}

#[test]
fn a_model_whose_speed_nobody_stated_is_booked_at_its_bound() {
    let mut book = Book::with(usd(10_000));
    let mut sending = sending("p1", 10_000, 64_000);
    sending.rates.output_per_second = None;
    book.keep(book.ledger.send("a", 1, 1, (bound(10_000, 64_000), nano(5)), Some(sending)).unwrap());
    book.keep(book.ledger.take_up("p2", |_, _| Fate::Ended { by: 1 }));
    assert_eq!(book.ledger.spent(), bound(10_000, 64_000));
}

#[test]
fn the_same_request_sent_again_says_what_the_prompt_of_the_lost_one_was() {
    let mut book = sent();
    book.keep(book.ledger.take_up("p2", |_, _| Fate::Ended { by: 13_000 }));
    let again = sending("p2", 10_000, 64_000);
    book.keep(book.ledger.send("a", 1, 2, (bound(10_000, 64_000), nano(5)), Some(again)).unwrap());
    book.keep(book.ledger.settle("a", 1, 2, Some(amount(3_500, 77))).unwrap());
    book.keep(book.ledger.confirm_prompt("a", 1, 3_000));
    let lost = amount(3_000 + 1_000, 3_000 * 6_250 + 1_000 * 25_000);
    assert_eq!(book.ledger.unconfirmed(), lost);
    assert_eq!(book.ledger.spent(), lost.plus(amount(3_500, 77)));
    assert_eq!(book.ledger.confirmed(), amount(3_500, 77));
    // Another request of the agent's, or one that it is told twice, says nothing about it.
    assert!(book.ledger.confirm_prompt("a", 1, 10).is_empty() && book.ledger.confirm_prompt("a", 2, 10).is_empty());
    assert_eq!(book.rebuilt(), book.ledger);
}

#[test]
fn a_usage_that_comes_after_all_takes_the_place_of_the_bound() {
    let mut book = sent();
    book.keep(book.ledger.take_up("p2", |_, _| Fate::Unknown));
    book.keep(book.ledger.settle("a", 1, 1, Some(amount(11_000, 99))).unwrap());
    assert_eq!((book.ledger.spent(), book.ledger.unconfirmed()), (amount(11_000, 99), Amount::ZERO));
    assert!(book.ledger.settle("a", 1, 1, Some(amount(11_000, 99))).is_err(), "it is told once");
    assert_eq!(book.rebuilt(), book.ledger);
}

#[test]
fn only_the_process_that_sent_a_request_knows_when_it_broke_off() {
    let mut book = sent();
    book.at = 13_000;
    book.keep(book.ledger.cut_off("a", "p1", 13_000));
    assert_eq!(book.ledger.spent(), bound(10_000, 1_000));
    let mut book = sent();
    book.keep(book.ledger.cut_off("a", "another", 13_000));
    assert_eq!(book.ledger.spent(), bound(10_000, 64_000));
}

#[test]
fn a_person_writes_off_what_nobody_confirmed_and_that_is_recorded() {
    let mut book = sent();
    book.keep(book.ledger.take_up("p2", |_, _| Fate::Unknown));
    let lost = book.ledger.unconfirmed();
    let events = book.ledger.forgive("resume --forgive");
    let text = events[0].encode().unwrap();
    assert!(text.contains("unconfirmed_forgiven") && text.contains("resume --forgive"), "{text}");
    book.keep(events);
    assert_eq!((book.ledger.spent(), book.ledger.unconfirmed()), (Amount::ZERO, Amount::ZERO));
    assert_eq!(book.ledger.forgiven(), lost);
    assert!(book.ledger.forgive("again").is_empty(), "there is nothing more to write off");
    // What is written off is not taken off once more when its usage comes.
    assert!(book.ledger.settle("a", 1, 1, Some(amount(1, 1))).is_err());
    assert_eq!(book.rebuilt(), book.ledger);
}
