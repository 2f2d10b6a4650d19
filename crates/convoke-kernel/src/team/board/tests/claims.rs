//! Claiming, holding, finishing and giving back.

use super::super::ATTEMPTS;
use super::*;

fn again(number: u64) -> BoardEntry {
    BoardEntry::Retry { task: id(number), by: "lead".to_owned() }
}

fn cancel(number: u64) -> BoardEntry {
    BoardEntry::Cancel { task: id(number), by: "person".to_owned() }
}

fn release_all(name: &str) -> BoardEntry {
    BoardEntry::ReleaseAll { agent: agent(name), why: "it was stopped".to_owned() }
}

fn renew(names: &[&str]) -> BoardEntry {
    BoardEntry::Renew { agents: names.iter().map(|name| agent(name)).collect(), ttl: TTL }
}

#[test]
fn c13_a_claim_writes_down_who_holds_the_task_and_until_when() {
    let mut fixture = TestBoard::plain(2);
    assert_eq!(fixture.does(&claim(1, &member("alice"))), ["task_claimed"]);
    assert_eq!(fixture.held(1), Some(("alice", 1, 1_100)));
    assert_eq!(fixture.task(1).attempts, 1);
    assert_eq!(fixture.board.held_by(&agent("alice")).map(|task| task.number), Some(1));
    assert_eq!(fixture.board.next_expiry(), Some(1_100));
    fixture.at += 10;
    fixture.does(&claim(2, &script("ci")));
    assert_eq!(fixture.held(2), Some(("ci", 2, 1_110)));
    assert_eq!(fixture.board.next_expiry(), Some(1_100));
    assert_eq!(fixture.board.unfinished().len(), 2);
}

#[test]
fn w31_everything_is_checked_again_by_the_claim_itself() {
    let mut fixture = TestBoard::plain(3);
    // Both looked, and both saw the same.
    assert_eq!(fixture.claimable(&member("alice")), fixture.claimable(&member("bob")));
    fixture.does(&claim(1, &member("alice")));
    fixture.refuses(&claim(1, &member("bob")), &[id(1).as_str(), "task 1", "held by alice", "take another"]);
    // One that holds a task is given no second one.
    fixture.refuses(
        &claim(2, &member("alice")),
        &["already holds", id(1).as_str(), "finish it or give it back"],
    );
    assert!(fixture.claimable(&member("alice")).is_empty());
    assert_eq!(fixture.claimable(&member("bob")), [2, 3]);
}

#[test]
fn w33_nothing_but_a_free_task_can_be_claimed() {
    let mut fixture = TestBoard::plain(4);
    let alice = member("alice");
    let bob = member("bob");
    fixture.refuses(&claim(9, &bob), &["no task", id(9).as_str(), "task 1"]);
    fixture.does(&claim(1, &alice));
    fixture.does(&finish(1, &alice, None, "fine"));
    fixture.refuses(&claim(1, &bob), &["done already (by alice)"]);
    fixture.does(&claim(2, &alice));
    fixture.does(&fail(2, &alice, "no network"));
    fixture.refuses(&claim(2, &bob), &["no network", "tried again"]);
    fixture.does(&cancel(3));
    fixture.refuses(&claim(3, &bob), &["cancelled by person"]);
    assert_eq!(fixture.claimable(&bob), [4]);
}

#[test]
fn c11_c20_what_waits_for_open_tasks_is_not_claimed_and_finishing_them_frees_it_at_once() {
    let mut fixture = TestBoard::with([new("one"), new("two"), after("three", &[1, 2])]);
    let alice = member("alice");
    let bob = member("bob");
    fixture.does(&claim(1, &alice));
    assert_eq!(fixture.claimable(&bob), [2]);
    fixture.refuses(
        &claim(3, &bob),
        &[id(1).as_str(), "held by alice", id(2).as_str(), "pending", "another task"],
    );
    fixture.does(&claim(2, &bob));
    fixture.does(&finish(2, &bob, None, "two is done"));
    fixture.refuses(&claim(3, &bob), &[id(1).as_str()]);
    assert!(fixture.claimable(&bob).is_empty());
    let open = fixture.board.open_dependencies(fixture.task(3));
    assert_eq!(open.iter().map(|task| task.number).collect::<Vec<_>>(), [1]);
    fixture.does(&finish(1, &alice, None, "one is done"));
    assert_eq!(fixture.claimable(&bob), [3]);
    assert_eq!(fixture.does(&claim(3, &bob)), ["task_claimed"]);
}

#[test]
fn w37_a_failed_dependency_keeps_a_task_waiting_until_it_is_done_or_no_dependency_any_more() {
    let mut fixture = TestBoard::with([new("one"), after("two", &[1])]);
    fixture.does(&cancel(1));
    fixture.refuses(&claim(2, &member("alice")), &[id(1).as_str(), "failed"]);
    let without = TaskEdit { remove_blocked_by: vec![id(1)], ..TaskEdit::default() };
    fixture.does(&edit(2, without));
    assert_eq!(fixture.claimable(&member("alice")), [2]);
}

#[test]
fn c12_w36_tasks_are_offered_by_priority_and_then_in_the_order_they_were_written() {
    let urgent = |subject: &str, priority: i32| NewTask { priority, ..new(subject) };
    let mut tasks: Vec<NewTask> = (1..=12).map(|number| new(&format!("task {number}"))).collect();
    tasks[4] = urgent("soon", 1);
    tasks[7] = urgent("later", -1);
    tasks[10] = urgent("now", 9);
    let fixture = TestBoard::with(tasks);
    assert_eq!(fixture.claimable(&member("alice")), [11, 5, 1, 2, 3, 4, 6, 7, 9, 10, 12, 8]);
}

#[test]
fn w41_a_task_that_wants_a_role_goes_to_nobody_else() {
    let mut fixture = TestBoard::with([for_role("draw", "Artist"), new("anything")]);
    fixture.refuses(&claim(1, &member("alice")), &["for the role 'Artist'", "alice has the role 'coder'"]);
    fixture.refuses(&claim(1, &script("ci")), &["'Artist'"]);
    assert_eq!(fixture.claimable(&member("alice")), [2]);
    let painter = with_role("bob", " ARTIST");
    assert_eq!(fixture.claimable(&painter), [1, 2]);
    assert_eq!(fixture.does(&claim(1, &painter)), ["task_claimed"]);
}

#[test]
fn claiming_what_one_holds_renews_it_and_keeps_its_token() {
    let mut fixture = TestBoard::plain(1);
    let alice = member("alice");
    fixture.does(&claim(1, &alice));
    assert!(fixture.does(&claim(1, &alice)).is_empty(), "not a moment longer");
    fixture.at += 50;
    assert_eq!(fixture.does(&claim(1, &alice)), ["task_renewed"]);
    assert_eq!(fixture.held(1), Some(("alice", 1, 1_150)));
    // It ran out, but no other member took it.
    fixture.at = 5_000;
    assert_eq!(fixture.does(&claim(1, &alice)), ["task_renewed"]);
    assert_eq!((fixture.held(1), fixture.task(1).attempts), (Some(("alice", 1, 5_100)), 1));
}

#[test]
fn w35_a_claim_that_ran_out_can_be_taken_over_and_the_late_holder_writes_nothing() {
    let mut fixture = TestBoard::plain(1);
    let alice = member("alice");
    let bob = member("bob");
    fixture.does(&claim(1, &alice));
    fixture.at = 1_099;
    fixture.refuses(&claim(1, &bob), &["held by alice"]);
    fixture.at = 1_100;
    assert_eq!(fixture.claimable(&bob), [1]);
    assert_eq!(fixture.does(&claim(1, &bob)), ["task_claimed"]);
    assert_eq!((fixture.held(1), fixture.task(1).attempts), (Some(("bob", 2, 1_200)), 2));
    for late in [finish(1, &alice, Some(1), "late"), fail(1, &alice, "late"), release(1, &alice, None)] {
        fixture.refuses(&late, &["held by bob now, not by alice"]);
    }
    assert!(fixture.does(&renew(&["alice"])).is_empty());
    assert!(fixture.does(&release_all("alice")).is_empty());
    fixture.refuses(&BoardEntry::Offer { task: id(1), agent: agent("alice") }, &["not hold"]);
    fixture.does(&finish(1, &bob, Some(2), "bob's"));
    fixture.refuses(&finish(1, &alice, Some(1), "late"), &["done already (by bob)"]);
    assert_eq!(fixture.task(1).result.as_deref(), Some("bob's"));
}

#[test]
fn w35_a_token_of_an_earlier_claim_of_ones_own_is_refused() {
    let mut fixture = TestBoard::plain(1);
    let alice = member("alice");
    fixture.does(&claim(1, &alice));
    fixture.does(&release(1, &alice, Some(1)));
    fixture.refuses(&finish(1, &alice, Some(1), "late"), &["No member holds", "claim it"]);
    fixture.does(&claim(1, &alice));
    fixture.refuses(&finish(1, &alice, Some(1), "late"), &["Claim 1", "claim 2"]);
    fixture.refuses(&release(1, &alice, Some(1)), &["Claim 1"]);
    assert_eq!(fixture.does(&finish(1, &alice, Some(2), "in time")), ["task_finished"]);
}

#[test]
fn w35_work_that_was_finished_after_the_lease_ran_out_counts_if_nobody_took_the_task() {
    let mut fixture = TestBoard::plain(1);
    fixture.does(&claim(1, &member("alice")));
    fixture.at = 9_000;
    assert_eq!(fixture.does(&finish(1, &member("alice"), Some(1), "slow but done")), ["task_finished"]);
    assert_eq!(fixture.task(1).state, TaskState::Done { name: "alice".to_owned(), at: 9_000 });
}

#[test]
fn a_namesake_with_another_agent_is_somebody_else_and_a_script_is_known_by_its_name() {
    let mut fixture = TestBoard::plain(2);
    let alice = member("alice");
    let second = Claimant { agent: Some(agent("alice, the second")), ..alice.clone() };
    fixture.does(&claim(1, &alice));
    fixture.refuses(&finish(1, &second, Some(1), "mine"), &["held by alice now"]);
    fixture.refuses(&finish(1, &script("alice"), Some(1), "mine"), &["held by alice now"]);
    fixture.does(&claim(2, &script("ci")));
    fixture.refuses(&finish(2, &script("nightly"), None, "mine"), &["held by ci now, not by nightly"]);
    assert_eq!(fixture.does(&finish(2, &script("ci"), None, "")), ["task_finished"]);
    assert_eq!(fixture.task(2).result, None);
}

#[test]
fn finishing_or_failing_twice_in_the_same_words_changes_nothing() {
    let mut fixture = TestBoard::plain(2);
    let alice = member("alice");
    fixture.does(&claim(1, &alice));
    fixture.does(&finish(1, &alice, Some(1), "fine"));
    assert!(fixture.does(&finish(1, &alice, Some(1), "fine")).is_empty());
    fixture.refuses(&finish(1, &alice, Some(1), "finer"), &["done already (by alice)", "its result stays"]);
    fixture.does(&claim(2, &alice));
    fixture.does(&fail(2, &alice, "broken"));
    assert!(fixture.does(&fail(2, &alice, "broken")).is_empty());
    fixture.refuses(&finish(2, &alice, None, "after all"), &["failed already (broken)"]);
}

#[test]
fn a_result_that_is_too_long_is_refused_and_not_cut() {
    let mut fixture = TestBoard::plain(1);
    fixture.does(&claim(1, &member("alice")));
    fixture
        .refuses(&finish(1, &member("alice"), None, &"x".repeat(40_000)), &["result", "40000 bytes", "file"]);
    assert!(fixture.held(1).is_some());
}

#[test]
fn w40_a_task_keeps_its_result_its_attempts_and_why_it_failed() {
    let mut fixture = TestBoard::plain(1);
    let alice = member("alice");
    fixture.does(&claim(1, &alice));
    fixture.does(&release(1, &alice, None));
    assert!(fixture.is_pending(1));
    fixture.does(&claim(1, &alice));
    assert_eq!(fixture.task(1).attempts, 2);
    fixture.does(&fail(1, &alice, "no disk"));
    let failed = TaskState::Failed { name: "alice".to_owned(), why: "no disk".to_owned(), at: 1_000 };
    assert_eq!(fixture.task(1).state, failed);
    assert_eq!(fixture.does(&again(1)), ["task_retried"]);
    assert!(fixture.does(&again(1)).is_empty());
    assert_eq!((fixture.is_pending(1), fixture.task(1).attempts), (true, 0));
    fixture.does(&claim(1, &alice));
    fixture.refuses(&again(1), &["held by alice", "only a failed task"]);
    fixture.does(&finish(1, &alice, None, "there was a disk"));
    assert_eq!(fixture.task(1).result.as_deref(), Some("there was a disk"));
    fixture.refuses(&again(1), &["done (by alice)"]);
    fixture.refuses(&cancel(1), &["done already (by alice)"]);
}

#[test]
fn whoever_cancels_a_task_takes_it_from_its_holder() {
    let mut fixture = TestBoard::plain(1);
    fixture.does(&claim(1, &member("alice")));
    assert_eq!(fixture.does(&cancel(1)), ["task_failed"]);
    assert!(fixture.does(&cancel(1)).is_empty());
    fixture.refuses(&finish(1, &member("alice"), Some(1), "but"), &["cancelled by person"]);
    assert_eq!(fixture.board.held_by(&agent("alice")), None);
    assert!(fixture.board.unfinished().is_empty());
}

#[test]
fn w35_a_living_holder_keeps_its_task_and_one_event_renews_for_all() {
    let mut fixture = TestBoard::plain(3);
    fixture.does(&claim(1, &member("alice")));
    fixture.does(&claim(2, &member("bob")));
    fixture.does(&claim(3, &member("carol")));
    assert!(fixture.does(&renew(&["alice", "bob"])).is_empty(), "nothing is longer");
    fixture.at += 60;
    assert_eq!(fixture.does(&renew(&["alice", "bob", "nobody"])), ["task_renewed"]);
    assert_eq!([1, 2, 3].map(|number| fixture.held(number).unwrap().2), [1_160, 1_160, 1_100]);
    fixture.at = 1_100;
    assert_eq!(fixture.does(&BoardEntry::Expire), ["task_released"]);
    assert!(fixture.is_pending(3));
    assert!(fixture.does(&BoardEntry::Expire).is_empty());
    assert!(fixture.does(&renew(&["carol"])).is_empty());
}

#[test]
fn w35_what_a_dead_or_stopped_holder_had_goes_back_and_fails_after_too_many_claims() {
    fn check(gives_back: impl Fn(&mut TestBoard) -> Vec<&'static str>) {
        let mut fixture = TestBoard::plain(1);
        for attempt in 1..=ATTEMPTS {
            fixture.does(&claim(1, &member("alice")));
            let last = attempt == ATTEMPTS;
            assert_eq!(gives_back(&mut fixture), [if last { "task_failed" } else { "task_released" }]);
        }
        let TaskState::Failed { name, why, .. } = &fixture.task(1).state else {
            panic!("{:?}", fixture.task(1))
        };
        assert_eq!(name, "alice");
        assert!(why.contains("claimed 5 times"), "{why}");
    }
    check(|fixture| fixture.does(&release_all("alice")));
    check(|fixture| {
        fixture.at += TTL;
        fixture.does(&BoardEntry::Expire)
    });
}

#[test]
fn a_task_that_ran_out_too_often_is_given_to_nobody_even_before_that_is_written_down() {
    let mut fixture = TestBoard::plain(1);
    for _ in 0..ATTEMPTS {
        fixture.does(&claim(1, &member("alice")));
        fixture.refuses(&claim(1, &member("bob")), &["held by alice"]);
        if fixture.task(1).attempts < ATTEMPTS {
            fixture.does(&release(1, &member("alice"), None));
        }
    }
    fixture.at += TTL;
    assert!(fixture.claimable(&member("bob")).is_empty());
    fixture.refuses(&claim(1, &member("bob")), &["claimed 5 times", "tried again"]);
    assert_eq!(fixture.does(&again(1)), ["task_failed", "task_retried"]);
    assert_eq!(fixture.claimable(&member("bob")), [1]);
}

#[test]
fn w27_a_task_that_everybody_gives_up_fails_at_last_and_can_be_tried_again() {
    let mut fixture = TestBoard::plain(1);
    for attempt in 1..=ATTEMPTS {
        let who = member(if attempt % 2 == 0 { "alice" } else { "bob" });
        fixture.does(&claim(1, &who));
        let expected = if attempt < ATTEMPTS { "task_released" } else { "task_failed" };
        assert_eq!(fixture.does(&release(1, &who, None)), [expected]);
        if attempt < ATTEMPTS {
            assert_eq!(fixture.task(1).given_up, Some(who.name));
        }
    }
    fixture.does(&again(1));
    assert_eq!(
        (fixture.is_pending(1), fixture.task(1).attempts, &fixture.task(1).given_up),
        (true, 0, &None)
    );
}

#[test]
fn whoever_claims_anew_gives_back_what_it_let_run_out() {
    let mut fixture = TestBoard::plain(2);
    let alice = member("alice");
    fixture.does(&claim(1, &alice));
    fixture.at += TTL;
    assert_eq!(fixture.claimable(&alice), [2]);
    assert_eq!(fixture.does(&claim(2, &alice)), ["task_released", "task_claimed"]);
    assert_eq!(fixture.board.held_by(&agent("alice")).map(|task| task.number), Some(2));
    assert!(fixture.is_pending(1));
}

#[test]
fn offers_are_counted_for_the_present_holder() {
    let mut fixture = TestBoard::plain(1);
    let offer = BoardEntry::Offer { task: id(1), agent: agent("alice") };
    fixture.refuses(&offer, &["does not hold"]);
    fixture.does(&claim(1, &member("alice")));
    assert_eq!(fixture.does(&offer), ["task_offered"]);
    fixture.does(&offer);
    assert_eq!(fixture.task(1).offers, 2);
    fixture.does(&release_all("alice"));
    assert_eq!(fixture.task(1).offers, 0);
    fixture.does(&claim(1, &member("bob")));
    assert_eq!(fixture.task(1).offers, 0);
}
