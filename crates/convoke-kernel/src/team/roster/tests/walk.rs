//! Many entries in random order: the state is always what its events say, and what has to hold holds.

use std::collections::BTreeMap;

use super::*;

/// A small source of numbers that gives the same ones for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const NAMES: [&str; 5] = ["alice", "bob", "carol", "dave", LEAD];

fn entry(team: &Team, numbers: &mut Numbers, step: usize) -> RosterEntry {
    let name = numbers.one(&NAMES);
    let fresh = format!("request {step}");
    // Mostly a request that is open, so that answers are not refused all the time.
    let open: Vec<MessageId> = team.roster.open_requests().iter().map(|(id, _)| (*id).clone()).collect();
    let request = match open.is_empty() || numbers.below(5) == 0 {
        true => id(&format!("request {}", numbers.below(step + 1))),
        false => open[numbers.below(open.len())].clone(),
    };
    let approve = numbers.below(2) == 0;
    let letters =
        (0..numbers.below(4)).map(|number| (id(&number.to_string()), numbers.below(3) == 0)).collect();
    let name_of = |name: &str| name.to_owned();
    match numbers.below(16) {
        0..=2 => spawn(&team.roster, numbers.one(&NAMES[..4]), numbers.one(&["coder", "tester"])),
        3 => RosterEntry::Take { name: name_of(name), letters },
        4 => RosterEntry::PutBack { name: name_of(name), letters },
        5 => ask_plan(&fresh, name),
        6 => RosterEntry::AnswerPlan { request, by: name_of(numbers.one(&[LEAD, "person", "bob"])), approve },
        7 => ask_stop(&fresh, name, team.at + numbers.below(20) as u64),
        8 | 9 => RosterEntry::AnswerShutdown { request, by: name_of(name), approve },
        10 => stop(name),
        11 => fail(name),
        12 => recover(name),
        13 => sleep(name),
        14 => match approve {
            true => wake(name),
            false => tell(&NAMES),
        },
        _ => {
            let kind = if approve { LetterKind::Message } else { LetterKind::Result };
            let from = name_of(numbers.one(&NAMES));
            let to = name_of(name);
            RosterEntry::Post(LetterHeader { id: id(&fresh), from, to, kind, urgent: numbers.below(4) == 0 })
        }
    }
}

fn check_what_has_to_hold(team: &Team) {
    for member in team.roster.members() {
        assert!(
            member.name != LEAD
                || !matches!(member.standing, Standing::Stopped { .. } | Standing::Stopping { .. })
        );
        if let Standing::Stopping { request, .. } = &member.standing {
            let asked = team.roster.request(request).expect("the request it stops for");
            assert!(
                matches!(asked.state, RequestState::Pending | RequestState::Approved),
                "{member:?} {asked:?}"
            );
        }
        assert!(!member.told || member.asleep.is_some(), "{member:?}");
    }
    let mut plans = BTreeMap::new();
    for (id, request) in team.roster.open_requests() {
        let about = if request.kind == RequestKind::Plan { &request.from } else { &request.to };
        let standing = &team.member(about).standing;
        assert!(!matches!(standing, Standing::Stopped { .. }), "{id} waits for one that has stopped");
        if request.kind == RequestKind::Plan {
            assert_eq!(plans.insert(about, id), None, "two plans of {about} wait");
        }
    }
}

#[test]
fn the_state_is_the_fold_of_its_events_however_they_came_about() {
    for seed in 1..=20 {
        let mut numbers = Numbers(seed);
        let mut team = Team::of(&[("alice", "coder"), ("bob", "tester")]);
        let mut made = 0;
        let mut refused = 0;
        for step in 0..500 {
            let entry = entry(&team, &mut numbers, step);
            match team.tries(&entry) {
                Ok(_) => made += 1,
                Err(refusal) => {
                    refused += 1;
                    assert!(!refusal.to_string().is_empty());
                }
            }
            check_what_has_to_hold(&team);
        }
        assert!(made > 100 && refused > 50, "seed {seed}: {made} made, {refused} refused");

        let mut folded = Roster::default();
        for (event, at) in &team.log {
            let read = RosterEvent::decode(&event.encode().unwrap()).unwrap();
            assert_eq!(read, *event);
            folded.apply(&read, *at);
        }
        assert_eq!(folded, team.roster, "seed {seed}");
        assert_eq!(folded.count(), team.log.len() as u64);
        let row = serde_json::to_string(&folded).unwrap();
        assert_eq!(serde_json::from_str::<Roster>(&row).unwrap(), folded, "seed {seed}");
    }
}

#[test]
fn an_event_about_nobody_changes_nothing_but_the_count() {
    let team = Team::of(&[("alice", "coder")]);
    let name = "nobody".to_owned();
    let events: [RosterEvent; 6] = [
        MemberStopped { name: name.clone(), why: String::new() }.into(),
        MemberFailed { name: name.clone(), why: String::new() }.into(),
        MemberAwake { name: name.clone() }.into(),
        LettersTaken { name: name.clone(), letters: vec![(id("x"), true)] }.into(),
        RestsTold { names: vec![name] }.into(),
        RequestAnswered { request: id("x"), state: RequestState::Approved, by: "lead".to_owned() }.into(),
    ];
    for event in events {
        let mut roster = team.roster.clone();
        roster.apply(&event, 5);
        assert_eq!(roster, Roster { count: team.roster.count + 1, ..team.roster.clone() }, "{event:?}");
    }
}

#[test]
fn a_row_of_an_empty_roster_is_read_as_one() {
    assert_eq!(serde_json::from_str::<Roster>("{}").unwrap(), Roster::default());
}
