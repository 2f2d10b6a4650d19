//! The ledger in small, and in `schedules` in the large.

mod kept;
mod kills;
mod schedules;
mod whole;

use super::*;

const CENT: u64 = 10_000_000;

/// Two dollars a million prompt tokens, ten dollars a million output tokens, dearer above 200,000.
fn rates() -> Rates {
    let tiers = vec![
        RateTier { above: 0, input: 2_000, output: 10_000 },
        RateTier { above: 200_000, input: 4_000, output: 15_000 },
    ];
    Rates { tiers, overhead_tokens: 0, output_per_second: None }
}

fn ask(agent: &str, order: u64) -> LedgerRequest {
    LedgerRequest {
        agent: agent.to_owned(),
        order,
        first: agent == "lead",
        started: false,
        last: false,
        call: 1,
        attempt: 1,
        input_tokens: 10_000,
        wanted: 32_000,
        floor: 8_000,
        whole: false,
        hand_back_input: 10_000,
        hand_back_tokens: HAND_BACK_TOKENS,
        rates: Some(rates()),
    }
}

fn amount(tokens: u64, nano: u64) -> Amount {
    Amount { tokens, nano }
}

fn nano(nano: u64) -> Amount {
    Amount { tokens: 0, nano }
}

fn usd(cents: u64) -> Caps {
    Caps { nano: Some(cents * CENT), ..Caps::default() }
}

/// A ledger and everything that has happened to it.
#[derive(Default)]
struct Book {
    ledger: Ledger,
    told: Vec<(String, u64)>,
    at: u64,
}

impl Book {
    fn with(caps: Caps) -> Book {
        let mut book = Book::default();
        book.keep(book.ledger.grant(caps, "person"));
        book
    }

    fn keep(&mut self, events: Vec<LedgerEvent>) {
        for event in events {
            self.ledger.apply(&event, self.at);
            self.told.push((event.encode().unwrap(), self.at));
        }
    }

    fn reserve(&mut self, agent: &str, call: u32, request: Amount, hand_back: Amount) {
        self.keep(self.ledger.reserve(agent, call, 1, request, hand_back).unwrap());
    }

    fn settle(&mut self, agent: &str, call: u32, usage: Option<Amount>) {
        self.keep(self.ledger.settle(agent, call, 1, usage).unwrap());
    }

    /// What the journal would make of it.
    fn rebuilt(&self) -> Ledger {
        let mut ledger = Ledger::default();
        for (text, at) in &self.told {
            ledger.apply(&LedgerEvent::decode(text).unwrap(), *at);
        }
        ledger
    }
}

#[test]
fn a_bound_takes_the_dearest_tier_the_prompt_can_reach() {
    let check = |rates: &Rates, input, max_tokens, expected| {
        assert_eq!(rates.bound(input, max_tokens), expected, "{input} in, {max_tokens} out");
    };
    check(&rates(), 0, 0, 0);
    check(&rates(), 1_000, 100, 1_000 * 2_000 + 100 * 10_000);
    check(&rates(), 200_000, 100, 200_000 * 2_000 + 100 * 10_000);
    check(&rates(), 200_001, 100, 200_001 * 4_000 + 100 * 15_000);
    // The overhead counts towards the tier too.
    check(&Rates { overhead_tokens: 1, ..rates() }, 200_000, 0, 200_001 * 4_000);
    // A cheaper tier above: a prompt below its bound would pay the dearer one.
    let falling =
        vec![RateTier { above: 1_000, input: 1, output: 1 }, RateTier { above: 0, input: 5, output: 5 }];
    check(&Rates { tiers: falling, overhead_tokens: 0, output_per_second: None }, 2_000, 10, 2_000 * 5 + 50);
    // No first tier, no tier at all, and numbers beyond all bounds.
    let gap = vec![RateTier { above: 1_000, input: 7, output: 1 }];
    check(&Rates { tiers: gap, overhead_tokens: 0, output_per_second: None }, 10, 0, 70);
    check(&Rates::default(), 1, 1, u64::MAX);
    check(&rates(), u64::MAX, u32::MAX, u64::MAX);
}

#[test]
fn amounts_saturate_and_fit_only_in_both() {
    let most = amount(u64::MAX, u64::MAX);
    assert_eq!(most.plus(amount(1, 1)), most);
    assert_eq!(amount(1, 5).minus(amount(2, 3)), amount(0, 2));
    assert!(amount(1, 2).fits_in(amount(1, 2)));
    assert!(!amount(2, 2).fits_in(amount(1, 9)) && !amount(1, 3).fits_in(amount(9, 2)));
}

#[test]
fn shortness_is_said_in_peoples_units_with_the_flag_that_helps() {
    let check = |what, needs, left, cap, expected: &str| {
        assert_eq!(Short { what, needs, left, cap }.to_string(), expected);
    };
    check(
        Cap::Agents,
        500,
        38,
        40,
        "needs 500 agents, 38 of 40 are left; start fewer or grant a new total with --budget-agents",
    );
    check(
        Cap::Agents,
        1,
        0,
        1_000,
        "needs 1 agent, 0 of 1,000 are left; start fewer or grant a new total with --budget-agents",
    );
    check(
        Cap::Tokens,
        45_678,
        12_345,
        2_000_000,
        "12,345 of 2,000,000 tokens left, the next request may take up to 45,678 (hand-back included); \
         grant a new total with --budget-tokens",
    );
    check(
        Cap::Dollars,
        501 * 1_000_000,
        429 * 1_000_000,
        1_000 * CENT,
        "$0.42 of $10.00 left, the next request may cost up to $0.51 (hand-back included); grant a new \
         total with --budget-usd",
    );
    check(
        Cap::Dollars,
        1_234_567,
        1_234_560,
        CENT,
        "$0.0012 of $0.0100 left, the next request may cost up to $0.0013 (hand-back included); grant a new \
         total with --budget-usd",
    );
    check(
        Cap::Dollars,
        u64::MAX,
        CENT,
        1_000 * CENT,
        "the model has no known price, so nothing bounds its requests under the cap of $10.00; use a model \
         with a price or leave --budget-usd out",
    );
    check(
        Cap::Minutes,
        0,
        0,
        7_200_000,
        "the time granted (120 minutes) is used up; grant a new total with --budget-minutes",
    );
    check(
        Cap::Minutes,
        0,
        0,
        90_000,
        "the time granted (90 seconds) is used up; grant a new total with --budget-minutes",
    );
}

#[test]
fn agents_are_admitted_by_exact_count_or_not_at_all() {
    let mut book = Book::with(Caps { agents: Some(40), ..Caps::default() });
    book.keep(book.ledger.admit("wf_1", 2).unwrap());
    let short = book.ledger.admit("wf_1", 500).unwrap_err();
    assert_eq!(short, Short { what: Cap::Agents, needs: 500, left: 38, cap: 40 });
    book.keep(book.ledger.admit("wf_2", 38).unwrap());
    assert_eq!(book.ledger.agents(), 40);
    assert!(book.ledger.admit("wf_3", 1).is_err());
    assert_eq!(book.ledger.admit("wf_3", 0), Ok(vec![]));
}

#[test]
fn a_run_gives_back_no_more_than_it_admitted_and_nothing_once_it_is_closed() {
    let mut book = Book::with(Caps { agents: Some(40), ..Caps::default() });
    book.keep(book.ledger.admit("wf_1", 10).unwrap());
    book.keep(book.ledger.admit("wf_2", 10).unwrap());
    book.keep(book.ledger.give_back("wf_1", 4));
    assert_eq!(book.ledger.agents(), 16);
    book.keep(book.ledger.give_back("wf_1", 100));
    assert_eq!((book.ledger.admitted("wf_1"), book.ledger.admitted("wf_2")), (0, 10));
    assert_eq!((book.ledger.agents(), book.ledger.runs.len()), (10, 1));
    assert_eq!(book.ledger.give_back("wf_1", 1), vec![]);
    book.keep(book.ledger.close("wf_2"));
    assert_eq!((book.ledger.agents(), book.ledger.runs.len()), (10, 0));
    assert_eq!((book.ledger.give_back("wf_2", 1), book.ledger.close("wf_2")), (vec![], vec![]));
}

#[test]
fn room_is_reserved_up_to_the_cap_and_not_one_nano_beyond() {
    let mut book = Book::with(Caps { tokens: Some(100), nano: Some(1_000), ..Caps::default() });
    book.reserve("a", 1, amount(40, 400), amount(10, 100));
    let short = book.ledger.reserve("b", 1, 1, amount(0, 501), Amount::ZERO).unwrap_err();
    assert_eq!(short, Short { what: Cap::Dollars, needs: 501, left: 500, cap: 1_000 });
    let short = book.ledger.reserve("b", 1, 1, amount(30, 0), amount(21, 0)).unwrap_err();
    assert_eq!(short, Short { what: Cap::Tokens, needs: 51, left: 50, cap: 100 });
    book.reserve("b", 1, amount(40, 400), amount(10, 100));
    assert_eq!(book.ledger.held(), amount(100, 1_000));
    // Its own hand-back is replaced, not added to.
    book.settle("a", 1, Some(amount(40, 400)));
    book.reserve("a", 2, amount(4, 40), amount(6, 60));
    assert_eq!((book.ledger.spent(), book.ledger.held()), (amount(40, 400), amount(60, 600)));
    assert_eq!(book.ledger, book.rebuilt());
}

#[test]
fn a_short_reply_frees_what_its_hand_back_does_not_need_any_more() {
    let mut book = Book::with(Caps { tokens: Some(100), nano: Some(1_000), ..Caps::default() });
    book.reserve("a", 1, amount(40, 400), amount(50, 500));
    book.settle("a", 1, Some(amount(4, 40)));
    book.keep(book.ledger.lower("a", amount(20, 600)));
    assert_eq!(book.ledger.held(), amount(20, 500), "a hold never rises");
    assert_eq!(book.ledger.lower("a", amount(20, 500)), []);
    assert_eq!(book.ledger.lower("nobody", Amount::ZERO), []);
    assert_eq!(book.ledger, book.rebuilt());
    // A hand-back that is being spent holds nothing beside itself.
    book.reserve("a", 2, amount(20, 500), Amount::ZERO);
    assert_eq!(book.ledger.lower("a", Amount::ZERO), []);
}

#[test]
fn numbers_beyond_all_bounds_neither_fit_nor_overflow() {
    let mut book = Book::with(Caps { nano: Some(u64::MAX), ..Caps::default() });
    let most = amount(u64::MAX, u64::MAX);
    assert!(book.ledger.reserve("a", 1, 1, most, amount(0, 1)).is_err());
    book.reserve("a", 1, most, Amount::ZERO);
    assert!(book.ledger.reserve("b", 1, 1, nano(1), Amount::ZERO).is_err());
    book.settle("a", 1, Some(most));
    book.keep(book.ledger.grant(Caps::default(), "person"));
    book.reserve("a", 2, most, most);
    book.settle("a", 2, None);
    assert_eq!((book.ledger.spent(), book.ledger.unconfirmed()), (most, most));
}

#[test]
fn a_settled_attempt_frees_its_request_and_keeps_the_hand_back() {
    let mut book = Book::with(usd(100));
    book.reserve("a", 1, nano(50), nano(20));
    book.settle("a", 1, Some(nano(30)));
    assert_eq!(
        (book.ledger.spent(), book.ledger.held(), book.ledger.unconfirmed()),
        (nano(30), nano(20), nano(0))
    );
    // Usage that never came is settled at the bound, and more than the bound is recorded as it was said.
    book.reserve("a", 2, nano(50), nano(25));
    book.settle("a", 2, None);
    assert_eq!(
        (book.ledger.spent(), book.ledger.held(), book.ledger.unconfirmed()),
        (nano(80), nano(25), nano(50))
    );
    book.reserve("a", 3, nano(50), nano(25));
    book.settle("a", 3, Some(nano(70)));
    assert_eq!(book.ledger.spent(), nano(150));
    book.keep(book.ledger.release("a"));
    assert_eq!((book.ledger.held(), book.ledger.holds().count()), (Amount::ZERO, 0));
    assert_eq!(book.ledger.release("a"), vec![]);
}

#[test]
fn an_outcome_that_comes_twice_or_late_is_stale() {
    let mut book = Book::with(usd(100));
    let check = |book: &Book, agent: &str, call, attempt| {
        let stale = Stale { agent: agent.to_owned(), call, attempt };
        assert_eq!(book.ledger.settle(agent, call, attempt, None), Err(stale));
    };
    check(&book, "a", 1, 1);
    book.reserve("a", 2, nano(5), nano(1));
    check(&book, "a", 1, 1);
    check(&book, "a", 2, 2);
    check(&book, "b", 2, 1);
    book.settle("a", 2, None);
    check(&book, "a", 2, 1);
}

#[test]
fn an_attempt_that_was_never_settled_is_paid_at_its_bound_before_the_next_or_at_the_end() {
    let mut book = Book::with(usd(100));
    book.reserve("a", 1, nano(50), nano(20));
    book.keep(book.ledger.reserve("a", 1, 2, nano(50), nano(20)).unwrap());
    assert_eq!(
        (book.ledger.spent(), book.ledger.unconfirmed(), book.ledger.held()),
        (nano(50), nano(50), nano(70))
    );
    book.keep(book.ledger.release("a"));
    assert_eq!(
        (book.ledger.spent(), book.ledger.unconfirmed(), book.ledger.held()),
        (nano(100), nano(100), nano(0))
    );
    // It counts against what the next attempt may take.
    let mut book = Book::with(Caps { nano: Some(100), ..Caps::default() });
    book.reserve("a", 1, nano(60), nano(20));
    assert!(book.ledger.reserve("a", 1, 2, nano(21), nano(20)).is_err());
    assert!(book.ledger.reserve("a", 1, 2, nano(20), nano(20)).is_ok());
}

#[test]
fn what_a_failed_hand_back_did_not_use_stays_for_the_next_attempt_at_it() {
    let mut book = Book::with(usd(100));
    book.reserve("a", 1, nano(50), nano(20));
    book.settle("a", 1, Some(nano(50)));
    book.reserve("a", 2, nano(20), Amount::ZERO);
    book.settle("a", 2, Some(nano(5)));
    assert_eq!(book.ledger.hold_of("a").unwrap().hand_back, nano(15));
    book.reserve("a", 3, nano(15), Amount::ZERO);
    book.settle("a", 3, None);
    assert_eq!(book.ledger.held(), Amount::ZERO);
}

#[test]
fn a_cap_lowered_below_what_is_spent_leaves_no_room_and_takes_nothing_back() {
    let mut book = Book::with(usd(100));
    book.reserve("a", 1, nano(50 * CENT), nano(CENT));
    book.keep(book.ledger.grant(usd(10), "person"));
    let short = book.ledger.reserve("b", 1, 1, nano(1), Amount::ZERO).unwrap_err();
    assert_eq!((short.left, short.cap), (0, 10 * CENT));
    assert_eq!(book.ledger.held(), nano(51 * CENT));
    book.keep(book.ledger.grant(usd(52), "person"));
    assert!(book.ledger.reserve("b", 1, 1, nano(CENT), Amount::ZERO).is_ok());
}

#[test]
fn minutes_count_while_a_process_holds_the_session_and_a_crash_counts_up_to_the_last_sign_of_life() {
    let mut book = Book::with(Caps { ms: Some(10_000), ..Caps::default() });
    let check = |book: &Book, at, left| assert_eq!(book.ledger.ms_left(at), Some(left), "at {at}");
    check(&book, 99_000, 10_000);
    book.at = 100_000;
    book.keep(book.ledger.hold("p1"));
    check(&book, 103_000, 7_000);
    // A clock that goes back gives nothing back.
    check(&book, 90_000, 10_000);
    book.at = 104_000;
    assert_eq!(
        book.ledger.leave("another"),
        vec![],
        "who has lost the session does not stop the clock of its holder"
    );
    book.keep(book.ledger.leave("p1"));
    check(&book, 500_000, 6_000);
    assert_eq!(book.ledger.leave("p1"), vec![]);
    book.at = 600_000;
    book.keep(book.ledger.hold("p2"));
    book.at = 601_000;
    book.keep(book.ledger.admit("wf_1", 1).unwrap());
    // p2 died some time after 601,000; no process held the session until p3 came.
    book.at = 900_000;
    book.keep(book.ledger.hold("p3"));
    check(&book, 900_000, 5_000);
    check(&book, 905_000, 0);
    check(&book, u64::MAX, 0);
    assert_eq!(Ledger::default().ms_left(5), None);
}

#[test]
fn the_time_between_a_crash_and_the_resume_is_not_counted_though_requests_were_lost_and_budget_was_granted() {
    let mut book = Book::with(Caps { ms: Some(10_000), ..Caps::default() });
    book.at = 1_000;
    book.keep(book.ledger.hold("p1"));
    book.at = 3_000;
    book.reserve("a", 1, nano(CENT), nano(CENT));
    // p1 died here. A person grants more and has p2 go on the next day.
    book.at = 90_000_000;
    book.keep(book.ledger.grant(Caps { ms: Some(20_000), ..Caps::default() }, "person"));
    book.keep(book.ledger.hold("p2"));
    assert!(book.ledger.hold_of("a").is_none_or(|hold| hold.request.is_none()), "its request is lost");
    assert_eq!(book.ledger.ms_left(90_000_000), Some(18_000));
    assert_eq!(book.ledger.ms_left(90_005_000), Some(13_000));
}

#[test]
fn a_wait_that_ends_long_after_the_minutes_is_not_begun() {
    let mut book = Book::with(Caps { ms: Some(600_000), ..Caps::default() });
    book.at = 100_000;
    book.keep(book.ledger.hold("p1"));
    let check = |until: u64, expected: Option<(u64, u64)>| {
        assert_eq!(book.ledger.outlasts(until, 200_000), expected, "until {until}");
    };
    check(0, None);
    check(700_000, None);
    check(760_000, None);
    check(760_001, Some((560_001, 500_000)));
    check(3_800_000, Some((3_600_000, 500_000)));
    assert_eq!(Ledger::default().outlasts(u64::MAX, 0), None);
}

#[test]
fn whoever_takes_a_session_up_settles_what_the_last_holder_had_in_flight() {
    let mut book = Book::with(usd(100));
    book.keep(book.ledger.hold("p1"));
    book.reserve("a", 1, nano(40 * CENT), nano(CENT));
    book.reserve("b", 1, nano(50 * CENT), nano(CENT));
    book.keep(book.ledger.hold("p2"));
    assert_eq!((book.ledger.spent(), book.ledger.held()), (nano(90 * CENT), nano(2 * CENT)));
    assert_eq!(book.ledger.unconfirmed(), nano(90 * CENT));
    // Requests that are no longer in flight are not waited for: the youngest agent is told to hand back.
    let asks = [ask("a", 1), ask("b", 2)].map(|ask| LedgerRequest {
        started: true,
        wanted: 64_000,
        floor: 64_000,
        ..ask
    });
    assert!(!answer(&book.ledger, &asks, false, 0).is_empty());
}

#[test]
fn a_ledger_and_its_events_survive_being_written_down() {
    let mut book = Book::with(Caps { agents: Some(3), tokens: None, nano: Some(1_000), ms: Some(60_000) });
    book.at = 7;
    book.keep(book.ledger.hold("p1"));
    book.keep(book.ledger.admit("wf_1", 2).unwrap());
    book.keep(book.ledger.give_back("wf_1", 1));
    book.reserve("a_1", 1, amount(4, 40), amount(1, 10));
    let text = serde_json::to_string(&book.ledger).unwrap();
    assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), book.ledger);
    assert_eq!(serde_json::from_str::<Ledger>("{}").unwrap(), Ledger::default());
    book.settle("a_1", 1, None);
    book.keep(book.ledger.release("a_1"));
    book.keep(book.ledger.close("wf_1"));
    book.keep(book.ledger.leave("p1"));
    assert_eq!(book.rebuilt(), book.ledger);
    assert_eq!(book.ledger.count(), book.told.len() as u64);
    let texts: Vec<&str> = book.told.iter().map(|(text, _)| text.as_str()).collect();
    let expected = [
        r#"{"type":"envelope_granted","caps":{"agents":3,"nano":1000,"ms":60000},"by":"person"}"#,
        r#"{"type":"session_held","process":"p1"}"#,
        r#"{"type":"agents_admitted","run":"wf_1","count":2}"#,
        r#"{"type":"agents_returned","run":"wf_1","count":1}"#,
        r#"{"type":"room_reserved","agent":"a_1","call":1,"attempt":1,"request":{"tokens":4,"nano":40},"hand_back":{"tokens":1,"nano":10}}"#,
        r#"{"type":"attempt_settled","agent":"a_1","call":1,"attempt":1,"spent":{"tokens":4,"nano":40},"confirmed":false}"#,
        r#"{"type":"hold_released","agent":"a_1"}"#,
        r#"{"type":"admission_closed","run":"wf_1"}"#,
        r#"{"type":"session_left"}"#,
    ];
    assert_eq!(texts, expected);
}

#[test]
fn alone_a_request_gets_all_it_wants_or_all_that_fits() {
    let check = |cents, expected: Option<u32>| {
        let book = Book::with(usd(cents));
        assert_eq!(
            book.ledger.room(&ask("a", 1), 0).ok().map(|room| room.max_tokens),
            expected,
            "{cents} cents"
        );
    };
    // 2 cents prompt + 32 cents reply, and a hand-back of 42,512 prompt tokens and 4,096 output tokens.
    check(100, Some(32_000));
    check(48, Some(32_000));
    check(46, Some(31_501));
    check(20, Some(9_834));
    check(17, None);
    let book = Book::with(Caps { tokens: Some(50_000), ..Caps::default() });
    let room = book.ledger.room(&ask("a", 1), 0).unwrap();
    assert_eq!(room.request.plus(room.hand_back).tokens, 50_000);
    // One that wants less than the floor gets what it wants.
    let book = Book::with(usd(100));
    assert_eq!(book.ledger.room(&LedgerRequest { wanted: 500, ..ask("a", 1) }, 0).unwrap().max_tokens, 500);
    assert_eq!(Book::default().ledger.room(&ask("a", 1), 0).unwrap().max_tokens, 32_000);
}

#[test]
fn while_others_are_in_flight_a_request_takes_a_quarter_of_what_is_left_but_never_less_than_its_floor() {
    let mut book = Book::with(Caps { nano: Some(120 * CENT + 2), ..Caps::default() });
    book.reserve("b", 1, nano(20 * CENT), nano(1));
    let room = book.ledger.room(&ask("a", 1), 0).unwrap();
    assert_eq!((room.max_tokens, room.request.nano), (23_000, 25 * CENT));
    // A quarter of what is left would be less than the floor.
    book.reserve("c", 1, nano(80 * CENT), nano(1));
    assert_eq!(book.ledger.room(&ask("a", 1), 0).unwrap().max_tokens, 8_000);
    // Hand-backs that others hold make no crowd.
    book.settle("b", 1, Some(Amount::ZERO));
    book.settle("c", 1, Some(Amount::ZERO));
    assert_eq!(book.ledger.room(&ask("a", 1), 0).unwrap().max_tokens, 32_000);
}

#[test]
fn a_model_without_a_price_fits_under_no_dollar_cap_and_counts_tokens_where_there_is_none() {
    for rates in [None, Some(Rates::default())] {
        let ask = LedgerRequest { rates, ..ask("a", 1) };
        let short = Book::with(usd(100)).ledger.room(&ask, 0).unwrap_err();
        assert_eq!((short.what, short.needs), (Cap::Dollars, u64::MAX));
        let book = Book::with(Caps { tokens: Some(1_000_000), ..Caps::default() });
        let room = book.ledger.room(&ask, 0).unwrap();
        assert_eq!(room.request, amount(42_000, 0));
    }
}

#[test]
fn a_hand_back_is_paid_from_its_hold_and_shrinks_to_what_there_is() {
    let check = |held: u64, free: u64, expected: Option<u32>| {
        let mut book = Book::with(usd(100));
        book.reserve("a", 1, nano(100 * CENT - held - free), nano(held));
        book.settle("a", 1, Some(nano(100 * CENT - held - free)));
        let room = book.ledger.last_room(&LedgerRequest { started: true, ..ask("a", 1) });
        assert_eq!(room.ok().map(|room| room.max_tokens), expected, "{held} held, {free} free");
        if let Ok(room) = room {
            assert_eq!(room.hand_back, Amount::ZERO);
            assert!(book.ledger.reserve("a", 2, 1, room.request, room.hand_back).is_ok());
        }
    };
    // 10,512 prompt tokens are 21,024,000; 4,096 output tokens 40,960,000; 1,024 of them 10,240,000.
    check(61_984_000, 0, Some(4_096));
    check(1, 61_983_999, Some(4_096));
    check(61_976_000, 0, Some(4_095));
    check(31_264_000, 0, Some(1_024));
    check(31_263_999, 0, None);
}

/// What each agent is told, in the order of the answers.
fn told(ledger: &Ledger, asks: &[LedgerRequest], busy: bool, at: u64) -> Vec<String> {
    let say = |(index, answer): (usize, LedgerAnswer)| {
        let word = match answer {
            LedgerAnswer::Go(_) => "go",
            LedgerAnswer::HandBack(..) => "hand back",
            LedgerAnswer::Refused(_) => "refused",
        };
        format!("{} {word}", asks[index].agent)
    };
    answer(ledger, asks, busy, at).into_iter().map(say).collect()
}

fn begun(agent: &str, order: u64) -> LedgerRequest {
    LedgerRequest { started: true, ..ask(agent, order) }
}

/// A ledger in which these agents hold a hand-back of seven cents each and so much is free.
fn holding(agents: &[&str], free_cents: u64) -> Book {
    let mut book = Book::with(usd(1_000));
    for agent in agents {
        book.reserve(agent, 1, nano(1), nano(7 * CENT));
        book.settle(agent, 1, Some(nano(0)));
    }
    let used = 1_000 - free_cents - 7 * agents.len() as u64;
    book.reserve("gone", 1, nano(used * CENT), nano(0));
    book.settle("gone", 1, Some(nano(used * CENT)));
    book.keep(book.ledger.release("gone"));
    book
}

#[test]
fn the_lead_goes_first_then_the_started_by_age_then_the_new_by_age() {
    let asks = [ask("n2", 2), begun("s3", 3), begun("s1", 1), begun("lead", 9), ask("n0", 0)];
    let expected = ["lead go", "s1 go", "s3 go", "n0 go", "n2 go"];
    assert_eq!(told(&Book::with(usd(100_000)).ledger, &asks, false, 0), expected);
    // A hand-back goes before all other asks: it ends an agent.
    let asks = [begun("lead", 0), LedgerRequest { last: true, ..begun("s1", 1) }];
    assert_eq!(told(&Book::with(usd(100_000)).ledger, &asks, false, 0), ["s1 go", "lead go"]);
}

#[test]
fn every_grant_counts_for_the_next_and_all_of_them_can_be_reserved() {
    let mut book = Book::with(usd(200));
    let asks: Vec<LedgerRequest> = (0..40).map(|n| ask(&format!("a{n:02}"), n)).collect();
    let answers = answer(&book.ledger, &asks, false, 0);
    assert!(answers.len() > 3 && answers.len() < 40, "{}", answers.len());
    for (index, answer) in answers {
        let LedgerAnswer::Go(room) = answer else { panic!("{answer:?}") };
        book.reserve(&asks[index].agent, 1, room.request, room.hand_back);
    }
    assert!(book.ledger.held().nano <= 200 * CENT);
}

#[test]
fn nobody_gives_way_while_something_is_under_way() {
    let mut book = holding(&["s1", "s2"], 5);
    let asks = [begun("s1", 1), begun("s2", 2), ask("n3", 3)];
    assert_eq!(told(&book.ledger, &asks, true, 0), [""; 0]);
    book.reserve("s4", 1, nano(CENT), nano(0));
    assert_eq!(told(&book.ledger, &asks, false, 0), [""; 0]);
}

#[test]
fn the_youngest_started_worker_gives_way_first_and_the_lead_last() {
    let book = holding(&["lead", "s1", "s2"], 2);
    let check =
        |asks: &[LedgerRequest], expected: &[&str]| assert_eq!(told(&book.ledger, asks, false, 0), expected);
    check(&[begun("lead", 9), begun("s1", 1), begun("s2", 2), ask("n3", 3)], &["s2 hand back"]);
    check(&[begun("lead", 9), begun("s1", 1), ask("n3", 3)], &["s1 hand back"]);
    check(&[begun("lead", 9), ask("n3", 3), ask("n4", 4)], &["lead hand back", "n3 refused", "n4 refused"]);
    check(&[ask("n3", 3), ask("n4", 4)], &["n3 refused", "n4 refused"]);
    // An agent that cannot hand back lets one that can go before it; if none can, the youngest is refused.
    let stuck = |agent, order| LedgerRequest { input_tokens: 10_000_000, ..begun(agent, order) };
    check(&[begun("s1", 1), stuck("s2", 2)], &["s1 hand back"]);
    check(&[stuck("s1", 1), stuck("s2", 2)], &["s2 refused"]);
    check(&[LedgerRequest { last: true, ..stuck("s2", 2) }], &["s2 refused"]);
    check(&[ask("lead", 0)], &["lead refused"]);
}

#[test]
fn an_agent_whose_attempt_was_lost_in_a_crash_does_not_wait_for_it() {
    let mut book = Book::with(usd(20));
    book.reserve("a", 1, nano(15 * CENT), nano(5 * CENT));
    assert_eq!(told(&book.ledger, &[begun("a", 1)], false, 0), ["a hand back"]);
    book.keep(book.ledger.grant(usd(100), "person"));
    assert_eq!(told(&book.ledger, &[begun("a", 1)], false, 0), ["a go"]);
}

#[test]
fn a_small_request_does_not_overtake_one_that_may_fit_when_what_is_in_flight_is_settled() {
    let mut book = holding(&[], 120);
    book.reserve("b", 1, nano(60 * CENT), nano(0));
    let large = LedgerRequest {
        input_tokens: 300_000,
        floor: 8_000,
        rates: Some(Rates {
            tiers: vec![RateTier { above: 0, input: 2_000, output: 10_000 }],
            overhead_tokens: 0,
            output_per_second: None,
        }),
        ..begun("s1", 1)
    };
    assert_eq!(told(&book.ledger, &[large.clone(), begun("s2", 2)], false, 0), [""; 0]);
    // One that will not fit even then is no reason to wait.
    let hopeless = LedgerRequest { input_tokens: 3_000_000, ..large };
    assert_eq!(told(&book.ledger, &[hopeless, begun("s2", 2)], false, 0), ["s2 go"]);
}

#[test]
fn new_agents_wait_while_hand_backs_hold_much_unless_nothing_else_can_happen() {
    let mut book = holding(&["s1", "s2", "s3", "s4"], 60);
    assert_eq!(told(&book.ledger, &[ask("n5", 5)], true, 0), [""; 0]);
    assert_eq!(told(&book.ledger, &[ask("n5", 5), ask("n6", 6)], false, 0), ["n5 go"]);
    for agent in ["s2", "s3", "s4"] {
        book.keep(book.ledger.release(agent));
    }
    assert_eq!(told(&book.ledger, &[ask("n5", 5)], true, 0), ["n5 go"]);
}

#[test]
fn agents_whose_first_request_failed_try_again_side_by_side() {
    // Their hand-backs hold just what new agents may carry: for one more there is no room, for each of them
    // there is.
    let book = holding(&["n1", "n2", "n3"], 60);
    assert_eq!(told(&book.ledger, &[ask("n4", 4)], true, 0), [""; 0]);
    let again = [ask("n1", 1), ask("n2", 2), ask("n3", 3), ask("n4", 4)];
    assert_eq!(told(&book.ledger, &again, true, 0), ["n1 go", "n2 go", "n3 go"]);
}

#[test]
fn past_the_minutes_the_started_hand_back_at_once_and_the_new_are_refused() {
    let mut book = holding(&["lead", "s1", "s2"], 900);
    book.keep(book.ledger.grant(Caps { ms: Some(1_000), ..usd(1_000) }, "person"));
    book.keep(book.ledger.hold("p1"));
    let asks = [begun("lead", 0), begun("s1", 1), ask("n3", 3), begun("s2", 2)];
    assert_eq!(told(&book.ledger, &asks, true, 999).len(), 4);
    let expected = ["lead hand back", "s1 hand back", "s2 hand back", "n3 refused"];
    assert_eq!(told(&book.ledger, &asks, true, 1_000), expected);
    assert_eq!(book.ledger.room(&asks[1], 1_000).unwrap_err().what, Cap::Minutes);
    assert!(book.ledger.last_room(&asks[1]).is_ok());
    // Hand-backs that do not fit wait for those that do, and the lead is refused last.
    let stuck = |agent, order| LedgerRequest { input_tokens: 100_000_000, ..begun(agent, order) };
    assert_eq!(told(&book.ledger, &[stuck("lead", 0), begun("s1", 1)], false, 1_000), ["s1 hand back"]);
    assert_eq!(told(&book.ledger, &[stuck("lead", 0), stuck("s1", 1)], true, 1_000), [""; 0]);
    let all = [stuck("lead", 0), stuck("s1", 1), stuck("s2", 2)];
    assert_eq!(told(&book.ledger, &all, false, 1_000), ["s2 refused"]);
    assert_eq!(told(&book.ledger, &all[..1], false, 1_000), ["lead refused"]);
}

#[test]
fn an_agent_that_asks_twice_is_answered_once() {
    let book = holding(&["s1"], 900);
    assert_eq!(told(&book.ledger, &[begun("s1", 1), begun("s1", 1)], false, 0), ["s1 go"]);
}
