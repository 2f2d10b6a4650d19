//! What a callee does before it answers: which commands, by the words of its prompt and the names in its
//! schema. A step is known again in the history by its first line, so that nothing has to be remembered
//! beside it.

use serde_json::{Value, json};

use super::names::{AREAS, FILES, FINDINGS, VERDICTS, is_one_of, property_names};
use super::seen::Seen;
use super::swap::{self, Swap, Trial};
use crate::probes::{Probe, View};
use crate::read::{Call, Exchange, Facts};
use crate::team::facts::Sight;
use crate::team::look::{Lines, Look, Scope};
use crate::team::subtask;

/// So many places that a prompt names are read again.
const MOST_PLACES: usize = 6;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Look with a command of the team's.
    Look(Look),
    /// List the files.
    List { within: Option<String>, only_if_nothing: bool },
    /// Replace a text in these files.
    Swap(Swap),
    /// Put a patch on that was to replace a text, in a place of its own.
    Try(Trial),
    /// List the files without a shell.
    Glob,
}

/// The steps for a prompt; `declares` says which tools there are.
pub(super) fn steps(prompt: &str, schema: Option<&Value>, declares: impl Fn(&str) -> bool) -> Vec<Step> {
    if !declares("bash") {
        return if declares("glob") { vec![Step::Glob] } else { Vec::new() };
    }
    let names = schema.map(property_names).unwrap_or_default();
    let asks_for = |table: &str| names.iter().any(|name| is_one_of(name, table));
    let place = subtask::place(prompt);
    let swap = swap::read(prompt);
    let list = |only_if_nothing| Step::List { within: place.within.first().cloned(), only_if_nothing };
    let cited = cited(prompt);
    if asks_for(VERDICTS) && !cited.is_empty() {
        return vec![Step::Look(Look::Cite(cited))];
    }
    if let Some(trial) = swap::trial(prompt).filter(|_| asks_for(VERDICTS)) {
        return vec![Step::Try(trial)];
    }
    if let Some(swap) = swap {
        let changes = !place.within.is_empty() && !swap::forbids(prompt);
        if changes {
            return vec![Step::Swap(Swap { files: place.within, ..swap })];
        }
        return vec![Step::Look(Look::Words { terms: vec![swap.old], least: 1, place })];
    }
    if asks_for(AREAS) {
        return vec![Step::Look(Look::Scout(place))];
    }
    let look = subtask::read(prompt);
    // A prompt that asks for findings, where there are none, is not answered by a list of files.
    let otherwise = if asks_for(FINDINGS) { Vec::new() } else { vec![list(true)] };
    // Loose words are found almost everywhere; a prompt that wants files is better answered with all of them.
    let loose = |term: &String| !term.contains('_') && !prompt.contains(&format!("`{term}`"));
    let searches = matches!(&look, Look::Words { terms, .. } if terms.iter().all(loose));
    if searches && asks_for(FILES) || has_no_terms(&look) {
        return vec![list(false)];
    }
    [vec![Step::Look(look)], otherwise].concat()
}

fn has_no_terms(look: &Look) -> bool {
    matches!(look, Look::Words { terms, .. } if terms.is_empty())
}

/// The places a prompt names as `path:line` or `path:first-last`.
fn cited(prompt: &str) -> Vec<Lines> {
    let mut places: Vec<Lines> = Vec::new();
    for token in prompt.split(|c: char| c.is_whitespace() || "`\"'()[]{}<>,;".contains(c)) {
        let token = token.trim_end_matches([':', '.']);
        let Some((path, rest)) = token.split_once(':') else { continue };
        let numbers = rest.split(':').next().unwrap_or_default();
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        let (Ok(first), Ok(last)) = (first.parse::<u64>(), last.parse::<u64>()) else { continue };
        let outside = path.starts_with(['/', '~', '-']) || path.split('/').any(|part| part == "..");
        let named = path.contains(['.', '/']) && !path.contains("//");
        if !outside && named && first > 0 && first <= last {
            let lines = Lines { path: path.trim_start_matches("./").to_owned(), first, last };
            if !places.contains(&lines) && places.len() < MOST_PLACES {
                places.push(lines);
            }
        }
    }
    places
}

impl Step {
    /// What is said beside it.
    pub(super) fn say(&self) -> &'static str {
        match self {
            Step::Look(Look::Scout(_)) => "Looking at what is here, and where.",
            Step::Look(Look::Cite(_)) => "Reading the places that are named.",
            Step::Look(_) => "Looking into it.",
            Step::List { .. } | Step::Glob => "Listing the files.",
            Step::Swap(_) => "Replacing it.",
            Step::Try(_) => "Putting the patch on, in a place of its own.",
        }
    }

    /// The tool and its input.
    pub(super) fn call(&self) -> (&'static str, Value) {
        let command = match self {
            Step::Look(look) => look.command(),
            Step::List { within, .. } => Probe::List.command(&View { scope: within.clone(), language: None }),
            Step::Swap(swap) => swap.command(),
            Step::Try(trial) => trial.command(),
            Step::Glob => return ("glob", json!({"pattern": "**/*"})),
        };
        ("bash", json!({"command": command}))
    }

    /// Whether this call is the step.
    pub(super) fn is(&self, call: &Call) -> bool {
        let title = match self {
            Step::Look(look) => look.title(),
            Step::List { .. } => Probe::List.title().to_owned(),
            Step::Swap(_) => swap::TITLE.to_owned(),
            Step::Try(_) => swap::TRIAL.to_owned(),
            Step::Glob => return call.name == "glob",
        };
        call.name == "bash" && call.title() == title
    }

    /// Whether it is still to be done, after what was seen so far.
    pub(super) fn is_needed(&self, seen: &Seen) -> bool {
        !matches!(self, Step::List { only_if_nothing: true, .. }) || seen.has_looked_in_vain()
    }

    /// Whether it brought something that can be read.
    pub(super) fn has_come(&self, exchange: &Exchange) -> bool {
        let mut results =
            exchange.calls.iter().filter(|call| self.is(call)).filter_map(|call| call.result.as_deref());
        match self {
            Step::Look(_) | Step::Swap(_) | Step::Try(_) => results.any(|text| Sight::parse(text).is_some()),
            Step::List { .. } => results.any(|text| Facts::parse(text).is_some()),
            Step::Glob => results.next().is_some(),
        }
    }

    /// Where it looks.
    pub(super) fn place(&self) -> Option<&Scope> {
        match self {
            Step::Look(Look::Scout(place) | Look::Check { place, .. } | Look::Words { place, .. }) => {
                Some(place)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::concern::Concern;

    #[track_caller]
    fn check(prompt: &str, schema: Value, expected: impl Fn(&[Step]) -> bool) {
        let steps = steps(prompt, Some(&schema), |name| name == "bash");
        assert!(expected(&steps), "{prompt}: {steps:?}");
    }

    fn of(names: &[&str]) -> Value {
        let properties: serde_json::Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        json!({"type": "object", "properties": properties})
    }

    #[test]
    fn the_prompt_and_the_names_in_the_schema_say_what_is_looked_at() {
        check(
            "Find leftover TODO comments in `src/`",
            of(&["findings"]),
            |steps| matches!(steps, [Step::Look(Look::Check { concern: Concern::Markers, place })] if place.within == ["src"]),
        );
        check(
            "Which parts of the code in `src/` come first?",
            of(&["areas"]),
            |steps| matches!(steps, [Step::Look(Look::Scout(place))] if place.within == ["src"]),
        );
        check(
            "Change nothing. Somebody was to replace `old` with `new` in \
                `a.txt`\n<patch>\n-old\n+new\n</patch>",
            of(&["ok"]),
            |steps| matches!(steps, [Step::Try(trial)] if trial.patch == "-old\n+new\n"),
        );
        check(
            "Is it true? src/a.rs:3-4: it panics",
            of(&["refuted"]),
            |steps| matches!(steps, [Step::Look(Look::Cite(lines))] if lines[0].path == "src/a.rs" && lines[0].last == 4),
        );
        check("Name some", of(&["files"]), |steps| {
            matches!(steps, [Step::List { only_if_nothing: false, .. }])
        });
        check("Explain how the governor paces", of(&["text"]), |steps| {
            matches!(steps, [Step::Look(Look::Words { .. }), Step::List { only_if_nothing: true, .. }])
        });
        check(
            "Migrate `src/a.txt`: replace `old` with `new`",
            of(&["changed"]),
            |steps| matches!(steps, [Step::Swap(swap)] if swap.files == ["src/a.txt"]),
        );
        check(
            "Change nothing. Where must one replace `old` with `new`?",
            of(&["files"]),
            |steps| matches!(steps, [Step::Look(Look::Words { terms, .. })] if terms == &["old"]),
        );
    }

    #[test]
    fn without_a_shell_the_files_are_listed_and_without_tools_nothing_is() {
        assert_eq!(steps("Find TODOs", None, |name| name == "glob"), [Step::Glob]);
        assert_eq!(steps("Find TODOs", None, |_| false), []);
    }
}
