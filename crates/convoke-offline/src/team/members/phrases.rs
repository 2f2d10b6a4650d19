//! What a teammate says of letters, plans and waiting: said here and known again here, so that the lead can
//! tell an acknowledgement from a result, in one short line. Nothing else of a teammate's words is ever taken
//! apart.

use super::brief;

/// What a teammate says that has nothing to do.
pub(super) const RESTS: &str = "I wait for letters and for work on the board.";

/// What it says beside a plan; its letter with the plan says the same.
pub(super) const HANDS_IN: &str = "Handing in my plan.";

/// How it begins when it has agreed to stop; its answer to the request says the same.
pub(super) const STOPS: &str = "I have agreed to stop.";

/// How an answer begins; such a letter is never answered.
pub(super) const ANSWERS: &str = "Re:";

/// So much of a text makes it known again.
const HEAD: usize = 30;

/// What only says that a letter was written, answered or read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ack<'a> {
    Sent { to: &'a str, text: &'a str },
    Answered { from: &'a str, text: &'a str },
    Read { from: &'a str, text: &'a str },
}

pub(super) fn sent(to: &str, text: &str) -> String {
    format!("I sent {to} the message “{}”.", brief(text, 200))
}

pub(super) fn answered(from: &str, text: &str) -> String {
    format!("I have answered {from}'s question (“{}”).", brief(text, 120))
}

pub(super) fn read(from: &str, text: &str) -> String {
    format!("I have read the letter from {from}: “{}”.", brief(text, 200))
}

/// An answer to a letter: a word of what is answered, then the answer.
pub(super) fn reply(text: &str, said: &str) -> String {
    format!("{ANSWERS} {} {said}", brief(text, 40))
}

impl<'a> Ack<'a> {
    /// The acknowledgement that this is.
    pub(super) fn of(said: &'a str) -> Option<Self> {
        let part = |begin: &str, between: &str, end: &str| {
            let (who, text) = said.strip_prefix(begin)?.split_once(between)?;
            Some((who, text.strip_suffix(end)?)).filter(|(who, _)| !who.contains(' '))
        };
        let sent = part("I sent ", " the message “", "”.").map(|(to, text)| Self::Sent { to, text });
        let answered = || part("I have answered ", "'s question (“", "”).");
        let read = || part("I have read the letter from ", ": “", "”.");
        sent.or_else(|| answered().map(|(from, text)| Self::Answered { from, text }))
            .or_else(|| read().map(|(from, text)| Self::Read { from, text }))
    }

    /// The member that will tell that it has read something because of this, and by which words.
    pub(super) fn awaits(&self) -> Option<(&'a str, String)> {
        let head = |text: &str| text.chars().take(HEAD).collect::<String>();
        match self {
            Self::Sent { to, text } => Some((to, format!("“{}", head(text)))),
            Self::Answered { from, text } => Some((from, format!("“{ANSWERS} {}", head(text)))),
            Self::Read { .. } => None,
        }
    }

    /// The same as the lead tells it of the member: short while things go on, with its text at the end.
    pub(super) fn told(&self, whole: bool) -> String {
        match self {
            Self::Sent { to, text } if whole => format!("wrote to {to}: “{text}”"),
            Self::Sent { to, .. } => format!("has written to {to}."),
            Self::Answered { from, .. } => format!("has answered {from}."),
            Self::Read { from, text } if whole => format!("has read the letter from {from}: “{text}”"),
            Self::Read { from, .. } => format!("has read the letter from {from}."),
        }
    }
}

/// Whether these words begin something that a teammate says of its own.
pub(super) fn begins(line: &str) -> bool {
    let id = line
        .strip_prefix("t_")
        .and_then(|rest| rest.split_once(" ("))
        .is_some_and(|(id, _)| !id.contains(' '));
    id || line == RESTS || line == HANDS_IN || line.starts_with(STOPS) || Ack::of(line).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_teammate_says_of_letters_is_known_again() {
        let check = |said: String, expected: Ack<'_>| assert_eq!(Ack::of(&said), Some(expected), "{said}");
        check(sent("bob", "Are you there?"), Ack::Sent { to: "bob", text: "Are you there?" });
        check(answered("alice", "Are you there?"), Ack::Answered { from: "alice", text: "Are you there?" });
        check(read("lead", "Phase 1 is done."), Ack::Read { from: "lead", text: "Phase 1 is done." });
        for said in [
            "There are 3 files here.",
            "I have read what lead wrote (“x”). No rule.",
            "I sent bob and al the message “x”.",
        ] {
            assert_eq!(Ack::of(said), None, "{said}");
        }
    }

    #[test]
    fn a_message_awaits_a_word_of_its_reader_and_an_answer_one_of_the_asker() {
        let long = "Hello bob, this is alice. Are you ready to work on all of this today?";
        let asked = sent("bob", long);
        let replied = answered("alice", long);
        let (bob, sign) = Ack::of(&asked).unwrap().awaits().unwrap();
        assert!(bob == "bob" && replied.contains(&sign) && read("alice", long).contains(&sign), "{sign}");
        let (alice, sign) = Ack::of(&replied).unwrap().awaits().unwrap();
        let heard = read("bob", &reply(long, "I am here."));
        assert!(alice == "alice" && heard.contains(&sign), "{sign}: {heard}");
        assert_eq!(Ack::of(&heard).unwrap().awaits(), None);
    }
}
