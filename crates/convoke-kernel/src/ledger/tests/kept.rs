//! What the ledger keeps of what it was told, and what it writes down of it.

use super::*;
use serde_json::Value;

fn stored(ledger: &Ledger) -> Value {
    let value = serde_json::to_value(ledger).unwrap();
    let again: Ledger = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(&again, ledger);
    value
}

fn sending(prefix: &str) -> Sending {
    Sending {
        process: "p1".to_owned(),
        input_tokens: 40_000,
        max_tokens: 8_000,
        rates: rates(),
        kind: "worker".to_owned(),
        prefix: prefix.to_owned(),
        behind: (!prefix.is_empty()).then_some(500),
    }
}

fn send(book: &mut Book, agent: &str, call: u32, prefix: &str) {
    let room = (amount(48_000, rates().bound(40_000, 8_000)), nano(5));
    book.keep(book.ledger.send(agent, call, 1, room, Some(sending(prefix))).unwrap());
}

#[test]
fn the_room_of_a_reply_follows_the_longest_of_its_kind_once_three_were_seen() {
    let mut book = Book::with(usd(10_000));
    for (call, output_tokens) in [(1, 1_000), (2, 3_000), (3, 2_000)] {
        assert_eq!(book.ledger.reply_room("worker"), None, "before reply {call}");
        send(&mut book, "a", call, "");
        let said = Some(ReportedTokens { prompt_tokens: 9_000, output_tokens });
        book.keep(book.ledger.settle_as_said("a", call, 1, Some(amount(9_000, 77)), said).unwrap());
    }
    assert_eq!(book.ledger.reply_room("worker"), Some(4_500));
    assert_eq!(book.ledger.reply_room("verifier"), None);
    assert_eq!(book.rebuilt(), book.ledger);
}

#[test]
fn a_hand_back_is_held_for_with_its_note_and_the_overhead_of_the_rates() {
    let with = Rates { overhead_tokens: 300, ..rates() };
    let tokens = 10_000 + HAND_BACK_NOTE_TOKENS;
    let held = hand_back_hold(Some(&with), 10_000, 4_096);
    assert_eq!(held, amount(tokens + 300 + 4_096, with.bound(tokens, 4_096)));
    assert_eq!(hand_back_hold(None, 10_000, 4_096), amount(tokens + 4_096, u64::MAX));
}

#[test]
fn a_released_agent_leaves_only_doubts_that_requests_of_others_can_end() {
    let count = |book: &Book| stored(&book.ledger)["doubts"].as_array().map_or(0, Vec::len);
    let mut book = Book::with(usd(10_000));
    for (agent, prefix) in [("alone", ""), ("alike", "make"), ("other", "")] {
        send(&mut book, agent, 1, prefix);
    }
    assert_eq!(count(&book), 0);
    book.keep(book.ledger.take_up("p2", |_, _| Fate::Unknown));
    assert_eq!(count(&book), 3);
    for (agent, left) in [("alone", 2), ("alike", 2), ("other", 1)] {
        book.keep(book.ledger.release(agent));
        assert_eq!(count(&book), left, "{agent}");
    }
    assert_eq!(book.rebuilt(), book.ledger);
}

#[test]
fn what_was_written_off_is_stored_once_there_is_any() {
    let mut book = Book::with(usd(10_000));
    assert!(stored(&book.ledger).get("forgiven").is_none());
    send(&mut book, "a", 1, "");
    book.keep(book.ledger.take_up("p2", |_, _| Fate::Unknown));
    let unconfirmed = book.ledger.unconfirmed();
    book.keep(book.ledger.forgive("a person"));
    assert_eq!(stored(&book.ledger)["forgiven"], serde_json::to_value(unconfirmed).unwrap());
}
