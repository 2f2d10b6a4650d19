//! Requests that are cut off: what is booked for them is a bound of what they can have cost, and comes down
//! when more is known. Random schedules of kills are played in `convoke-runtime` (`money::kills`), where
//! their number can be set from outside.

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
        behind: None,
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
    assert_eq!(
        (book.ledger.spent(), book.ledger.held()),
        (Amount::ZERO, bound(10_000, 64_000).plus(nano(5)))
    );
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
    assert!(
        book.ledger.confirm_prompt("a", 1, 10).is_empty()
            && book.ledger.confirm_prompt("a", 2, 10).is_empty()
    );
    assert_eq!(book.rebuilt(), book.ledger);
}

#[test]
fn where_a_lost_request_is_never_sent_again_one_that_began_alike_says_how_long_its_prompt_can_be() {
    // Two agents of one make: nothing but 40,000 bytes bounds their first prompts, 500 of them behind the
    // beginning.
    let first = |process: &str| Sending {
        prefix: "make".into(),
        behind: Some(500),
        ..sending(process, 40_000, 64_000)
    };
    let send = |book: &mut Book, agent: &str, process: &str| {
        let room = (bound(40_000, 64_000), nano(5));
        book.keep(book.ledger.send(agent, 1, 1, room, Some(first(process))).unwrap());
    };
    let said = Some(ReportedTokens { prompt_tokens: 9_000, output_tokens: 10 });
    // The table's overhead is 2,000 tokens; of what is counted already an eighth is kept for it.
    let lost =
        |output: u64| amount(9_000 + 500 + 250 + output, (9_000 + 500 + 250) * 6_250 + output * 25_000);
    let mut book = Book::with(usd(10_000));
    send(&mut book, "a", "p1");
    book.keep(book.ledger.take_up("p2", |_, _| Fate::Ended { by: 3_000 }));
    assert_eq!(book.ledger.spent(), bound(40_000, 1_000));
    send(&mut book, "b", "p2");
    book.keep(book.ledger.settle_as_said("b", 1, 1, Some(amount(9_010, 77)), said).unwrap());
    book.keep(book.ledger.confirm_prompt("b", 1, 9_000));
    assert_eq!(book.ledger.unconfirmed(), lost(1_000));
    assert!(book.ledger.confirm_prompt("b", 1, 9_000).is_empty(), "it is told once");
    // What is known by then counts at once for the next one that is lost.
    send(&mut book, "c", "p2");
    book.keep(book.ledger.take_up("p3", |_, _| Fate::Ended { by: 0 }));
    assert_eq!(book.ledger.unconfirmed(), lost(1_000).plus(lost(400)));
    // And its own repeat still says more.
    book.keep(book.ledger.confirm_prompt("a", 1, 8_000));
    assert_eq!(book.ledger.unconfirmed(), amount(9_000, 8_000 * 6_250 + 1_000 * 25_000).plus(lost(400)));
    assert_eq!(book.rebuilt(), book.ledger);
}

#[test]
fn what_the_server_said_of_the_prompt_before_the_reply_is_what_a_lost_request_cost() {
    // Most of the prompt came from the cache.
    let prompt = amount(4_000, 2_100_000);
    let lost = |book: &Book, fate: Fate| {
        let mut after = Book { ledger: book.ledger.clone(), told: book.told.clone(), at: 100_000 };
        after.keep(book.ledger.take_up("p2", |_, _| fate));
        assert_eq!(after.rebuilt(), after.ledger);
        after.ledger.spent()
    };
    let mut book = sent();
    // A placeholder, another attempt and another agent say nothing of it.
    for (agent, attempt, tokens) in [("a", 1, 1), ("a", 2, 4_000), ("b", 1, 4_000)] {
        assert!(
            book.ledger.counted(agent, (1, attempt), amount(tokens, 1)).is_empty(),
            "{agent} {attempt} {tokens}"
        );
    }
    book.keep(book.ledger.counted("a", (1, 1), prompt));
    assert!(book.ledger.counted("a", (1, 1), prompt).is_empty(), "it is told once");
    let ended = Fate::Ended { by: 13_000 };
    // As long as no such price has held in the end, the tokens are believed and the price is not.
    assert_eq!(lost(&book, ended), amount(5_000, 4_000 * 6_250 + 1_000 * 25_000));
    let took = prompt.plus(amount(10, 10 * 25_000));
    ends(&mut book, 1, 4_000, took);
    again(&mut book, 2, prompt);
    assert_eq!(lost(&book, ended), took.plus(amount(5_000, 2_100_000 + 1_000 * 25_000)));
    assert_eq!(lost(&book, Fate::Unknown), took.plus(amount(68_000, 2_100_000 + 64_000 * 25_000)));
    // A server that says more in the end than before is not believed again.
    ends(&mut book, 2, 4_001, amount(4_011, 77));
    again(&mut book, 3, prompt);
    assert_eq!(lost(&book, ended), bound(10_000, 1_000).plus(amount(4_011, 77)).plus(took));
}

#[test]
fn a_server_whose_count_is_right_in_tokens_and_wrong_in_price_is_not_believed_again() {
    // It calls plain what it writes to its cache.
    let said = amount(4_000, 4_000 * 5_000);
    let took = amount(4_010, 4_000 * 6_250 + 10 * 25_000);
    let honest = |nano: u64| amount(4_010, nano + 10 * 25_000);
    for proved in [false, true] {
        let mut book = sent();
        let mut spent = Amount::ZERO;
        if proved {
            book.keep(book.ledger.counted("a", (1, 1), amount(4_000, 2_000_000)));
            ends(&mut book, 1, 4_000, honest(2_000_000));
            spent = honest(2_000_000);
            again(&mut book, 2, said);
        } else {
            book.keep(book.ledger.counted("a", (1, 1), said));
        }
        let call = 1 + u32::from(proved);
        ends(&mut book, call, 4_000, took);
        again(&mut book, call + 1, said);
        let mut after = Book { ledger: book.ledger.clone(), told: book.told.clone(), at: 100_000 };
        after.keep(book.ledger.take_up("p2", |_, _| Fate::Ended { by: 13_000 }));
        let booked = after.ledger.spent().minus(spent).minus(took);
        assert_eq!(booked, bound(10_000, 1_000), "proved: {proved}");
        assert_eq!(after.rebuilt(), after.ledger);
    }
}

/// The request ends, and the server says that it took this.
fn ends(book: &mut Book, call: u32, prompt_tokens: u64, took: Amount) {
    let said = Some(ReportedTokens { prompt_tokens, output_tokens: 10 });
    book.keep(book.ledger.settle_as_said("a", call, 1, Some(took), said).unwrap());
}

/// The next one is sent, and the server says this of its prompt.
fn again(book: &mut Book, call: u32, prompt: Amount) {
    let sending = sending("p1", 10_000, 64_000);
    book.keep(book.ledger.send("a", call, 1, (bound(10_000, 64_000), nano(5)), Some(sending)).unwrap());
    book.keep(book.ledger.counted("a", (call, 1), prompt));
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
