//! What a teammate does for a piece of work: it looks with a command or two and says what they printed. It
//! changes nothing, and says so where a change is wanted.

use serde_json::{Value, json};

use super::{brief, spoken};
use crate::intent::{Intent, Topic, Wanted, classify};
use crate::probes::Probe;
use crate::read::{Call, Exchange, Facts, short};
use crate::report::frameworks_named;
use crate::team::callee::{self, Looking};
use crate::team::concern::{ALL, Concern};
use crate::team::many;

/// How often a command is tried.
const TRIES: usize = 2;

/// So many things are looked at for one piece of work.
const MOST: usize = 6;

/// Tasks for a request that names none.
const SUBJECTS: [&str; 5] = [
    "List the files here",
    "Count the lines by language",
    "Find the largest files",
    "Find TODO comments",
    "Find functions of more than 80 lines",
];

/// How far a piece of work is.
pub(super) enum Working {
    /// This is called next, and this is said beside it.
    Next(&'static str, (&'static str, Value)),
    Ended(Outcome),
}

/// What it came to.
pub(super) struct Outcome {
    /// Whether what was wanted was done.
    pub(super) done: bool,
    pub(super) said: String,
}

/// So many subjects of tasks that can really be done here.
pub(super) fn subjects(number: usize) -> Vec<String> {
    let more = ALL.iter().map(|about| format!("Check: {}", about.title));
    SUBJECTS.iter().map(|subject| (*subject).to_owned()).chain(more).take(number).collect()
}

/// Whether this asks a teammate to wait for work rather than to do some.
pub(super) fn waits(text: &str) -> bool {
    let low = text.to_lowercase();
    let has = |signs: &[&str]| signs.iter().any(|sign| low.contains(sign));
    has(&[
        "task board",
        "the board",
        "auto-claim",
        "claim task",
        "claim work",
        "claim from",
        "find work",
        "pick up tasks",
    ]) || has(&["wait for", "look for work", "idle until", "pick tasks", "claim them", "claim it"])
        || ["claim", "wait", "idle", "claim tasks"].contains(&low.trim_end_matches('.').trim())
}

/// Whether a rule knows how to look for this.
pub(super) fn is_known(text: &str) -> bool {
    matches!(classify(text), Intent::Explore(wanted) if wanted.recognised && !wanted.asks.is_empty())
}

/// The next step of a piece of work, by what was called for it so far.
pub(super) fn next(text: &str, calls: &[&Call], declares: &dyn Fn(&str) -> bool) -> Working {
    let subject = text.lines().next().unwrap_or_default();
    let wanted = match classify(subject) {
        _ if !declares("bash") => None,
        Intent::Explore(wanted) => Some(wanted),
        Intent::Cannot { part } => return beyond(&part, calls),
        Intent::Unknown { .. } => None,
    };
    match wanted {
        Some(wanted)
            if wanted.recognised && (wanted.asks.len() <= 2 || Concern::of_text(subject).is_none()) =>
        {
            probes(&wanted, calls)
        }
        _ => looks(text, calls, declares),
    }
}

/// Work that fixed rules cannot do: one look at what it would be about, and the plain word that nothing was
/// done.
fn beyond(part: &str, calls: &[&Call]) -> Working {
    let refactors = part.to_lowercase().contains("refactor");
    let ask = if refactors { Topic::LongFunctions } else { Topic::Count };
    let wanted = Wanted { asks: vec![ask], recognised: true, ..Wanted::default() };
    match probes(&wanted, calls) {
        Working::Ended(Outcome { said, .. }) => {
            let said = format!(
                "Nothing was changed: the offline model only looks and reports, and “{}” is beyond its fixed \
                    rules. What it saw: {said}",
                brief(part, 120)
            );
            Working::Ended(Outcome { done: false, said })
        }
        next => next,
    }
}

/// One command for each thing that is asked for.
fn probes(wanted: &Wanted, calls: &[&Call]) -> Working {
    let mut said = Vec::new();
    let mut any = false;
    for ask in wanted.asks.iter().take(MOST) {
        let probe = Probe::of(ask);
        let tries: Vec<&&Call> =
            calls.iter().filter(|call| call.name == "bash" && call.title() == probe.title()).collect();
        let facts = tries.iter().rev().find_map(|call| Facts::parse(call.result.as_deref()?));
        match facts {
            Some(facts) => {
                any = true;
                said.push(sentence(ask, &facts));
            }
            None if tries.len() < TRIES => {
                return Working::Next(
                    "Looking into it.",
                    ("bash", json!({"command": probe.command(&wanted.view())})),
                );
            }
            None => {
                let why =
                    tries.iter().rev().find_map(|call| call.result.as_deref()).map(short).unwrap_or_default();
                said.push(format!(
                    "Nothing is known about {}: the command brought no result ({why}).",
                    ask.name()
                ));
            }
        }
    }
    if let Some(scope) = &wanted.scope {
        said.push(format!("Only {scope} was looked at."));
    }
    Working::Ended(Outcome { done: any, said: said.join(" ") })
}

/// What no probe is for: a concern of the team's, or the words of the text.
fn looks(text: &str, calls: &[&Call], declares: &dyn Fn(&str) -> bool) -> Working {
    let mut exchange = Exchange::default();
    text.clone_into(&mut exchange.task);
    exchange.calls = calls.iter().map(|call| (*call).clone()).collect();
    match callee::look(&exchange, declares) {
        Looking::Next(say, call) => Working::Next(say, call),
        Looking::Seen(said) => {
            let done =
                !said.starts_with("Nothing could be looked at") && !said.starts_with("Nothing was looked at");
            Working::Ended(Outcome { done, said })
        }
    }
}

/// What the command for an ask printed, in a sentence.
fn sentence(ask: &Topic, facts: &Facts) -> String {
    let place = |item: &crate::read::Item| match item.first {
        0 => item.path.clone(),
        first => format!("{}:{first}", item.path),
    };
    let first = |most: usize| spoken(&facts.items.iter().take(most).map(place).collect::<Vec<_>>());
    let total = facts.total();
    let there = |number: u64| if number == 1 { "There is" } else { "There are" };
    match ask {
        Topic::Count => {
            let rows = facts.languages();
            let lines = rows.iter().map(|row| row.lines).sum();
            let row = |row: &crate::read::Language<'_>| {
                format!("{} {} in {}", row.name, row.lines, many(row.files, "file"))
            };
            let known: Vec<String> = rows.iter().filter(|row| row.name != "other").take(6).map(row).collect();
            let by = if known.is_empty() { String::new() } else { format!(": {}", spoken(&known)) };
            format!(
                "{} {} with {} here{by}.",
                there(facts.files()),
                many(facts.files(), "file"),
                many(lines, "line")
            )
        }
        Topic::LargestFiles => {
            let row = |item: &crate::read::Item| format!("{} ({})", item.path, many(item.last, "line"));
            let rows: Vec<String> = facts.items.iter().take(3).map(row).collect();
            if rows.is_empty() {
                "There are no files to compare.".to_owned()
            } else {
                format!("The largest files are {}.", spoken(&rows))
            }
        }
        Topic::List => {
            let rows: Vec<String> = facts.items.iter().take(8).map(|item| item.path.clone()).collect();
            let number = facts.kind("file").0.max(facts.items.len() as u64);
            let more = number.saturating_sub(rows.len() as u64);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{} {} here: {}{rest}.", there(number), many(number, "file"), rows.join(", "))
        }
        Topic::Todos if total == 0 => "There are no TODO, FIXME, XXX or HACK comments.".to_owned(),
        Topic::Todos => {
            let comments = many(total, "TODO, FIXME, XXX or HACK comment");
            format!("{} {comments}, first {}.", there(total), first(3))
        }
        Topic::LongFunctions if total == 0 => "No function has more than 80 lines.".to_owned(),
        Topic::LongFunctions => format!("{} of more than 80 lines: {}.", many(total, "function"), first(3)),
        Topic::Errors if total == 0 => "No error was found that nobody handles.".to_owned(),
        Topic::Errors => format!("{} that nobody handles, first {}.", many(total, "error"), first(3)),
        Topic::Tests if total == 0 => "No source file was found that no test mentions.".to_owned(),
        Topic::Tests => format!("{} that no test mentions, first {}.", many(total, "source file"), first(3)),
        Topic::Framework if total == 0 => "No file names a testing framework that the rules know.".to_owned(),
        Topic::Framework => {
            let names: Vec<String> =
                frameworks_named(facts).into_iter().map(|(_, name)| (*name).to_owned()).collect();
            format!("The files here name {}, first {}.", spoken(&names), first(3))
        }
        Topic::Outline => {
            let files = facts.items.iter().filter(|item| item.kind == "file");
            let row =
                |item: &crate::read::Item| format!("{} ({})", item.path, many(item.first, "definition"));
            let rows: Vec<String> = files.take(5).map(row).collect();
            let number = facts.kind("file").0;
            format!(
                "{} at the top level of {}: {}.",
                many(facts.kind("def").0, "definition"),
                many(number, "source file"),
                spoken(&rows)
            )
        }
        Topic::Find(_) if total == 0 => "No line holds what was searched for.".to_owned(),
        Topic::Find(_) => format!("{} with what was searched for, first {}.", many(total, "line"), first(3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_nobody_named_can_all_be_looked_into() {
        let subjects = subjects(50);
        assert!(subjects.len() > 15, "{}", subjects.len());
        for subject in &subjects {
            let Working::Next(_, (tool, input)) = next(subject, &[], &|name| name == "bash") else {
                panic!("{subject} ended at once");
            };
            let title =
                input["command"].as_str().and_then(|command| command.lines().next()).unwrap_or_default();
            assert_eq!(tool, "bash", "{subject}");
            assert!(!title.contains("words of the subtask"), "{subject}: {title}");
        }
    }

    #[test]
    fn waiting_is_no_work_and_work_is_no_waiting() {
        for text in ["find work from the task board itself", "claim", "Wait for messages from your team"] {
            assert!(waits(text), "{text}");
        }
        for text in ["find the largest file", "count the lines", "a risky refactoring task"] {
            assert!(!waits(text), "{text}");
        }
    }
}
