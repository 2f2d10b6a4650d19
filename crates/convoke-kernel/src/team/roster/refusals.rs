//! Refusals about a name that no member has and about a request that cannot be answered: text that tells the
//! author how to do better next time. It decides nothing.

use super::decide::has_stopped;
use super::{Member, RequestKind, RequestState, Roster};
use crate::ids::MessageId;
use crate::team::{CONVOKE, LEAD, PERSON};

/// Members that are named before the rest is counted.
const NAMED: usize = 20;
/// Characters of an unknown name that are repeated, and the most changes by which a name is near to it.
const SHOWN: usize = 64;
const CHANGES: usize = 2;

/// No member has this name: the members there are, and which one was probably meant.
pub(super) fn unknown(roster: &Roster, said: &str) -> String {
    let shown: String = said.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    let hint = meant(roster, shown.trim()).map_or(".".to_owned(), |hint| format!("; {hint}"));
    format!("there is no '{shown}'{hint} The team: {}", list(roster))
}

/// There is no such open request: the ones there are, or what became of it.
pub(super) fn no_request(roster: &Roster, id: &MessageId, kind: RequestKind) -> String {
    let what = match kind {
        RequestKind::Shutdown => "request to stop",
        RequestKind::Plan => "plan",
    };
    if let Some(request) = roster.request(id).filter(|request| request.kind == kind) {
        let by = request.by.as_deref().unwrap_or(CONVOKE);
        return match request.state {
            RequestState::Pending => format!("the {what} {id} waits for its answer"),
            RequestState::Approved => format!("the {what} {id} was approved by {by} and is answered once"),
            RequestState::Rejected => format!("the {what} {id} was rejected by {by} and is answered once"),
            RequestState::Expired => {
                format!("the {what} {id} has expired: no member waits for its answer any more")
            }
        };
    }
    let open: Vec<String> = roster
        .open_requests()
        .into_iter()
        .filter(|(_, request)| request.kind == kind)
        .map(|(id, request)| match kind {
            RequestKind::Shutdown => format!("{id} (for {})", request.to),
            RequestKind::Plan => format!("{id} (of {})", request.from),
        })
        .collect();
    match open.is_empty() {
        true => format!("there is no {what} {id}, and none waits for an answer"),
        false => format!("there is no {what} {id}; what waits for an answer: {}", open.join(", ")),
    }
}

fn reachable(roster: &Roster) -> impl Iterator<Item = &Member> {
    roster.members().filter(|member| !has_stopped(member))
}

fn list(roster: &Roster) -> String {
    let all: Vec<String> = reachable(roster)
        .map(|member| match member.name == LEAD {
            true => LEAD.to_owned(),
            false => format!("{} ({})", member.name, member.role),
        })
        .collect();
    match all.len() {
        0 => "no member yet".to_owned(),
        count if count <= NAMED => all.join(", "),
        count => format!("{} and {} more", all[..NAMED].join(", "), count - NAMED),
    }
}

/// What the author of this name probably meant, as a sentence.
fn meant(roster: &Roster, said: &str) -> Option<String> {
    let said = said.to_lowercase();
    match said.as_str() {
        PERSON | "user" | "human" => {
            return Some("a person reads what the lead answers: write to lead.".to_owned());
        }
        "all" | "everyone" | "team" => return Some("use broadcast to write to all members.".to_owned()),
        CONVOKE | "system" => return Some("the program itself reads no letters.".to_owned()),
        _ => {}
    }
    let has_role = |member: &&Member| member.name != LEAD && member.role.to_lowercase() == said;
    let of_role: Vec<&str> = reachable(roster).filter(has_role).map(|member| member.name.as_str()).collect();
    match of_role.as_slice() {
        [] => {}
        [only] => return Some(format!("{only} is the {said}.")),
        [some @ .., last] => return Some(format!("{} and {last} have this role.", some.join(", "))),
    }
    let near = reachable(roster).map(|member| (changes(&said, &member.name), member.name.as_str()));
    // A very short name differs from every other by so many changes; that is not near.
    let near = near.filter(|(count, name)| *count <= CHANGES && *count < name.len().min(said.len()));
    near.min_by_key(|(count, _)| *count).map(|(_, name)| format!("did you mean {name}?"))
}

/// How many characters have to be put in, left out or replaced to make one text of the other.
fn changes(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, here) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, there) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(here != *there);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_as_a_reader_would() {
        let check = |one: &str, other: &str, expected: usize| {
            assert_eq!(changes(one, other), expected, "{one} {other}");
            assert_eq!(changes(other, one), expected, "{other} {one}");
        };
        check("", "", 0);
        check("", "bob", 3);
        check("bob", "bob", 0);
        check("bo", "bob", 1);
        check("alcie", "alice", 2);
        check("kitten", "sitting", 3);
        check("bób", "bob", 1);
    }
}
