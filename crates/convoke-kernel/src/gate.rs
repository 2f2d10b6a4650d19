//! Whether a gate (`--fail-on`) was passed. One pure function decides it from the results there were to look
//! at: a gate that saw nothing, or not everything, is not passed.

use std::collections::HashMap;

use crate::lost::standing;
use crate::program::{CallAnswer, CallKind, Program, ProgramStatus};
use crate::run::{ItemStatus, Run};

/// What became of the gate that the caller set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Gate {
    /// None was set.
    #[default]
    Unset,
    /// Everything was looked at, and there is no finding to fail on.
    Passed,
    /// There is a finding to fail on.
    Found,
    /// It could not be looked at, or not whole.
    Blind,
}

/// The results of a session that a gate can look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GateSight {
    /// Whole results whose findings verifiers judge, and programs that came to their end and have findings
    /// verified.
    pub sound: u32,
    /// Results that are worth less than they look: their findings are not verified.
    pub degraded: u32,
    /// Whole results of workflows without verifiers.
    pub unvoted: u32,
    /// Programs that came to their end, have results of agents, and had nothing verified.
    pub unverified: u32,
}

/// What became of a gate, from the findings of its severity or above that were confirmed, those that were not
/// judged, and what there was to look at.
pub fn gate(confirmed: usize, unjudged: usize, sight: GateSight) -> Gate {
    match (confirmed, unjudged) {
        (1.., _) => Gate::Found,
        (0, 1..) => Gate::Blind,
        (0, 0) if sight.sound == 0 || sight.degraded + sight.unvoted + sight.unverified > 0 => Gate::Blind,
        (0, 0) => Gate::Passed,
    }
}

impl GateSight {
    /// What these workflows and programs of one session have, which are in the order they were started. A
    /// subtask that was done again counts as it came out last.
    pub fn of(runs: &[Run], programs: &[Program]) -> Self {
        let mut last: HashMap<String, (bool, bool)> = HashMap::new();
        for run in runs {
            let Some(spec) = run.spec() else { continue };
            for item in run.items().into_iter().filter(|item| item.result == Some(ItemStatus::Ok)) {
                last.insert(item.prompt, (item.degraded.is_some(), spec.voters > 0));
            }
        }
        let number = |of: usize| u32::try_from(of).unwrap_or(u32::MAX);
        let results = |degraded: bool, voted: bool| {
            number(last.values().filter(|it| **it == (degraded, voted)).count())
        };
        let ended = |program: &&Program| {
            matches!(program.status(), Some(ProgramStatus::Complete | ProgramStatus::Partial))
        };
        let (verified, others): (Vec<&Program>, Vec<&Program>) =
            standing(programs).into_iter().filter(ended).partition(|program| verifies(program));
        let by_agents = |program: &&Program| program.calls().any(|call| call.made.kind == CallKind::Agent);
        Self {
            sound: results(false, true).saturating_add(number(verified.len())),
            degraded: results(true, true).saturating_add(results(true, false)),
            unvoted: results(false, false),
            unverified: number(others.into_iter().filter(by_agents).count()),
        }
    }

    /// How many results are degraded, if all that there is to look at is.
    pub fn all_degraded(&self) -> u32 {
        if self.sound + self.unvoted == 0 { self.degraded } else { 0 }
    }
}

/// Whether a program has findings verified, itself or by a child: it did, or its source says that it would
/// have.
fn verifies(program: &Program) -> bool {
    let by_call = |call: &crate::program::CallState| {
        let child = call.result.as_ref().map(|result| &result.answer);
        let child = matches!(child, Some(CallAnswer::Program { source, .. }) if has_verified(source));
        child || call.made.kind == CallKind::Verify
    };
    program.spec().is_some_and(|spec| has_verified(&spec.source)) || program.calls().any(by_call)
}

/// Whether a source names the global and no function of its own by that name.
fn has_verified(source: &str) -> bool {
    let code = code(source);
    let words: Vec<&str> = code.split(|c: char| !is_word(c)).filter(|word| !word.is_empty()).collect();
    let declares =
        |pair: &[&str]| matches!(pair[0], "const" | "let" | "var" | "function") && pair[1] == VERIFY;
    mentions(source, VERIFY) && !words.windows(2).any(declares)
}

/// The global by which a program has a finding verified, and the one by which it runs another program.
const VERIFY: &str = "verify";
const WORKFLOW: &str = "workflow";

/// Whether a program with this source can have anything verified, so that a gate can look at it.
pub fn can_verify(source: &str) -> bool {
    mentions(source, VERIFY) || mentions(source, WORKFLOW)
}

/// Whether a source names a global: the word stands in its code, not in a text or a comment, and not as a
/// member of something. The source is not parsed, because a stranger may have written it; a word too many is
/// found rather than one too few.
fn mentions(source: &str, name: &str) -> bool {
    let code = code(source);
    code.match_indices(name).any(|(at, _)| {
        let before = &code[..at];
        let after = &code[at + name.len()..];
        let alone = !before.ends_with(is_word) && !after.starts_with(is_word);
        // A key of an object, or a member of another thing, is no call of the global.
        let member = before.trim_end().ends_with('.') && !before.trim_end().ends_with("..");
        alone && !member && !after.trim_start().starts_with(':')
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The source without its comments and the texts in it; what stands in `${…}` is code.
fn code(source: &str) -> String {
    let mut kept = String::with_capacity(source.len());
    let mut rest = source.chars().peekable();
    // Inside of which template the code stands, and how many braces are open in it.
    let mut templates: Vec<u32> = Vec::new();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('/', Some('/')) => while rest.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) => {
                rest.next();
                let mut last = ' ';
                for c in rest.by_ref() {
                    if (last, c) == ('*', '/') {
                        break;
                    }
                    last = c;
                }
                kept.push(' ');
            }
            ('\'' | '"', _) => {
                // A quote in a regular expression begins no text that goes on behind its line.
                while let Some(inner) = rest.next_if(|inner| *inner != '\n') {
                    if inner == '\\' {
                        rest.next();
                    } else if inner == c {
                        break;
                    }
                }
                kept.push(' ');
            }
            ('`', _) => text_of_template(&mut rest, &mut templates),
            ('{', _) => {
                templates.last_mut().into_iter().for_each(|open| *open += 1);
                kept.push(c);
            }
            ('}', _) => match templates.last_mut() {
                Some(0) => {
                    templates.pop();
                    kept.push(' ');
                    text_of_template(&mut rest, &mut templates);
                }
                Some(open) => {
                    *open -= 1;
                    kept.push(c);
                }
                None => kept.push(c),
            },
            _ => kept.push(c),
        }
    }
    kept
}

/// Leaves out the text of a template, up to its end or to the code in it.
fn text_of_template(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, templates: &mut Vec<u32>) {
    while let Some(c) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            '`' => return,
            '$' if rest.next_if_eq(&'{').is_some() => return templates.push(0),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_passed_only_if_everything_was_looked_at_and_nothing_confirmed() {
        let sight = |sound, degraded, unvoted, unverified| GateSight { sound, degraded, unvoted, unverified };
        for kinds in 0..16 {
            let there = |kind: u32| u32::from(kinds & (1 << kind) != 0);
            let seen = sight(2 * there(0), there(1), there(2), there(3));
            for (confirmed, unjudged) in [(0, 0), (0, 1), (1, 0), (2, 3)] {
                let expected = match (confirmed, kinds == 1 && unjudged == 0) {
                    (1.., _) => Gate::Found,
                    (0, true) => Gate::Passed,
                    (0, false) => Gate::Blind,
                };
                assert_eq!(gate(confirmed, unjudged, seen), expected, "{confirmed} {unjudged} {seen:?}");
            }
        }
        assert_eq!((sight(0, 3, 0, 0).all_degraded(), sight(1, 3, 0, 0).all_degraded()), (3, 0));
    }

    #[test]
    fn a_program_with_a_verify_of_its_own_has_nothing_verified_by_that_name() {
        assert!(has_verified("const sure = await verify(f)"));
        for source in [
            "const verify = f => agent(f)\nawait verify(1)",
            "async function verify(f) {}\nverify(1)",
            "x = 1",
        ] {
            assert!(!has_verified(source), "{source}");
        }
    }

    #[test]
    fn a_program_that_names_verify_in_its_code_can_have_something_verified() {
        for source in [
            "await verify(f)",
            "all.map(verify)",
            "const v = { check: verify }",
            "`${verify(f)}`",
            "`a ${{b: `${verify(f)}`}} c`",
            "return [...x, ...verify(f)]",
            "// no\nverify (f)",
            "x.replace(/'/g, '')\nawait verify(f)",
            "await workflow('review')",
        ] {
            assert!(can_verify(source), "{source}");
        }
        for source in [
            "await agent('verify(f)')",
            "await agent(`verify(f)`)",
            "// verify(f)\nreturn 1",
            "/* verify(f) */ return 1",
            "box.verify(f)",
            "reverify(f); verify2(f)",
            "return { verify: 1 }",
            "agent('it\\'s verify(')",
            "",
        ] {
            assert!(!can_verify(source), "{source}");
        }
    }
}
