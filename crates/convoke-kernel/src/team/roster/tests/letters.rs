//! Letters on their way: which members can be written to, how many may wait, and how they are counted.

use super::*;

#[track_caller]
fn check_unknown(team: &mut Team, said: &str, expected: &str) {
    let refused = team.refuses(post(LEAD, said, LetterKind::Message));
    assert_eq!(
        refused,
        format!("there is no '{said}'{expected} The team: lead, alice (coder), bob (tester)")
    );
    assert!(matches!(team.roster.recipient(said), Err(RosterRefusal::Unknown(text)) if text == refused));
}

#[test]
fn w5_a_letter_to_nobody_is_refused_with_who_there_is_and_who_was_meant() {
    let mut team = Team::of(&[("alice", "coder"), ("bob", "tester"), ("carol", "tester")]);
    team.does(stop("carol"));
    check_unknown(&mut team, "alcie", "; did you mean alice?");
    check_unknown(&mut team, "Bob", "; did you mean bob?");
    check_unknown(&mut team, "leader", "; did you mean lead?");
    check_unknown(&mut team, "tester", "; bob is the tester.");
    check_unknown(&mut team, "Coder", "; alice is the coder.");
    check_unknown(&mut team, "zebra", ".");
    check_unknown(&mut team, "xy", ".");
    check_unknown(&mut team, "", ".");
    check_unknown(&mut team, "everyone", "; use broadcast to write to all members.");
    check_unknown(&mut team, "person", "; a person reads what the lead answers: write to lead.");
    check_unknown(&mut team, "convoke", "; the program itself reads no letters.");
    assert_eq!(team.roster.members().map(|m| m.waiting).sum::<u32>(), 0);
}

#[test]
fn w5_a_role_that_several_have_names_them_all() {
    let team = Team::of(&[("alice", "coder"), ("bob", "coder"), ("carol", "Coder")]);
    let refused = team.roster.recipient("coder").unwrap_err().to_string();
    assert!(refused.contains("'coder'; alice, bob and carol have this role. The team"), "{refused}");
}

#[test]
fn w6_a_name_that_is_no_name_is_repeated_without_what_could_do_harm() {
    let team = Team::of(&[]);
    let refused =
        team.roster.recipient(&format!("../\n\u{1b}[2J{}", "x".repeat(10_000))).unwrap_err().to_string();
    assert!(refused.starts_with("there is no '../[2Jxxx"), "{refused}");
    assert!(refused.len() < 200 && !refused.contains(char::is_control), "{refused}");
}

#[test]
fn b16_a_broadcast_is_a_letter_to_each_and_nobody_writes_to_itself() {
    let mut team = Team::of(&[("alice", "coder"), ("bob", "tester")]);
    for to in [LEAD, "bob"] {
        assert_eq!(team.does(post("alice", to, LetterKind::Broadcast)), ["letter_posted"]);
        assert_eq!(team.member(to).waiting, 1);
    }
    for kind in [LetterKind::Broadcast, LetterKind::Message] {
        assert!(team.refuses(post("alice", "alice", kind)).contains("cannot write to itself"));
    }
    assert_eq!(team.member("alice").waiting, 0);
}

#[test]
fn nobody_writes_to_a_member_that_has_stopped() {
    let mut team = Team::of(&[("alice", "coder")]);
    team.does(stop("alice"));
    for kind in [LetterKind::Message, LetterKind::PlanAnswer, LetterKind::Notice] {
        let refused = team.refuses(post(LEAD, "alice", kind));
        let expected =
            "alice has stopped (asked to) and reads nothing any more; spawn it again if it is needed";
        assert_eq!(refused, expected);
    }
}

#[test]
fn w10_a_full_queue_is_told_to_the_sender_and_holds_up_no_result_request_or_answer() {
    let mut team = Team::of(&[("alice", "coder")]);
    for _ in 0..QUEUE {
        team.does(post("alice", LEAD, LetterKind::Message));
    }
    let full = "lead has 100 unread letters, which is as many as may wait: try again when it has read some";
    assert_eq!(team.refuses(post("alice", LEAD, LetterKind::Message)), full);
    assert_eq!(team.refuses(post("alice", LEAD, LetterKind::Broadcast)), full);
    let never_refused = [
        LetterKind::Result,
        LetterKind::Failed,
        LetterKind::ShutdownRequest,
        LetterKind::ShutdownAnswer,
        LetterKind::PlanRequest,
        LetterKind::PlanAnswer,
        LetterKind::Notice,
    ];
    for kind in never_refused {
        team.does(post("alice", LEAD, kind));
    }
    assert_eq!(team.member(LEAD).waiting, QUEUE + 7);

    let letters: Vec<_> = (0..8).map(|number| (id(&number.to_string()), false)).collect();
    team.does(RosterEntry::Take { name: LEAD.to_owned(), letters });
    team.does(post("alice", LEAD, LetterKind::Message));
    assert_eq!(team.member(LEAD).waiting, QUEUE);
}

#[test]
fn b4_w1_a_letter_waits_until_it_is_taken_and_again_when_it_is_put_back() {
    let mut team = Team::of(&[("alice", "coder"), ("bob", "tester")]);
    let urgent = |from: &str, urgent| {
        let from = from.to_owned();
        let to = "alice".to_owned();
        RosterEntry::Post(LetterHeader { id: id(&from), from, to, kind: LetterKind::Message, urgent })
    };
    let take =
        |letters: &[(&str, bool)]| RosterEntry::Take { name: "alice".to_owned(), letters: named(letters) };
    let put =
        |letters: &[(&str, bool)]| RosterEntry::PutBack { name: "alice".to_owned(), letters: named(letters) };
    let check = |team: &Team, expected: (u32, u32)| {
        assert_eq!((team.member("alice").waiting, team.member("alice").urgent), expected);
    };
    team.does(urgent(LEAD, true));
    team.does(urgent("bob", false));
    check(&team, (2, 1));
    assert_eq!(team.does(take(&[(LEAD, true)])), ["letters_taken"]);
    check(&team, (1, 0));
    assert_eq!(team.does(put(&[(LEAD, true)])), ["letters_put_back"]);
    check(&team, (2, 1));
    team.does(take(&[(LEAD, true), ("bob", false)]));
    check(&team, (0, 0));
    team.does(take(&[(LEAD, true)]));
    check(&team, (0, 0));
    assert_eq!(team.does(take(&[])), [""; 0]);
    assert_eq!(team.does(put(&[])), [""; 0]);
    let nobody = RosterEntry::Take { name: "nobody".to_owned(), letters: Vec::new() };
    assert!(team.refuses(nobody).starts_with("there is no 'nobody'"));
}

fn named(letters: &[(&str, bool)]) -> Vec<(MessageId, bool)> {
    letters.iter().map(|(word, urgent)| (id(word), *urgent)).collect()
}
