//! What a mistyped word may have meant. A name is spoken of only if a slip of the finger or two lead to it: a
//! guess that is far off sends people the wrong way.

use clap::CommandFactory;

use super::{COMMANDS, Cli, OLD_SESSIONS};
use crate::failure::Failure;

/// Slips that every word may have in it.
const SLIPS: usize = 2;
/// Slips that a long word may have in it: one in three letters, and no more than this.
const MOST_SLIPS: usize = 3;

/// A single word that is neither a command nor one of these workflows.
pub(crate) fn no_command<'a>(word: &str, workflows: impl Iterator<Item = &'a str>) -> Failure {
    let failure = Failure::usage(format!("'{word}' is no command of convoke"));
    let command = near(word, COMMANDS.iter().copied());
    let workflow = near(word, workflows);
    let failure = match (command, workflow) {
        (Some((far, command)), Some((near, _))) if far <= near => failure.hint(nearest_command(command)),
        (_, Some((_, workflow))) => failure.hint(format!("the nearest workflow is `convoke {workflow}`")),
        (Some((_, command)), None) => failure.hint(nearest_command(command)),
        (None, None) => failure,
    };
    failure.hint(format!("if it is a task, write `convoke run {word}`"))
}

/// A word that stands where a command does and is none, if what follows makes a mistyped command of it: one
/// slip leads to a command, or more than one and then a command below that one, or hardly anything follows.
/// What is said in one piece (in quotes) is a task.
pub(crate) fn mistyped(task: &[String]) -> Option<Failure> {
    let (first, rest) = task.split_first().filter(|(_, rest)| !rest.is_empty())?;
    if first.contains(char::is_whitespace) || first == "-" || first.starts_with('@') {
        return None;
    }
    let (slips, command) = near(first, COMMANDS.iter().copied())?;
    let below = Cli::command()
        .find_subcommand(command)
        .is_some_and(|found| found.find_subcommand(&rest[0]).is_some());
    // A word of three letters is one slip away from many words that sentences begin with.
    if (slips > 1 || first.chars().count() <= 3) && !below && rest.len() > 1 {
        return None;
    }
    let words = task.join(" ");
    Some(
        Failure::usage(format!("'{first}' is no command of convoke, and nothing was started"))
            .hint(nearest_command(&format!("{} {}", current(command), rest.join(" "))))
            .hint(format!(
                "if it is a task, write `convoke run {words}`, or put it in quotes: `convoke \"{words}\"`"
            )),
    )
}

fn nearest_command(command: &str) -> String {
    format!("the nearest command is `convoke {}`", current(command))
}

/// What a command is called today.
fn current(command: &str) -> &str {
    if command == OLD_SESSIONS { "sessions" } else { command }
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
    let close = |slips: usize, candidate: &str| {
        slips <= allowed && slips * 2 < letters.max(candidate.chars().count())
    };
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
    fn a_mistyped_command_with_arguments_is_no_task() {
        let told = |line: &str| {
            let words: Vec<String> = line.split('|').map(str::to_owned).collect();
            mistyped(&words).map(|failure| failure.render())
        };
        let check = |line: &str, command: &str| {
            let said = told(line).unwrap_or_else(|| panic!("{line} is a task"));
            assert!(said.contains(&format!("the nearest command is `convoke {command}`")), "{said}");
            assert!(said.contains(&format!("`convoke run {}`", line.replace('|', " "))), "{said}");
        };
        check("rusn|list", "sessions list");
        check("resum|s_k3", "resume s_k3");
        check("docter|--help", "doctor --help");
        check("tesm|list", "team list");
        check("approvel|list|s_k3", "approvals list s_k3");
        check("workfow|run|review|src", "workflow run review src");
        for task in [
            "rusn list",
            "rusn list|please",
            "review|src",
            "find|dead|code",
            "tests|for|the|parser|are|missing",
            "port|the|tests|to|pytest",
            "explain|src",
            "make|it|faster",
            "fix|the|bug",
            "rusn",
            "-|x",
            "@rusn|list",
            "tidy|up|src",
            "can|you|review|src",
            "sum|up|src",
        ] {
            assert_eq!(told(task), None, "{task}");
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
