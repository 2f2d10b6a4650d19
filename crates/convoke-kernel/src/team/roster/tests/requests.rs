//! Requests: each is answered once, by the member that was asked, and ends with the member that asked.

use super::*;
use crate::team::PERSON;

#[test]
fn w24_a_shutdown_is_asked_answered_and_then_carried_out() {
    let mut team = Team::of(&[("alice", "coder")]);
    assert_eq!(team.does(ask_stop("r", "alice", 5_000)), ["request_asked"]);
    let stopping = Standing::Stopping { request: id("r"), deadline: 5_000 };
    assert_eq!(team.member("alice").standing, stopping);
    assert!(team.roster.recipient("alice").is_ok(), "it has to read the request");
    assert_eq!(team.does(answer_stop("r", "alice", true)), ["request_answered"]);
    assert_eq!((&team.member("alice").standing, team.state("r")), (&stopping, RequestState::Approved));
    // It failed on the way: it stops all the same.
    assert_eq!(team.does(fail("alice")), [""; 0]);
    team.at = 9_000;
    assert_eq!(team.does(stop("alice")), ["member_stopped"]);
    assert_eq!(team.state("r"), RequestState::Approved);
    assert_eq!(team.roster.request(&id("r")).unwrap().by.as_deref(), Some("alice"));
}

#[test]
fn a_teammate_that_refuses_to_stop_is_live_again_and_can_be_asked_once_more() {
    let mut team = Team::of(&[("alice", "coder")]);
    team.does(ask_stop("r", "alice", 5_000));
    let again = team.refuses(ask_stop("s", "alice", 6_000));
    assert!(again.contains("asked to stop already") && again.contains(id("r").as_str()), "{again}");
    team.does(answer_stop("r", "alice", false));
    assert_eq!((&team.member("alice").standing, team.state("r")), (&Standing::Live, RequestState::Rejected));
    assert!(
        team.refuses(answer_stop("r", "alice", true)).contains("was rejected by alice and is answered once")
    );
    team.does(ask_stop("s", "alice", 6_000));
    assert_eq!(team.member("alice").standing, Standing::Stopping { request: id("s"), deadline: 6_000 });
}

#[test]
fn stopping_answers_the_request_by_whether_its_deadline_has_passed() {
    let check = |late: bool, state: RequestState, by: &str, afterwards: &str| {
        let mut team = Team::of(&[("alice", "coder")]);
        team.does(ask_stop("r", "alice", 5_000));
        // The next entry is made one millisecond later: at the deadline, or just past it.
        team.at = if late { 5_000 } else { 4_999 };
        assert_eq!(team.does(stop("alice")), ["request_answered", "member_stopped"]);
        let request = team.roster.request(&id("r")).unwrap();
        assert_eq!((request.state, request.by.as_deref()), (state, Some(by)));
        assert!(team.refuses(answer_stop("r", "alice", false)).contains(afterwards));
    };
    check(false, RequestState::Approved, "alice", "was approved by alice and is answered once");
    check(true, RequestState::Expired, "convoke", "has expired");
}

#[test]
fn a_request_to_stop_is_answered_by_whom_it_asks_and_by_nobody_else() {
    let mut team = Team::of(&[("alice", "coder"), ("bob", "tester")]);
    assert!(team.refuses(answer_stop("r", "alice", true)).contains("none waits for an answer"));
    team.does(ask_stop("r", "alice", 5_000));
    for other in ["bob", LEAD, PERSON] {
        let refused = team.refuses(answer_stop("r", other, true));
        assert!(refused.contains(&format!("asks alice to stop, so {other} cannot answer it")), "{refused}");
    }
    let other = team.refuses(answer_stop("x", "alice", true));
    assert!(other.ends_with(&format!("what waits for an answer: {} (for alice)", id("r"))), "{other}");
    assert!(
        team.refuses(answer_plan("r", LEAD, true)).contains("there is no plan"),
        "the kinds are kept apart"
    );
}

#[test]
fn only_a_live_or_failed_teammate_is_asked_to_stop() {
    let mut team = Team::of(&[("alice", "coder"), ("bob", "tester")]);
    assert!(team.refuses(ask_stop("r", "nobody", 9)).starts_with("there is no 'nobody'"));
    team.does(fail("alice"));
    team.does(ask_stop("r", "alice", 9_999));
    team.does(stop("bob"));
    assert!(team.refuses(ask_stop("s", "bob", 9)).contains("bob has stopped"));
    assert!(team.refuses(ask_stop("r", "alice", 9)).contains("already"));
}

#[test]
fn a_plan_is_answered_once_by_the_lead_or_a_person() {
    let mut team = Team::of(&[("alice", "coder"), ("bob", "tester")]);
    team.does(ask_plan("p", "alice"));
    team.does(ask_plan("q", "bob"));
    let asked = team.roster.request(&id("p")).unwrap();
    let expected =
        (RequestKind::Plan, "alice", LEAD, RequestState::Pending, Some(TaskId::derived(&["task"])));
    assert_eq!(
        (asked.kind, asked.from.as_str(), asked.to.as_str(), asked.state, asked.task.clone()),
        expected
    );
    let open: Vec<_> = team.roster.open_requests().iter().map(|(id, _)| (*id).clone()).collect();
    assert_eq!(open, [id("p"), id("q")], "oldest first");

    for other in ["alice", "bob", "convoke"] {
        assert!(team.refuses(answer_plan("p", other, true)).contains("the lead or a person does"));
    }
    team.does(answer_plan("p", LEAD, false));
    team.does(answer_plan("q", PERSON, true));
    assert_eq!((team.state("p"), team.state("q")), (RequestState::Rejected, RequestState::Approved));
    assert!(
        team.refuses(answer_plan("p", PERSON, true)).contains("was rejected by lead and is answered once")
    );
    assert!(
        team.refuses(answer_plan("q", LEAD, true)).contains("was approved by person and is answered once")
    );
    assert!(team.roster.open_requests().is_empty());
}

#[test]
fn a_new_plan_replaces_ones_own_that_still_waits() {
    let mut team = Team::of(&[("alice", "coder"), ("bob", "tester")]);
    team.does(ask_plan("bobs", "bob"));
    team.does(ask_plan("first", "alice"));
    assert_eq!(team.does(ask_plan("second", "alice")), ["request_answered", "request_asked"]);
    let states = ["bobs", "first", "second"].map(|word| team.state(word));
    assert_eq!(states, [RequestState::Pending, RequestState::Expired, RequestState::Pending]);
    assert!(team.refuses(answer_plan("first", LEAD, true)).contains("has expired"));
    assert!(team.refuses(ask_plan("bobs", "alice")).contains("internal error"), "one id, one request");
    assert!(team.refuses(ask_plan("third", LEAD)).contains("needs no approval"));
}

#[test]
fn plans_of_a_member_that_stops_expire_with_it() {
    let mut team = Team::of(&[("alice", "coder"), ("bob", "tester")]);
    team.does(ask_plan("p", "alice"));
    team.does(ask_plan("q", "bob"));
    team.does(ask_stop("r", "alice", 9_999));
    let expected = ["request_answered", "request_answered", "member_stopped"];
    assert_eq!(team.does(stop("alice")), expected);
    let states = ["p", "q", "r"].map(|word| team.state(word));
    assert_eq!(states, [RequestState::Expired, RequestState::Pending, RequestState::Approved]);
    // The next member with the name has nothing to do with the old plan.
    team.does(spawn(&team.roster, "alice", "coder"));
    assert!(team.refuses(answer_plan("p", LEAD, true)).contains("has expired"));
    assert!(team.refuses(ask_plan("x", "nobody")).starts_with("there is no 'nobody'"));
}
