//! A request whose reply was cut is asked for again with all the room there is, not with its share among
//! others.

use super::*;

fn cut_before(agent: &str, order: u64) -> LedgerRequest {
    LedgerRequest { started: true, call: 2, floor: 16_000, whole: true, ..ask(agent, order) }
}

fn rooms(book: &Book, asks: &[LedgerRequest]) -> Vec<(usize, u32)> {
    let answers = answer(&book.ledger, asks, false, 0);
    let rooms = answers.into_iter().map(|(index, answer)| match answer {
        LedgerAnswer::Go(room) => (index, room.max_tokens),
        other => panic!("{other:?}"),
    });
    rooms.collect()
}

#[test]
fn what_was_cut_waits_for_all_the_room_it_wants_and_gets_less_only_where_the_budget_never_had_it() {
    // Two rooms of 32,000 with their hand-backs take 93 cents.
    let mut book = Book::with(usd(100));
    let asks = [cut_before("a", 1), cut_before("b", 2), cut_before("c", 3)];
    assert_eq!(rooms(&book, &asks), [(0, 32_000), (1, 32_000)], "the third waits for what is in flight");
    let shared: Vec<LedgerRequest> =
        asks.iter().map(|ask| LedgerRequest { whole: false, floor: 8_000, ..ask.clone() }).collect();
    assert!(rooms(&book, &shared).iter().all(|(_, room)| *room < 32_000), "others share");
    for agent in ["a", "b"] {
        book.reserve(agent, 2, nano(34 * CENT), nano(12 * CENT));
    }
    assert_eq!(rooms(&book, &asks[2..]), []);
    book.settle("a", 2, Some(nano(CENT)));
    assert_eq!(rooms(&book, &asks[2..]), [], "what one holds for its hand-back is missing");
    book.keep(book.ledger.release("a"));
    assert_eq!(rooms(&book, &asks[2..]), [(0, 32_000)]);
    // However many other agents end, there is no room for all of it here.
    let book = Book::with(usd(40));
    let [(0, room)] = rooms(&book, &asks[..1])[..] else { panic!() };
    assert!((16_000..32_000).contains(&room), "{room}");
}

#[test]
fn a_small_request_does_not_overtake_one_that_waits_for_what_the_same_pass_granted() {
    // The first takes at least 16 cents. The second needs more than 38, which are there when the first has
    // ended. The third would fit into what is left.
    let book = Book::with(usd(55));
    let started = |agent: &str, order, floor| LedgerRequest { started: true, floor, ..ask(agent, order) };
    let asks = [started("a", 1, 8_000), started("b", 2, 30_000), started("c", 3, 1_000)];
    assert_eq!(rooms(&book, &asks).iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0]);
    let without_b = [asks[0].clone(), asks[2].clone()];
    assert_eq!(rooms(&book, &without_b).len(), 2);
}
