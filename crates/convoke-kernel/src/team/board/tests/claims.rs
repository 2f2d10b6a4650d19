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
    let mut desk = TestBoard::plain(2);
    assert_eq!(desk.does(&claim(1, &member("alice"))), ["task_claimed"]);
    assert_eq!(desk.held(1), Some(("alice", 1, 1_100)));
    assert_eq!(desk.task(1).attempts, 1);
    assert_eq!(desk.board.held_by(&agent("alice")).map(|task| task.number), Some(1));
    assert_eq!(desk.board.next_expiry(), Some(1_100));
    desk.at += 10;
    desk.does(&claim(2, &script("ci")));
    assert_eq!(desk.held(2), Some(("ci", 2, 1_110)));
    assert_eq!(desk.board.next_expiry(), Some(1_100));
    assert_eq!(desk.board.unfinished().len(), 2);
}

#[test]
fn w31_everything_is_checked_again_by_the_claim_itself() {
    let mut desk = TestBoard::plain(3);
    // Both looked, and both saw the same.
    assert_eq!(desk.claimable(&member("alice")), desk.claimable(&member("bob")));
    desk.does(&claim(1, &member("alice")));
    desk.refuses(&claim(1, &member("bob")), &[id(1).as_str(), "task 1", "held by alice", "take another"]);
    // One that holds a task is given no second one.
    desk.refuses(
        &claim(2, &member("alice")),
        &["already holds", id(1).as_str(), "finish it or give it back"],
    );
    assert!(desk.claimable(&member("alice")).is_empty());
    assert_eq!(desk.claimable(&member("bob")), [2, 3]);
}

#[test]
fn w33_nothing_but_a_free_task_can_be_claimed() {
    let mut desk = TestBoard::plain(4);
    let alice = member("alice");
    let bob = member("bob");
    desk.refuses(&claim(9, &bob), &["no task", id(9).as_str(), "task 1"]);
    desk.does(&claim(1, &alice));
    desk.does(&finish(1, &alice, None, "fine"));
    desk.refuses(&claim(1, &bob), &["done already (by alice)"]);
    desk.does(&claim(2, &alice));
    desk.does(&fail(2, &alice, "no network"));
    desk.refuses(&claim(2, &bob), &["no network", "tried again"]);
    desk.does(&cancel(3));
    desk.refuses(&claim(3, &bob), &["cancelled by person"]);
    assert_eq!(desk.claimable(&bob), [4]);
}

#[test]
fn c11_c20_what_waits_for_open_tasks_is_not_claimed_and_finishing_them_frees_it_at_once() {
    let mut desk = TestBoard::with([new("one"), new("two"), after("three", &[1, 2])]);
    let alice = member("alice");
    let bob = member("bob");
    desk.does(&claim(1, &alice));
    assert_eq!(desk.claimable(&bob), [2]);
    desk.refuses(
        &claim(3, &bob),
        &[id(1).as_str(), "held by alice", id(2).as_str(), "pending", "another task"],
    );
    desk.does(&claim(2, &bob));
    desk.does(&finish(2, &bob, None, "two is done"));
    desk.refuses(&claim(3, &bob), &[id(1).as_str()]);
    assert!(desk.claimable(&bob).is_empty());
    let open = desk.board.open_dependencies(desk.task(3));
    assert_eq!(open.iter().map(|task| task.number).collect::<Vec<_>>(), [1]);
    desk.does(&finish(1, &alice, None, "one is done"));
    assert_eq!(desk.claimable(&bob), [3]);
    assert_eq!(desk.does(&claim(3, &bob)), ["task_claimed"]);
}

#[test]
fn w37_a_failed_dependency_keeps_a_task_waiting_until_it_is_done_or_no_dependency_any_more() {
    let mut desk = TestBoard::with([new("one"), after("two", &[1])]);
    desk.does(&cancel(1));
    desk.refuses(&claim(2, &member("alice")), &[id(1).as_str(), "failed"]);
    let without = TaskEdit { remove_blocked_by: vec![id(1)], ..TaskEdit::default() };
    desk.does(&edit(2, without));
    assert_eq!(desk.claimable(&member("alice")), [2]);
}

#[test]
fn c12_w36_tasks_are_offered_by_priority_and_then_in_the_order_they_were_written() {
    let urgent = |subject: &str, priority: i32| NewTask { priority, ..new(subject) };
    let mut tasks: Vec<NewTask> = (1..=12).map(|number| new(&format!("task {number}"))).collect();
    tasks[4] = urgent("soon", 1);
    tasks[7] = urgent("later", -1);
    tasks[10] = urgent("now", 9);
    let desk = TestBoard::with(tasks);
    assert_eq!(desk.claimable(&member("alice")), [11, 5, 1, 2, 3, 4, 6, 7, 9, 10, 12, 8]);
}

#[test]
fn w41_a_task_that_wants_a_role_goes_to_nobody_else() {
    let mut desk = TestBoard::with([for_role("draw", "Artist"), new("anything")]);
    desk.refuses(&claim(1, &member("alice")), &["for the role 'Artist'", "alice has the role 'coder'"]);
    desk.refuses(&claim(1, &script("ci")), &["'Artist'"]);
    assert_eq!(desk.claimable(&member("alice")), [2]);
    let painter = with_role("bob", " ARTIST");
    assert_eq!(desk.claimable(&painter), [1, 2]);
    assert_eq!(desk.does(&claim(1, &painter)), ["task_claimed"]);
}

#[test]
fn claiming_what_one_holds_renews_it_and_keeps_its_token() {
    let mut desk = TestBoard::plain(1);
    let alice = member("alice");
    desk.does(&claim(1, &alice));
    assert!(desk.does(&claim(1, &alice)).is_empty(), "not a moment longer");
    desk.at += 50;
    assert_eq!(desk.does(&claim(1, &alice)), ["task_renewed"]);
    assert_eq!(desk.held(1), Some(("alice", 1, 1_150)));
    // It ran out, but no other member took it.
    desk.at = 5_000;
    assert_eq!(desk.does(&claim(1, &alice)), ["task_renewed"]);
    assert_eq!((desk.held(1), desk.task(1).attempts), (Some(("alice", 1, 5_100)), 1));
}

#[test]
fn w35_a_claim_that_ran_out_can_be_taken_over_and_the_late_holder_writes_nothing() {
    let mut desk = TestBoard::plain(1);
    let alice = member("alice");
    let bob = member("bob");
    desk.does(&claim(1, &alice));
    desk.at = 1_099;
    desk.refuses(&claim(1, &bob), &["held by alice"]);
    desk.at = 1_100;
    assert_eq!(desk.claimable(&bob), [1]);
    assert_eq!(desk.does(&claim(1, &bob)), ["task_claimed"]);
    assert_eq!((desk.held(1), desk.task(1).attempts), (Some(("bob", 2, 1_200)), 2));
    for late in [finish(1, &alice, Some(1), "late"), fail(1, &alice, "late"), release(1, &alice, None)] {
        desk.refuses(&late, &["held by bob now, not by alice"]);
    }
    assert!(desk.does(&renew(&["alice"])).is_empty());
    assert!(desk.does(&release_all("alice")).is_empty());
    desk.refuses(&BoardEntry::Offer { task: id(1), agent: agent("alice") }, &["not hold"]);
    desk.does(&finish(1, &bob, Some(2), "bob's"));
    desk.refuses(&finish(1, &alice, Some(1), "late"), &["done already (by bob)"]);
    assert_eq!(desk.task(1).result.as_deref(), Some("bob's"));
}

#[test]
fn w35_a_token_of_an_earlier_claim_of_ones_own_is_refused() {
    let mut desk = TestBoard::plain(1);
    let alice = member("alice");
    desk.does(&claim(1, &alice));
    desk.does(&release(1, &alice, Some(1)));
    desk.refuses(&finish(1, &alice, Some(1), "late"), &["Nobody holds", "claim it"]);
    desk.does(&claim(1, &alice));
    desk.refuses(&finish(1, &alice, Some(1), "late"), &["Claim 1", "claim 2"]);
    desk.refuses(&release(1, &alice, Some(1)), &["Claim 1"]);
    assert_eq!(desk.does(&finish(1, &alice, Some(2), "in time")), ["task_finished"]);
}

#[test]
fn w35_work_that_was_finished_after_the_lease_ran_out_counts_if_nobody_took_the_task() {
    let mut desk = TestBoard::plain(1);
    desk.does(&claim(1, &member("alice")));
    desk.at = 9_000;
    assert_eq!(desk.does(&finish(1, &member("alice"), Some(1), "slow but done")), ["task_finished"]);
    assert_eq!(desk.task(1).state, TaskState::Done { name: "alice".to_owned(), at: 9_000 });
}

#[test]
fn a_namesake_with_another_agent_is_somebody_else_and_a_script_is_known_by_its_name() {
    let mut desk = TestBoard::plain(2);
    let alice = member("alice");
    let second = Claimant { agent: Some(agent("alice, the second")), ..alice.clone() };
    desk.does(&claim(1, &alice));
    desk.refuses(&finish(1, &second, Some(1), "mine"), &["held by alice now"]);
    desk.refuses(&finish(1, &script("alice"), Some(1), "mine"), &["held by alice now"]);
    desk.does(&claim(2, &script("ci")));
    desk.refuses(&finish(2, &script("nightly"), None, "mine"), &["held by ci now, not by nightly"]);
    assert_eq!(desk.does(&finish(2, &script("ci"), None, "")), ["task_finished"]);
    assert_eq!(desk.task(2).result, None);
}

#[test]
fn finishing_or_failing_twice_in_the_same_words_changes_nothing() {
    let mut desk = TestBoard::plain(2);
    let alice = member("alice");
    desk.does(&claim(1, &alice));
    desk.does(&finish(1, &alice, Some(1), "fine"));
    assert!(desk.does(&finish(1, &alice, Some(1), "fine")).is_empty());
    desk.refuses(&finish(1, &alice, Some(1), "finer"), &["done already (by alice)", "its result stays"]);
    desk.does(&claim(2, &alice));
    desk.does(&fail(2, &alice, "broken"));
    assert!(desk.does(&fail(2, &alice, "broken")).is_empty());
    desk.refuses(&finish(2, &alice, None, "after all"), &["failed already (broken)"]);
}

#[test]
fn a_result_that_is_too_long_is_refused_and_not_cut() {
    let mut desk = TestBoard::plain(1);
    desk.does(&claim(1, &member("alice")));
    desk.refuses(&finish(1, &member("alice"), None, &"x".repeat(40_000)), &["result", "40000 bytes", "file"]);
    assert!(desk.held(1).is_some());
}

#[test]
fn w40_a_task_keeps_its_result_its_attempts_and_why_it_failed() {
    let mut desk = TestBoard::plain(1);
    let alice = member("alice");
    desk.does(&claim(1, &alice));
    desk.does(&release(1, &alice, None));
    assert!(desk.is_pending(1));
    desk.does(&claim(1, &alice));
    assert_eq!(desk.task(1).attempts, 2);
    desk.does(&fail(1, &alice, "no disk"));
    let failed = TaskState::Failed { name: "alice".to_owned(), why: "no disk".to_owned(), at: 1_000 };
    assert_eq!(desk.task(1).state, failed);
    assert_eq!(desk.does(&again(1)), ["task_retried"]);
    assert!(desk.does(&again(1)).is_empty());
    assert_eq!((desk.is_pending(1), desk.task(1).attempts), (true, 0));
    desk.does(&claim(1, &alice));
    desk.refuses(&again(1), &["held by alice", "only a failed task"]);
    desk.does(&finish(1, &alice, None, "there was a disk"));
    assert_eq!(desk.task(1).result.as_deref(), Some("there was a disk"));
    desk.refuses(&again(1), &["done (by alice)"]);
    desk.refuses(&cancel(1), &["done already (by alice)"]);
}

#[test]
fn whoever_cancels_a_task_takes_it_from_its_holder() {
    let mut desk = TestBoard::plain(1);
    desk.does(&claim(1, &member("alice")));
    assert_eq!(desk.does(&cancel(1)), ["task_failed"]);
    assert!(desk.does(&cancel(1)).is_empty());
    desk.refuses(&finish(1, &member("alice"), Some(1), "but"), &["cancelled by person"]);
    assert_eq!(desk.board.held_by(&agent("alice")), None);
    assert!(desk.board.unfinished().is_empty());
}

#[test]
fn w35_a_living_holder_keeps_its_task_and_one_event_renews_for_all() {
    let mut desk = TestBoard::plain(3);
    desk.does(&claim(1, &member("alice")));
    desk.does(&claim(2, &member("bob")));
    desk.does(&claim(3, &member("carol")));
    assert!(desk.does(&renew(&["alice", "bob"])).is_empty(), "nothing is longer");
    desk.at += 60;
    assert_eq!(desk.does(&renew(&["alice", "bob", "nobody"])), ["task_renewed"]);
    assert_eq!([1, 2, 3].map(|number| desk.held(number).unwrap().2), [1_160, 1_160, 1_100]);
    desk.at = 1_100;
    assert_eq!(desk.does(&BoardEntry::Expire), ["task_released"]);
    assert!(desk.is_pending(3));
    assert!(desk.does(&BoardEntry::Expire).is_empty());
    assert!(desk.does(&renew(&["carol"])).is_empty());
}

#[test]
fn w35_what_a_dead_or_stopped_holder_had_goes_back_and_fails_after_too_many_claims() {
    fn check(gives_back: impl Fn(&mut TestBoard) -> Vec<&'static str>) {
        let mut desk = TestBoard::plain(1);
        for attempt in 1..=ATTEMPTS {
            desk.does(&claim(1, &member("alice")));
            let last = attempt == ATTEMPTS;
            assert_eq!(gives_back(&mut desk), [if last { "task_failed" } else { "task_released" }]);
        }
        let TaskState::Failed { name, why, .. } = &desk.task(1).state else { panic!("{:?}", desk.task(1)) };
        assert_eq!(name, "alice");
        assert!(why.contains("claimed 5 times"), "{why}");
    }
    check(|desk| desk.does(&release_all("alice")));
    check(|desk| {
        desk.at += TTL;
        desk.does(&BoardEntry::Expire)
    });
}

#[test]
fn a_task_that_ran_out_too_often_is_given_to_nobody_even_before_that_is_written_down() {
    let mut desk = TestBoard::plain(1);
    for _ in 0..ATTEMPTS {
        desk.does(&claim(1, &member("alice")));
        desk.refuses(&claim(1, &member("bob")), &["held by alice"]);
        if desk.task(1).attempts < ATTEMPTS {
            desk.does(&release(1, &member("alice"), None));
        }
    }
    desk.at += TTL;
    assert!(desk.claimable(&member("bob")).is_empty());
    desk.refuses(&claim(1, &member("bob")), &["claimed 5 times", "tried again"]);
    assert_eq!(desk.does(&again(1)), ["task_failed", "task_retried"]);
    assert_eq!(desk.claimable(&member("bob")), [1]);
}

#[test]
fn w27_a_task_that_everybody_gives_up_fails_at_last_and_can_be_tried_again() {
    let mut desk = TestBoard::plain(1);
    for attempt in 1..=ATTEMPTS {
        let who = member(if attempt % 2 == 0 { "alice" } else { "bob" });
        desk.does(&claim(1, &who));
        let expected = if attempt < ATTEMPTS { "task_released" } else { "task_failed" };
        assert_eq!(desk.does(&release(1, &who, None)), [expected]);
        if attempt < ATTEMPTS {
            assert_eq!(desk.task(1).given_up, Some(who.name));
        }
    }
    desk.does(&again(1));
    assert_eq!((desk.is_pending(1), desk.task(1).attempts, &desk.task(1).given_up), (true, 0, &None));
}

#[test]
fn whoever_claims_anew_gives_back_what_it_let_run_out() {
    let mut desk = TestBoard::plain(2);
    let alice = member("alice");
    desk.does(&claim(1, &alice));
    desk.at += TTL;
    assert_eq!(desk.claimable(&alice), [2]);
    assert_eq!(desk.does(&claim(2, &alice)), ["task_released", "task_claimed"]);
    assert_eq!(desk.board.held_by(&agent("alice")).map(|task| task.number), Some(2));
    assert!(desk.is_pending(1));
}

#[test]
fn offers_are_counted_for_the_present_holder() {
    let mut desk = TestBoard::plain(1);
    let offer = BoardEntry::Offer { task: id(1), agent: agent("alice") };
    desk.refuses(&offer, &["does not hold"]);
    desk.does(&claim(1, &member("alice")));
    assert_eq!(desk.does(&offer), ["task_offered"]);
    desk.does(&offer);
    assert_eq!(desk.task(1).offers, 2);
    desk.does(&release_all("alice"));
    assert_eq!(desk.task(1).offers, 0);
    desk.does(&claim(1, &member("bob")));
    assert_eq!(desk.task(1).offers, 0);
}
