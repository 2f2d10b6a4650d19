//! The table of ends: every combination of facts against the order of precedence, written down a second time
//! as plain conditions.

use super::*;

const LEADS: [LeadEnd; 8] = [
    LeadEnd::Answered,
    LeadEnd::Failed { kind: FailureKind::Api, says: false },
    LeadEnd::Failed { kind: FailureKind::TurnLimit, says: true },
    LeadEnd::Failed { kind: FailureKind::Budget, says: true },
    LeadEnd::Parked,
    LeadEnd::Open,
    LeadEnd::Journal,
    LeadEnd::Broke,
];

const OWN: [Option<OwnProgram>; 7] = [
    None,
    Some(OwnProgram::Open),
    Some(OwnProgram::Complete),
    Some(OwnProgram::Partial),
    Some(OwnProgram::Failed),
    Some(OwnProgram::Stopped),
    Some(OwnProgram::Declined),
];

const GATES: [Gate; 4] = [Gate::Unset, Gate::Passed, Gate::Found, Gate::Blind];

const STOPS: [Option<StoppedBy>; 3] = [None, Some(StoppedBy::Interrupt), Some(StoppedBy::Pause)];

/// Calls back with every combination of facts, a number being 0 or 2.
fn all(mut each: impl FnMut(EndFacts)) -> u32 {
    let mut count = 0;
    for (lead, own) in LEADS.iter().flat_map(|lead| OWN.iter().map(move |own| (*lead, *own))) {
        for stopped in STOPS {
            for bits in 0..1024u32 {
                let on = |bit: u32| bits & (1 << bit) != 0;
                let number = |bit: u32| (bits >> bit & 1) * 2;
                let facts = EndFacts {
                    lead,
                    stopped,
                    own,
                    asked: on(0),
                    declined: number(1),
                    refused: number(2),
                    short: number(3),
                    lost: number(4),
                    programs_failed: number(5),
                    left: number(6),
                    degraded: number(7),
                    gate: GATES[(bits >> 8) as usize],
                };
                each(facts);
                count += 1;
            }
        }
    }
    count
}

#[test]
fn an_end_is_done_only_if_nothing_speaks_against_it() {
    let tried = all(|facts| {
        let end = ending(&facts);
        let waits = facts.lead == LeadEnd::Parked && facts.asked;
        let own = matches!(facts.own, Some(OwnProgram::Complete)) && !waits;
        let nothing_lost =
            [facts.refused, facts.short, facts.lost, facts.degraded, facts.programs_failed, facts.left]
                .iter()
                .all(|number| *number == 0);
        let by_lead = facts.lead == LeadEnd::Answered
            && matches!(facts.own, None | Some(OwnProgram::Open))
            && nothing_lost;
        let broke = matches!(facts.lead, LeadEnd::Journal | LeadEnd::Broke);
        let unfinished = facts.left > 0 || matches!(facts.lead, LeadEnd::Open | LeadEnd::Parked);
        let cut = facts.stopped.is_some() && unfinished;
        let expected = (own && !broke && !cut) || by_lead;
        assert_eq!(end.status == EndStatus::Done, expected, "{facts:?}: {end:?}");
        assert_eq!(
            end.code == 0,
            expected && matches!(facts.gate, Gate::Unset | Gate::Passed),
            "{facts:?}: {end:?}"
        );
    });
    assert_eq!(tried, 8 * 7 * 3 * 1024);
}

#[test]
fn the_status_and_the_code_fit_each_other() {
    all(|facts| {
        let end = ending(&facts);
        let fits = match end.status {
            EndStatus::Done => matches!(end.code, 0 | 4 | 6),
            EndStatus::Partial => matches!(end.code, 3 | 4 | 6),
            EndStatus::Failed => matches!(end.code, 1 | 4),
            EndStatus::Interrupted => matches!(end.code, 5 | 129 | 130 | 143),
            EndStatus::Waiting => end.code == 5,
        };
        assert!(fits, "{facts:?}: {end:?}");
        assert_eq!(end.code == 6, end.reason == EndReason::Finding, "{facts:?}: {end:?}");
        assert!(end.code != 6 || facts.gate == Gate::Found, "{facts:?}: {end:?}");
        let undecided = end.status == EndStatus::Done && end.code == 4;
        assert_eq!(undecided, end.reason == EndReason::Gate, "{facts:?}: {end:?}");
        assert!(!undecided || facts.gate == Gate::Blind, "{facts:?}: {end:?}");
    });
}

/// A gate that could not be looked at whole is not green: lost work is 3, and a finding that is there is 6
/// all the same.
#[test]
fn lost_work_never_lets_a_gate_pass() {
    all(|facts| {
        let end = ending(&facts);
        if facts.lost + facts.short + facts.refused > 0 && facts.own.is_none() {
            assert_ne!(end.code, 0, "{facts:?}");
        }
    });
    let facts = EndFacts { lost: 1, ..EndFacts::default() };
    assert_eq!((ending(&facts).code, ending(&facts).reason.word()), (3, "lost"));
    assert_eq!(ending(&EndFacts { gate: Gate::Found, ..facts }).code, 6);
    assert_eq!(
        ending(&EndFacts { gate: Gate::Found, short: 1, ..facts }).code,
        4,
        "what it could not do comes first"
    );
    let blind = EndFacts { gate: Gate::Blind, ..EndFacts::default() };
    assert_eq!((ending(&blind).code, ending(&blind).reason.word()), (4, "gate"));
    assert_eq!(
        ending(&EndFacts { lost: 1, ..blind }).code,
        3,
        "what was lost can be tried again, and is named first"
    );
    let degraded = EndFacts { degraded: 2, ..EndFacts::default() };
    assert_eq!((ending(&degraded).code, ending(&degraded).reason.word()), (3, "degraded"));
}

#[test]
fn every_line_of_the_table_has_its_place() {
    let facts = EndFacts::default;
    let check = |facts: EndFacts, status: EndStatus, code: u8, reason: &str| {
        let end = ending(&facts);
        assert_eq!((end.status, end.code, end.reason.word()), (status, code, reason), "{facts:?}");
    };
    let everything = EndFacts {
        lead: LeadEnd::Journal,
        stopped: Some(StoppedBy::Terminate),
        own: None,
        asked: true,
        declined: 1,
        refused: 1,
        short: 1,
        lost: 1,
        degraded: 1,
        programs_failed: 1,
        left: 1,
        gate: Gate::Unset,
    };
    check(everything, EndStatus::Failed, 1, "journal");
    check(EndFacts { lead: LeadEnd::Broke, ..everything }, EndStatus::Failed, 1, "internal");
    let parked = EndFacts { lead: LeadEnd::Parked, ..everything };
    check(parked, EndStatus::Interrupted, 143, "terminated");
    let parked = EndFacts { stopped: None, ..parked };
    check(parked, EndStatus::Waiting, 5, "approval");
    check(EndFacts { asked: false, ..parked }, EndStatus::Partial, 4, "budget");
    check(EndFacts { asked: false, declined: 0, ..parked }, EndStatus::Waiting, 5, "approval");
    check(EndFacts { lead: LeadEnd::Open, ..parked }, EndStatus::Failed, 1, "internal");
    let failed = |kind, says| EndFacts { lead: LeadEnd::Failed { kind, says }, ..parked };
    check(failed(FailureKind::Api, false), EndStatus::Failed, 1, "api");
    check(failed(FailureKind::ContextFull, true), EndStatus::Partial, 3, "context_full");
    check(failed(FailureKind::Budget, false), EndStatus::Failed, 4, "budget");
    check(failed(FailureKind::Budget, true), EndStatus::Partial, 4, "budget");
    let answered = EndFacts { lead: LeadEnd::Answered, ..parked };
    check(answered, EndStatus::Partial, 4, "budget");
    check(EndFacts { refused: 0, ..answered }, EndStatus::Partial, 4, "budget");
    let answered = EndFacts { refused: 0, short: 0, ..answered };
    check(answered, EndStatus::Partial, 3, "lost");
    let answered = EndFacts { lost: 0, ..answered };
    check(answered, EndStatus::Partial, 3, "degraded");
    let answered = EndFacts { degraded: 0, ..answered };
    check(answered, EndStatus::Partial, 3, "program_failed");
    let answered = EndFacts { programs_failed: 0, ..answered };
    check(answered, EndStatus::Partial, 3, "team_left");
    check(EndFacts { stopped: Some(StoppedBy::HangUp), ..answered }, EndStatus::Interrupted, 129, "hung_up");
    check(EndFacts { left: 0, stopped: Some(StoppedBy::HangUp), ..answered }, EndStatus::Done, 0, "done");
    check(facts(), EndStatus::Done, 0, "done");
    let own = |own: OwnProgram, short: u32| EndFacts {
        own: Some(own),
        short,
        lead: LeadEnd::Failed { kind: FailureKind::InvalidOutput, says: false },
        ..facts()
    };
    check(own(OwnProgram::Complete, 0), EndStatus::Done, 0, "done");
    check(own(OwnProgram::Partial, 0), EndStatus::Partial, 3, "program_partial");
    check(own(OwnProgram::Partial, 1), EndStatus::Partial, 4, "budget");
    check(own(OwnProgram::Failed, 0), EndStatus::Failed, 1, "program_failed");
    check(own(OwnProgram::Failed, 1), EndStatus::Failed, 4, "budget");
    check(own(OwnProgram::Stopped, 0), EndStatus::Interrupted, 5, "stopped");
    check(own(OwnProgram::Declined, 0), EndStatus::Partial, 4, "budget");
    check(own(OwnProgram::Open, 0), EndStatus::Failed, 1, "invalid_output");
}

#[test]
fn the_words_of_failures_are_those_of_events() {
    for kind in FailureKind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.word(), "{kind:?}");
    }
}
