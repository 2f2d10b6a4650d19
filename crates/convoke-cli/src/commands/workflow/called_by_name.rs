//! `convoke NAME words` and `convoke '/NAME words'`: where the first word is the name of a workflow, that
//! workflow is meant, with the words behind it as its argument. Those that are shipped are called by words
//! that sentences begin with (`review it all`), so without a slash only a saved one is meant. Everything else
//! is a task.

use convoke_runtime::Origin;

use crate::args::{Command, GivenArgs, RunArgs, SessionFlags, WorkflowCommand, WorkflowRunArgs};
use crate::commands::trust;
use crate::failure::Failure;
use crate::settings::Settings;

/// What is meant by a task that no command stands before.
pub(crate) async fn meant(settings: &Settings, args: RunArgs) -> Result<Command, Failure> {
    let Some((name, words)) = args.is_bare.then(|| named(&args.task)).flatten() else {
        return Ok(Command::Run(args));
    };
    let is_command = args.task.first().is_some_and(|first| first.starts_with('/'));
    // Trusted or not: what no person trusts is told as that, and is no task by accident.
    let library = trust::of(settings.saved.folders(&settings.dir))?;
    match library.find(&name).await {
        Ok(None) if !is_command => return Ok(Command::Run(args)),
        Ok(Some(found)) if found.origin == Origin::Shipped && !is_command => return Ok(Command::Run(args)),
        // One that cannot be used, or does not exist, is told as that.
        Ok(_) | Err(_) => {}
    }
    let SessionFlags { settings, mut task, end } = args.flags;
    let fresh = std::mem::take(&mut task.fresh);
    let take_up = std::mem::take(&mut task.take_up);
    if let Some(flag) = task.first_flag() {
        let hint = format!("to give it as a task, write `convoke run {}`", args.task.join(" "));
        return Err(Failure::usage(format!("{flag} has no meaning for the workflow '{name}'")).hint(hint));
    }
    let given = GivenArgs { args: None, arg_text: Some(words).filter(|words| !words.is_empty()) };
    let args =
        WorkflowRunArgs { named: name, given, yes: false, take_up, fresh, settings, end, is_bare: true };
    Ok(Command::Workflow(WorkflowCommand::Run(Box::new(args))))
}

/// The word that may be a workflow's name, and the words behind it.
fn named(task: &[String]) -> Option<(String, String)> {
    let (first, rest) = match task {
        // One argument with blanks in it is a sentence, unless it begins as a command does.
        [whole] => whole
            .strip_prefix('/')?
            .split_once(char::is_whitespace)
            .map(|(first, rest)| (first, rest.trim().to_owned()))?,
        [first, rest @ ..] => (first.strip_prefix('/').unwrap_or(first), rest.join(" ")),
        [] => return None,
    };
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    (!first.is_empty() && first.chars().all(plain)).then(|| (first.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_may_be_a_name_and_a_sentence_is_none() {
        let check = |task: &[&str], expected: Option<(&str, &str)>| {
            let task: Vec<String> = task.iter().map(|word| (*word).to_owned()).collect();
            let expected = expected.map(|(name, words)| (name.to_owned(), words.to_owned()));
            assert_eq!(named(&task), expected, "{task:?}");
        };
        check(&["review", "src/", "and", "tests"], Some(("review", "src/ and tests")));
        check(&["/review", "src/"], Some(("review", "src/")));
        check(&["/review src/ and tests"], Some(("review", "src/ and tests")));
        check(&["review the code"], None);
        check(&["what's", "here"], None);
        check(&["-"], None);
        check(&[], None);
    }
}
