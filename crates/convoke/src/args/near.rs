//! What a mistyped word may have meant. A name is spoken of only if a slip of the finger or two lead to it: a guess that is far off
//! sends people the wrong way.

use super::COMMANDS;
use crate::failure::Failure;

/// Slips that every word may have in it.
const SLIPS: usize = 2;
/// Slips that a long word may have in it: one in three letters, and no more than this.
const MOST_SLIPS: usize = 3;

/// A single word that is neither a command nor one of these workflows.
pub(crate) fn no_command<'a>(word: &str, workflows: impl Iterator<Item = &'a str>) -> Failure {
    let failure = Failure::usage(format!("'{word}' is no command of convoke"));
    let (command, workflow) = (near(word, COMMANDS.iter().copied()), near(word, workflows));
    let failure = match (command, workflow) {
        (Some((far, command)), Some((near, _))) if far <= near => failure.hint(nearest_command(command)),
        (_, Some((_, workflow))) => failure.hint(format!("the nearest workflow is `convoke {workflow}`")),
        (Some((_, command)), None) => failure.hint(nearest_command(command)),
        (None, None) => failure,
    };
    failure.hint(format!("if it is a task, write `convoke run {word}`"))
}

fn nearest_command(command: &str) -> String {
    format!("the nearest command is `convoke {command}`")
}

/// The candidate that the word was most likely meant to be, if it is near enough.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    near(word, candidates).map(|(_, candidate)| candidate)
}

/// The nearest candidate, and how many slips lead to it.
fn near<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<(usize, &'a str)> {
    let letters = word.chars().count();
    let allowed = (letters / 3).clamp(SLIPS, MOST_SLIPS);
    let scored = candidates.map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate));
    // Of a short word so much has to be left that it is still the same one.
    let close = |slips: usize, candidate: &str| slips <= allowed && slips * 2 < letters.max(candidate.chars().count());
    let found = scored.filter(|(slips, candidate)| close(*slips, candidate));
    found.min_by(|(one, first), (other, second)| {
        // Of several that are as near the one that begins alike, then the one with as many letters.
        let alike = |candidate: &str| strsim::jaro_winkler(word, candidate);
        let longer = |candidate: &str| candidate.chars().count().abs_diff(letters);
        let order = one.cmp(other).then_with(|| alike(second).total_cmp(&alike(first)));
        order.then_with(|| longer(first).cmp(&longer(second)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_suggested_only_if_a_slip_or_two_lead_to_it() {
        let check = |word: &str, expected: Option<&str>| {
            assert_eq!(nearest(word, COMMANDS.iter().copied()), expected, "{word}");
        };
        check("rusn", Some("runs"));
        check("docter", Some("doctor"));
        check("completins", Some("completions"));
        check("aproval", Some("approvals"));
        check("cots", Some("cost"));
        assert_eq!(nearest("modell", ["models", "model"].into_iter()), Some("model"), "it begins alike");
        for far in ["deploy", "test", "ls", "x", "refactor", "migrate", ""] {
            check(far, None);
        }
    }

    #[test]
    fn whichever_is_nearer_is_named_a_command_or_a_workflow() {
        let check = |word: &str, expected: &str| {
            let said = no_command(word, ["review", "audit", "migrate", "costs2"].into_iter()).render();
            assert!(said.contains(expected) && said.matches("nearest").count() <= 1, "{word}: {said}");
        };
        check("reviw", "the nearest workflow is `convoke review`");
        check("resum", "the nearest command is `convoke resume`");
        check("costs", "the nearest command is `convoke cost`");
        check("deploy", "is no command of convoke\n  if it is a task, write `convoke run deploy`");
    }
}
