//! `convoke run`: a task becomes a run. It reads the task, says what will be asked and where, and drives the agent.

use std::io::Read;
use std::path::Path;

use convoke_runtime::Take;

use super::drive::{Job, drive, say};
use crate::args::RunArgs;
use crate::failure::{Exit, Failure};
use crate::open;
use crate::render::{Look, Progress, clean};
use crate::settings::{ModelSource, Settings};
use crate::stdio::tell;

/// What is done when nobody says what.
const DEFAULT_TASK: &str = "Review this directory: its purpose, its structure and its quality. Report the faults, unhandled \
errors, untested code, oversized parts and unfinished work, the most serious first, each with file, line and how you know. \
This is a review: leave every file as it is. End with a list of the parts that were left out";

/// Runs a task.
pub(crate) async fn run(settings: &Settings, args: RunArgs) -> Result<Exit, Failure> {
    let task = task(&args.task)?;
    let look = Look::detect(settings.output, settings.quiet);
    let source = choose(settings, look)?;
    let start = open::start(settings, &source)?;
    let journal = open::journal(settings).await?;
    let opened = open::runtime(settings, journal, &source).await?;
    let effort = start.capabilities.effort.as_deref();
    say(settings, &look.fit(&banner(settings, &settings.dir, &source, &start.model, effort)));
    let warnings = match source {
        // They are about the model that was configured and is not asked.
        ModelSource::Offline => Vec::new(),
        ModelSource::Api { .. } | ModelSource::Nothing => {
            settings.warnings.iter().cloned().chain(settings.model_row().assumptions()).collect()
        }
    };
    for warning in &warnings {
        tell(&look.fit(&format!("warning: {}\n", clean(warning))));
    }
    let progress = Progress::new(&start.model);
    let agent = opened.runtime.start(start, &task).await?;
    drive(Job { settings, look, opened, agent, take: Take::New, progress, warnings }).await
}

/// Who answers. The offline model answers by itself only where a person reads that it does.
fn choose(settings: &Settings, look: Look) -> Result<ModelSource, Failure> {
    match &settings.source {
        ModelSource::Nothing if look.is_interactive() => {
            let why = "no ANTHROPIC_API_KEY: the built-in offline model answers, by rules and without any intelligence";
            tell(&look.fit(&format!("{why} (say --offline to choose it)\n")));
            Ok(ModelSource::Offline)
        }
        ModelSource::Nothing => Err(open::nobody_answers()),
        source => Ok(source.clone()),
    }
}

/// The first line: what is asked, how, where it works and where it is remembered.
pub(super) fn banner(
    settings: &Settings,
    dir: &Path,
    source: &ModelSource,
    model: &str,
    effort: Option<&str>,
) -> String {
    let model = match (source, effort) {
        (ModelSource::Offline, _) => "offline (rules, no intelligence)".to_owned(),
        (_, Some(effort)) => format!("{model} (effort {effort})"),
        (_, None) => model.to_owned(),
    };
    let confined = match source {
        ModelSource::Offline => "",
        ModelSource::Api { .. } | ModelSource::Nothing => {
            " · its commands run UNCONFINED, with your rights (there is no sandbox yet)"
        }
    };
    clean(&format!("convoke · model {model} · in {} · journal {}{confined}", dir.display(), settings.journal))
}

/// The task: words, `-` for stdin, `@FILE` for a file.
fn task(words: &[String]) -> Result<String, Failure> {
    let task = match words {
        [] => DEFAULT_TASK.to_owned(),
        [word] if word == "-" => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| Failure::usage(format!("the task cannot be read from stdin: {error}")))?;
            text
        }
        [word] if word.starts_with('@') => from_file(Path::new(&word[1..]))?,
        words => words.join(" "),
    };
    if task.trim().is_empty() {
        return Err(Failure::usage("the task is empty")
            .hint("say what is to be done, or leave it out to have the directory reviewed"));
    }
    Ok(task)
}

fn from_file(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("the task file {} cannot be read: {error}", path.display()))
            .hint("a task that begins with @ names a file; put something before the @ to say it as it is")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Result<String, Failure> {
        task(&text.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_task_is_words_a_file_or_the_review() {
        assert_eq!(words(&["look", "around"]).unwrap(), "look around");
        assert_eq!(words(&[]).unwrap(), DEFAULT_TASK);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("task.md");
        std::fs::write(&file, "from a file").unwrap();
        assert_eq!(words(&[&format!("@{}", file.display())]).unwrap(), "from a file");
    }

    #[test]
    fn a_task_that_says_nothing_is_wrong_usage() {
        assert_eq!(words(&["  "]).unwrap_err().code, Exit::Usage);
        let missing = words(&["@/nowhere/at/all.md"]).unwrap_err();
        assert_eq!(missing.code, Exit::Usage);
        assert!(missing.message.contains("/nowhere/at/all.md"), "{missing:?}");
    }
}
