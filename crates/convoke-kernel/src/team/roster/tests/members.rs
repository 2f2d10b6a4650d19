//! The members of a team: which ones sleep, which ones failed, and what each is doing.

use super::super::decide::{ROLE, TEAMMATES};
use super::*;
use crate::agent::Status;

#[test]
fn b1_a_team_is_one_lead_and_teammates_with_a_name_and_a_role() {
    let team = Team::of(&[("zoe", "tester"), ("alice", "coder")]);
    let all: Vec<(&str, &str, &str)> =
        team.roster.members().map(|m| (m.name.as_str(), m.role.as_str(), m.by.as_str())).collect();
    assert_eq!(all, [("lead", "lead", "convoke"), ("alice", "coder", "lead"), ("zoe", "tester", "lead")]);
    let alice = team.member("alice");
    assert_eq!((&alice.standing, alice.waiting, alice.asleep), (&Standing::Live, 0, None));
    assert_eq!(team.roster.by_agent(&alice.agent), Some(alice));
    assert_eq!(team.roster.count(), 3);
}

#[test]
fn opening_a_team_twice_keeps_the_first_lead() {
    let mut team = Team::of(&[]);
    assert_eq!(team.does(RosterEntry::Open { lead: AgentId::derived(&["another"]) }), [""; 0]);
    assert_eq!(team.member(LEAD).agent, AgentId::derived(&["lead"]));
}

#[test]
fn nothing_is_done_to_a_team_that_was_never_opened() {
    let mut team = Team { roster: Roster::default(), log: Vec::new(), at: 0 };
    let entries = [
        spawn(&team.roster, "alice", "coder"),
        post("lead", "alice", LetterKind::Message),
        RosterEntry::Take { name: "alice".to_owned(), letters: Vec::new() },
        ask_stop("r", "alice", 9),
        stop("alice"),
        wake("alice"),
        tell(&[]),
    ];
    for entry in entries {
        assert!(team.refuses(entry).contains("internal error"));
    }
    let refusal = team.roster.recipient("alice").unwrap_err().to_string();
    assert_eq!(refusal, "there is no 'alice'. The team: no member yet");
}

#[test]
fn b6_a_spawned_teammate_is_a_live_member_at_once() {
    let mut team = Team::of(&[]);
    assert_eq!(team.does(spawn(&team.roster, "alice", "  coder ")), ["member_spawned"]);
    let alice = team.member("alice");
    assert_eq!((alice.role.as_str(), &alice.standing, alice.at), ("coder", &Standing::Live, team.at));
    assert_eq!(team.roster.generation("alice"), 1);
}

#[test]
fn w17_a_name_is_given_again_only_when_its_bearer_has_stopped() {
    let mut team = Team::of(&[("alice", "coder")]);
    let taken = "alice is already a member of the team (coder); send it a message instead, or stop it first";
    assert_eq!(team.refuses(spawn(&team.roster, "alice", "tester")), taken);
    team.does(fail("alice"));
    assert_eq!(team.refuses(spawn(&team.roster, "alice", "tester")), taken);
    team.does(ask_stop("r", "alice", 9_999));
    assert_eq!(team.refuses(spawn(&team.roster, "alice", "tester")), taken);

    let first = team.member("alice").agent.clone();
    team.does(post("lead", "alice", LetterKind::Message));
    team.does(stop("alice"));
    team.does(spawn(&team.roster, "alice", "tester"));
    let again = team.member("alice");
    assert_ne!(again.agent, first, "two bearers of one name must not share an agent");
    assert_eq!((again.role.as_str(), again.waiting, team.roster.generation("alice")), ("tester", 0, 2));
    assert_eq!(team.roster.by_agent(&first), None);
}

#[test]
fn a_role_is_one_line_that_says_something() {
    let mut team = Team::of(&[]);
    let long = "é".repeat(ROLE + 1);
    for bad in ["", "  ", "coder\nof all", "co\tder", long.as_str()] {
        assert!(team.refuses(spawn(&team.roster, "alice", bad)).contains("a role is one line"), "{bad:?}");
    }
    team.does(spawn(&team.roster, "alice", &long[..2 * ROLE]));
}

#[test]
fn a_team_has_a_hundred_teammates_at_most_and_stopped_ones_do_not_count() {
    let mut team = Team::of(&[]);
    for number in 0..TEAMMATES {
        team.does(spawn(&team.roster, &format!("worker-{number}"), "worker"));
    }
    assert!(team.refuses(spawn(&team.roster, "one-more", "worker")).contains("as many as it may have"));
    team.does(stop("worker-7"));
    team.does(spawn(&team.roster, "one-more", "worker"));
    let far = team.roster.recipient("nobody-of-them").unwrap_err().to_string();
    assert!(far.ends_with("and 81 more"), "{far}");
}

#[test]
fn b2_a_failed_teammate_is_taken_up_again_and_a_stopped_one_is_not() {
    let mut team = Team::of(&[("alice", "coder")]);
    assert_eq!(team.does(recover("alice")), [""; 0]);
    assert_eq!(team.does(fail("alice")), ["member_failed"]);
    assert_eq!(
        team.member("alice").standing,
        Standing::Failed { why: "the model refused".to_owned(), at: team.at }
    );
    assert!(team.roster.recipient("alice").is_ok());
    assert_eq!(team.does(recover("alice")), ["member_recovered"]);
    assert_eq!(team.member("alice").standing, Standing::Live);

    assert_eq!(team.does(stop("alice")), ["member_stopped"]);
    let gone = Standing::Stopped { why: "asked to".to_owned(), at: team.at };
    for entry in [stop("alice"), fail("alice"), recover("alice"), sleep("alice"), wake("alice")] {
        assert_eq!(team.does(entry), [""; 0]);
        assert_eq!(team.member("alice").standing, gone);
    }
}

#[test]
fn the_lead_cannot_be_stopped() {
    let mut team = Team::of(&[]);
    assert!(team.refuses(stop(LEAD)).contains("with its session"));
    assert!(team.refuses(ask_stop("r", LEAD, 9)).contains("with its session"));
}

#[test]
fn w25_a_member_that_sleeps_stays_a_member_and_the_lead_is_told_once() {
    let mut team = Team::of(&[("alice", "coder"), ("bob", "tester")]);
    let untold = |team: &Team| team.roster.untold_rests().iter().map(|m| m.name.clone()).collect::<Vec<_>>();
    assert_eq!(team.does(sleep("alice")), ["member_asleep"]);
    let since = team.at;
    assert_eq!(team.does(sleep("alice")), [""; 0]);
    team.does(sleep("bob"));
    team.does(sleep(LEAD));
    assert_eq!(
        (team.member("alice").asleep, team.member("alice").standing.clone()),
        (Some(since), Standing::Live)
    );
    assert_eq!(untold(&team), ["alice", "bob"]);

    // Bob wakes between the look and the entry: the lead is told when bob sleeps again.
    assert_eq!(team.does(wake("bob")), ["member_awake"]);
    assert_eq!(team.does(wake("bob")), [""; 0]);
    assert_eq!(team.does(tell(&["alice", "bob", "nobody"])), ["rests_told"]);
    assert_eq!((team.member("alice").told, team.member("bob").told), (true, false));
    assert_eq!(untold(&team), [""; 0]);
    assert_eq!(team.does(tell(&["alice"])), [""; 0]);

    team.does(sleep("bob"));
    team.does(wake("alice"));
    team.does(sleep("alice"));
    assert_eq!(untold(&team), ["alice", "bob"]);
    team.does(fail("alice"));
    team.does(stop("bob"));
    assert_eq!(untold(&team), [""; 0], "of a failure and a stop the lead is told otherwise");
}

#[test]
fn c15_a_letter_for_a_sleeping_member_waits_and_waking_it_is_an_entry_of_its_own() {
    let mut team = Team::of(&[("alice", "coder")]);
    team.does(sleep("alice"));
    team.does(post("lead", "alice", LetterKind::Message));
    assert_eq!((team.member("alice").waiting, team.member("alice").asleep.is_some()), (1, true));
    team.does(wake("alice"));
    assert_eq!((team.member("alice").waiting, team.member("alice").asleep), (1, None));
}

#[test]
fn w18_what_a_member_is_doing_follows_from_who_drives_it() {
    let view = |status| MemberView { status, driven: false, asks: false, plan_pending: false };
    let driven = |status| MemberView { driven: true, ..view(status) };
    let mut team = Team::of(&[("alice", "coder")]);
    let check = |team: &Team, view: MemberView, expected: MemberState, why: Option<&str>| {
        let (state, said) = state_of(team.member("alice"), view);
        assert_eq!((state, said.as_deref()), (expected, why), "{view:?}");
    };
    let open = Some(Status::Open);
    check(&team, view(None), MemberState::Starting, None);
    check(&team, driven(None), MemberState::Starting, None);
    check(&team, driven(open), MemberState::Working, None);
    check(&team, MemberView { plan_pending: true, ..driven(open) }, MemberState::Working, None);
    let person = Some("waits for a person's answer");
    check(&team, MemberView { asks: true, ..driven(open) }, MemberState::Waiting, person);
    let no_process = Some("no process drives it: resume the session");
    check(&team, view(open), MemberState::Waiting, no_process);
    check(&team, MemberView { asks: true, ..view(open) }, MemberState::Waiting, no_process);
    for ended in [Status::Done, Status::Partial, Status::Failed] {
        check(&team, view(Some(ended)), MemberState::Idle, None);
        let plan = Some("its plan waits for approval");
        check(&team, MemberView { plan_pending: true, ..driven(Some(ended)) }, MemberState::Waiting, plan);
    }
    team.does(sleep("alice"));
    check(&team, driven(Some(Status::Done)), MemberState::Idle, None);
    team.does(fail("alice"));
    check(&team, driven(open), MemberState::Failed, Some("the model refused"));
    team.does(ask_stop("r", "alice", 9_999));
    check(&team, driven(open), MemberState::Stopping, None);
    check(&team, view(None), MemberState::Stopping, None);
    team.does(stop("alice"));
    check(&team, view(open), MemberState::Stopped, Some("asked to"));
}

#[test]
fn every_state_of_a_member_has_one_word() {
    use MemberState::*;
    let words = [Starting, Working, Waiting, Idle, Stopping, Stopped, Failed].map(|state| {
        assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        state.word()
    });
    assert_eq!(words, ["starting", "working", "waiting", "idle", "stopping", "stopped", "failed"]);
}
