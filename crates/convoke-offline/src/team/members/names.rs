//! Which teammates are to be spawned, by the words behind "spawn": names, roles, and what each is to do.

use super::request::words;

/// A teammate that is wished for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Spawn {
    pub(super) name: String,
    pub(super) role: String,
    /// What it is to do; none: what it finds on the board or is written.
    pub(super) work: Option<String>,
    /// Whether it has to hand in a plan first.
    pub(super) plan: bool,
}

/// Names for teammates that are given none.
const FREE: [&str; 8] = ["alice", "bob", "charlie", "dora", "emil", "frida", "gustav", "hanna"];

/// Words that stand where a name could and are none.
const NO_NAMES: &str =
    "a an the another one new teammate teammates agent agents member members helper helpers";

/// Words behind which stands what a teammate is to do.
const TRAILERS: [&str; 6] = [" to ", " with ", " who ", " that ", " and ask him to ", " for "];

/// The teammates that this asks for, with names that are not taken.
pub(super) fn spawns(said: &str, taken: &[String]) -> Vec<Spawn> {
    let mut found: Vec<Spawn> = Vec::new();
    for segment in segments(said) {
        let (head, work) = trailer(&segment);
        let work = work
            .map(|work| work.trim_end_matches(['.', ',', ' ']).to_owned())
            .filter(|work| !work.is_empty());
        for mut one in people(&head, taken, &found) {
            if let Some(role) = work.as_deref().and_then(role_in) {
                one.role = role;
            } else {
                one.work = work.clone();
            }
            found.push(one);
        }
    }
    // "alice and bob as coders" gives both the role.
    if let Some(role) = found.last().and_then(|last| last.role.strip_suffix('s')).map(str::to_owned) {
        found
            .iter_mut()
            .filter(|one| one.role.is_empty() || one.role.strip_suffix('s') == Some(&role))
            .for_each(|one| {
                one.role.clone_from(&role);
            });
    }
    for one in &mut found {
        if one.role.is_empty() {
            one.role = "teammate".to_owned();
        }
    }
    found
}

/// The role in "the role of tester" or "role tester".
fn role_in(work: &str) -> Option<String> {
    let words = words(work);
    let at = words.iter().position(|word| word == "role")?;
    let rest: Vec<&str> = words[at + 1..].iter().map(String::as_str).filter(|word| *word != "of").collect();
    (at <= 1 && !rest.is_empty()).then(|| rest.join(" "))
}

/// Cuts at commas and "and" where another teammate follows.
fn segments(said: &str) -> Vec<String> {
    let mut segments: Vec<String> = Vec::new();
    for piece in said.replace(" & ", " and ").replace(", and ", " and ").replace(", ", " and ").split(" and ")
    {
        let piece = piece.trim();
        let before = segments.last().map(|last| trailer(last).1.is_some());
        match (before, segments.last_mut()) {
            // A teammate's work may hold an "and" itself: only a short head with its own work is another one.
            (Some(true), Some(last)) if trailer(piece).1.is_none() || words(&trailer(piece).0).len() > 3 => {
                last.push_str(" and ");
                last.push_str(piece);
            }
            _ if piece.is_empty() => {}
            _ => segments.push(piece.to_owned()),
        }
    }
    segments
}

/// The words that name teammates, and what they are to do.
fn trailer(segment: &str) -> (String, Option<String>) {
    let closed = segment.find(')').map_or(0, |at| at + 1);
    let open = segment.find('(').unwrap_or(usize::MAX);
    let places = TRAILERS.iter().filter_map(|sign| {
        let at = segment
            .find(sign)
            .filter(|at| *at < open)
            .or_else(|| Some(closed + segment[closed..].find(sign)?))?;
        Some((at, sign.len()))
    });
    match places.min() {
        Some((at, length)) => (segment[..at].to_owned(), Some(segment[at + length..].to_owned())),
        None => (segment.to_owned(), None),
    }
}

/// The teammates that one head names: "alice (coder)", "bob as a tester", "a coder teammate", "two
/// teammates", "a tester named eve".
fn people(head: &str, taken: &[String], found: &[Spawn]) -> Vec<Spawn> {
    let (outside, inside) = match head.split_once('(') {
        Some((before, rest)) => {
            let (inside, after) = rest.split_once(')').unwrap_or((rest, ""));
            (format!("{before} {after}"), Some(inside.trim().to_lowercase()))
        }
        None => (head.to_owned(), None),
    };
    let all = words(&outside);
    let number = all.first().and_then(|word| number(word));
    let at = |signs: &[&str]| all.iter().position(|word| signs.contains(&word.as_str()));
    let plain = |words: &[String]| -> Vec<String> {
        words.iter().filter(|word| !NO_NAMES.split(' ').any(|no| no == *word)).cloned().collect()
    };
    let is_free =
        |name: &str| !taken.iter().any(|other| other == name) && !found.iter().any(|one| one.name == name);
    if let Some(number) = number.filter(|number| *number > 1 || all.len() > 1) {
        let role = plain(&all[1..]).join(" ");
        let role = role.strip_suffix('s').unwrap_or(&role).to_owned();
        let names = FREE.iter().filter(|name| is_free(name)).take(number);
        return names
            .map(|name| Spawn { name: (*name).to_owned(), role: role.clone(), ..Spawn::default() })
            .collect();
    }
    let (name, role) = if let Some(named) = at(&["named", "called"]) {
        (plain(&all[named + 1..]).into_iter().next(), plain(&all[..named]).join(" "))
    } else if let Some(as_a) = at(&["as"]) {
        (plain(&all[..as_a]).into_iter().next_back(), plain(&all[as_a + 1..]).join(" "))
    } else {
        let rest = plain(&all);
        let unnamed = rest.len() < all.len();
        match rest.as_slice() {
            [] => (None, String::new()),
            [.., last] if unnamed => (Some(last.clone()), rest.join(" ")),
            [before @ .., last] => (Some(last.clone()), before.join(" ")),
        }
    };
    let name = name.unwrap_or_else(|| {
        FREE.iter().find(|name| is_free(name)).map_or_else(|| "helper".to_owned(), |name| (*name).to_owned())
    });
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
    if name.is_empty() || (all.is_empty() && inside.is_none()) {
        return Vec::new();
    }
    vec![Spawn { name, role: inside.unwrap_or(role), ..Spawn::default() }]
}

/// A number in digits or as a word.
pub(super) fn number(word: &str) -> Option<usize> {
    const WORDS: [&str; 12] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    let said = WORDS.iter().position(|known| *known == word).map(|at| at + 1);
    said.or_else(|| matches!(word, "couple" | "both").then_some(2))
        .or_else(|| word.parse().ok())
        .filter(|number| (1..=50).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(said: &str, expected: &[(&str, &str, Option<&str>)]) {
        let found = spawns(said, &[]);
        let found: Vec<(&str, &str, Option<&str>)> =
            found.iter().map(|one| (one.name.as_str(), one.role.as_str(), one.work.as_deref())).collect();
        assert_eq!(found, expected, "{said}");
    }

    #[test]
    fn names_roles_and_work_are_read_as_people_say_them() {
        check("alice and bob", &[("alice", "teammate", None), ("bob", "teammate", None)]);
        check("alice (coder) and bob (tester)", &[("alice", "coder", None), ("bob", "tester", None)]);
        check("Alice as a coder", &[("alice", "coder", None)]);
        check(
            "alice, bob & eve as coders",
            &[("alice", "coder", None), ("bob", "coder", None), ("eve", "coder", None)],
        );
        check("a coder teammate", &[("coder", "coder", None)]);
        check("a teammate", &[("alice", "teammate", None)]);
        check("a tester named eve", &[("eve", "tester", None)]);
        check("two teammates", &[("alice", "teammate", None), ("bob", "teammate", None)]);
        check("bob with a risky refactoring task", &[("bob", "teammate", Some("a risky refactoring task"))]);
        check("eve with the role of tester", &[("eve", "tester", None)]);
        check(
            "alice to count the lines and bob (tester) to list the files and directories",
            &[
                ("alice", "teammate", Some("count the lines")),
                ("bob", "tester", Some("list the files and directories")),
            ],
        );
    }
}
