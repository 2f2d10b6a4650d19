//! Work that a person wants done by a sub-agent: the lead hands it over with `task` and keeps only what comes
//! back. It hands over what a rule knows; what is to be verified afterwards it reads again itself.

use serde_json::{Value, json};

use super::declares;
use super::facts::{Cited, Sight};
use super::look::{Lines, Look};
use super::members::unbarred;
use crate::intent::{Intent, classify};
use crate::module::{Made, Module};
use crate::policy::{Answer, call_tools, text};
use crate::read::{Call, Exchange, short};

/// Work for a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Delegated {
    work: String,
    /// Whether the lead is to look at what came of it.
    verified: bool,
}

/// How a person asks for a sub-agent; behind it stands the work.
const PHRASES: [&str; 14] = [
    "use a subtask to ",
    "use a sub-task to ",
    "use a task to ",
    "use a subagent to ",
    "use a sub-agent to ",
    "use an agent to ",
    "have a subtask ",
    "let a subtask ",
    "in a subtask, ",
    "in a subtask: ",
    "delegate to a subtask: ",
    "delegate to a subagent: ",
    "delegate this: ",
    "delegate: ",
];

/// How a person asks the lead to look at it afterwards.
const VERIFIES: [&str; 10] = [
    "then verify it from here",
    "then verify it",
    "then check it from here",
    "then check it",
    "then verify from here",
    "then verify the result",
    "and verify it from here",
    "and verify it",
    "and check it from here",
    "and check it",
];

fn read(task: &str) -> Option<Delegated> {
    let task = task.trim();
    let task = task.strip_prefix("Please ").or_else(|| task.strip_prefix("please ")).unwrap_or(task);
    let low = task.to_ascii_lowercase();
    let phrase = PHRASES.iter().find(|phrase| low.starts_with(**phrase))?;
    let work = task[phrase.len()..].trim().trim_end_matches(['.', '!', ' ']);
    let low = work.to_ascii_lowercase();
    let after = VERIFIES.iter().find(|words| low.ends_with(**words));
    let work = &work[..work.len() - after.map_or(0, |words| words.len())];
    let work = work.trim_end_matches([',', '.', ';', ' ']).to_owned();
    (!work.is_empty()).then_some(Delegated { work, verified: after.is_some() })
}

/// The task without the words that hand it to a sub-agent. Where something is to be verified afterwards,
/// nothing is left out.
pub(crate) fn without_delegation(task: &str) -> String {
    read(task)
        .filter(|delegated| !delegated.verified)
        .map_or_else(|| task.to_owned(), |delegated| delegated.work)
}

/// Whether a sub-agent's prompt is one that the rules of a review answer better than those for a program's
/// agents.
pub(super) fn is_errand(prompt: &str) -> bool {
    use crate::intent::Topic;
    let asks = |ask: &Topic| matches!(ask, Topic::Framework | Topic::Outline);
    Module::of(prompt).is_some()
        || match classify(prompt) {
            Intent::Explore(wanted) => wanted.recognised && wanted.asks.iter().any(asks),
            _ => false,
        }
}

/// The lead's reply; none if nothing is delegated, or it is beyond the rules.
pub(super) fn answer(request: &Value, exchange: &Exchange) -> Option<Answer> {
    let delegated = read(&exchange.task).filter(|_| declares(request, "task"))?;
    let makes = Module::of(&delegated.work).is_some();
    let looks = || matches!(classify(&delegated.work), Intent::Explore(wanted) if wanted.recognised);
    if !makes && (delegated.verified || !looks()) {
        return None;
    }
    let Some(task) = exchange.calls.iter().rfind(|call| call.name == "task") else {
        if exchange.handing_back {
            return Some(text("Nothing was delegated: the work ended before that."));
        }
        let say = "Handing this to a sub-agent.";
        return Some(call_tools(
            say,
            vec![("task", json!({"prompt": delegated.work}))],
            exchange.calls_so_far,
        ));
    };
    let told = task.result.as_deref().unwrap_or_default().trim();
    if task.is_error {
        return Some(text(&format!("The sub-agent brought no result: {}. {OFFLINE}", short(told))));
    }
    let told = last_words(told);
    let said = format!("A sub-agent was asked to “{}”. It says:\n\n{told}", delegated.work);
    let made = Made::of(&told).filter(|_| delegated.verified);
    match made {
        None if delegated.verified => Some(text(&format!("{said}\n\nThere is nothing to verify. {OFFLINE}"))),
        None => Some(text(&said)),
        Some(made) => Some(verify(exchange, &said, &made)),
    }
}

const OFFLINE: &str = "(Offline model: fixed rules, no intelligence.)";

/// What the sub-agent said: the harness puts bars before its lines.
fn last_words(told: &str) -> String {
    let said: Vec<&str> = told.lines().filter_map(unbarred).collect();
    if said.is_empty() { told.to_owned() } else { said.join("\n").trim().to_owned() }
}

/// Reads the new file with a command of the lead's own and holds it against the template.
fn verify(exchange: &Exchange, said: &str, made: &Made) -> Answer {
    let all = Lines { path: made.path.clone(), first: 1, last: made.lines.len() as u64 };
    let look = Look::Cite(vec![all]);
    let tries: Vec<&Call> = exchange.calls.iter().filter(|call| call.title() == look.title()).collect();
    if tries.is_empty() && !exchange.handing_back {
        let calls = vec![("bash", json!({"command": look.command()}))];
        return call_tools("Reading the new module myself.", calls, exchange.calls_so_far);
    }
    let sight = tries.iter().find_map(|call| Sight::parse(call.result.as_deref()?));
    let plain = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = match sight.as_ref().map(|sight| sight.cited(0)) {
        None | Some(Cited::Nothing) => "not verified: my own command brought no result".to_owned(),
        Some(Cited::NoFile) => format!("it does not hold: there is no `{}` here", made.path),
        Some(Cited::TooShort) => {
            format!("it does not hold: `{}` has fewer lines than the template", made.path)
        }
        Some(Cited::Lines(lines)) if lines.iter().map(plain).eq(made.lines.iter().map(plain)) => format!(
            "`{}` is there, and its {} lines are those of the template, with `{}` among them",
            made.path,
            made.lines.len(),
            made.function
        ),
        Some(Cited::Lines(_)) => {
            format!("it does not hold: the lines of `{}` are not those of the template", made.path)
        }
    };
    text(&format!(
        "{said}\n\nVerified from here, by a command of my own: {found}. Whether it compiles or runs was not \
            tried. {OFFLINE}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_for_a_sub_agent_is_heard_with_what_follows_it() {
        let check = |task: &str, expected: Option<(&str, bool)>| {
            let read = read(task);
            let read = read.as_ref().map(|delegated| (delegated.work.as_str(), delegated.verified));
            assert_eq!(read, expected, "{task}");
        };
        check(
            "Use a subtask to find what testing framework this project uses",
            Some(("find what testing framework this project uses", false)),
        );
        check(
            "Delegate: read all .py files and summarize what each one does",
            Some(("read all .py files and summarize what each one does", false)),
        );
        check(
            "Use a task to create a new module, then verify it from here.",
            Some(("create a new module", true)),
        );
        check("Please use a sub-agent to count the lines", Some(("count the lines", false)));
        check("Use a task runner", None);
        check("Delegate: ", None);
        check("Review this", None);
    }
}
