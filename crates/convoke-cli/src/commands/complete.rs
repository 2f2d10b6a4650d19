//! What could stand where a word has been begun on the command line: ids of sessions, names of workflows,
//! models and members of a team. The scripts of `convoke completions` call it as `convoke __complete SHELL
//! WORDS…` with all words up to the cursor. It looks for a short time, changes nothing and complains about
//! nothing: where something cannot be read, there is nothing to offer.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, CommandFactory, Parser};
use convoke_journal::Filter;
use convoke_kernel::{AgentId, Role, Summary};
use convoke_view::flat;

use super::team::TeamTarget;
use crate::args::Cli;
use crate::failure::Failure;
use crate::open;
use crate::settings::{Environment, Settings};
use crate::shipped;
use crate::stdio;

/// The word behind which the shells' scripts call this. No task begins like this.
const CALLED: &str = "__complete";
/// A person at a prompt does not wait longer.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// A longer list is not read.
const MOST: usize = 50;
/// So many of the newest agents are looked at for sessions.
const LOOKED_AT: usize = 5_000;

/// What a word is the beginning of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Session,
    Workflow,
    Model,
    Member,
}

/// The word that has been begun, and what stands before it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Begun {
    kind: Option<Kind>,
    word: String,
    /// What `-C`, `--journal` and `--session` say.
    dir: Option<String>,
    journal: Option<String>,
    session: Option<String>,
}

/// Something to offer, and what it is.
pub(crate) type Candidate = (String, String);

/// Answers a shell, if one asks. The process ends at once, also while something is still being read.
pub(crate) fn answer() -> Option<ExitCode> {
    let mut given = std::env::args().skip(1);
    if given.next()? != CALLED {
        return None;
    }
    let tells = given.next()? == "fish";
    let begun = begun(&given.collect::<Vec<_>>());
    for (text, about) in candidates(&begun) {
        let about = if tells && !about.is_empty() { format!("\t{about}") } else { String::new() };
        // A shell that is gone offers nothing.
        let _ = stdio::put(&format!("{text}{about}\n"));
    }
    std::process::exit(0)
}

fn candidates(begun: &Begun) -> Vec<Candidate> {
    let Some(kind) = begun.kind else { return Vec::new() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let (Ok(runtime), Ok(settings)) = (runtime, settings(begun)) else { return Vec::new() };
    let found = async {
        match kind {
            Kind::Model => Ok(models(&settings)),
            Kind::Workflow => Ok(workflows(&settings)),
            Kind::Session => sessions(&settings, &begun.word).await,
            Kind::Member => members(&settings, begun.session.as_deref()).await,
        }
    };
    let found = runtime.block_on(async { tokio::time::timeout(PATIENCE, found).await });
    // Dropping the runtime would wait for what is still being read.
    std::mem::forget(runtime);
    let mut all = found.ok().and_then(Result::ok).unwrap_or_default();
    all.retain(|(text, _)| text.starts_with(&begun.word) && !text.contains(char::is_control));
    all.truncate(MOST);
    all
}

/// The settings as a command that only looks has them.
fn settings(begun: &Begun) -> Result<Settings, Failure> {
    let place = [("-C", &begun.dir), ("--journal", &begun.journal)];
    let given = place.into_iter().filter_map(|(flag, value)| Some([flag, value.as_deref()?])).flatten();
    let line = std::iter::once("convoke").chain(given).chain(["sessions", "list"]);
    let cli = Cli::try_parse_from(line).map_err(|error| Failure::usage(error.to_string()))?;
    let (globals, _) = cli.split(false)?;
    let here = std::env::current_dir().map_err(|error| Failure::usage(error.to_string()))?;
    Settings::resolve(&globals, &Environment::of_this_process(), &here)
}

fn models(settings: &Settings) -> Vec<Candidate> {
    let rows = || settings.models.iter();
    let names = rows().map(|row| (row.id.clone(), String::new()));
    let aliases = rows().flat_map(|row| row.aliases.iter().map(|alias| (alias.clone(), row.id.clone())));
    names.chain(aliases).collect()
}

/// Every workflow by the name of its file, and where it comes from. What it says of itself is left out: a
/// process of its own would have to read it, which takes too long here.
pub(crate) fn workflows(settings: &Settings) -> Vec<Candidate> {
    let folders = settings.saved.folders(&settings.dir);
    let saved = folders.workflows.iter().flat_map(|folder| {
        let origin = folder.origin.word().to_owned();
        folder.workflows().into_iter().map(move |name| (name, origin.clone()))
    });
    let shipped = shipped::WORKFLOWS.iter().map(|(name, _)| ((*name).to_owned(), "shipped".to_owned()));
    let mut all: Vec<Candidate> = Vec::new();
    for one in saved.chain(shipped) {
        if !all.iter().any(|(name, _)| *name == one.0) {
            all.push(one);
        }
    }
    all
}

/// Those of this directory, the newest first; others where what was typed fits none of them.
async fn sessions(settings: &Settings, word: &str) -> Result<Vec<Candidate>, Failure> {
    if settings.journal.file().is_some_and(|file| !file.exists()) {
        return Ok(Vec::new());
    }
    let journal = open::quiet_journal(settings).await?;
    let filter = Filter { prefix: Some(AgentId::PREFIX.to_owned()), limit: Some(LOOKED_AT) };
    let listed = journal.list(&filter).await?;
    let leads = listed.iter().filter_map(|one| serde_json::from_str::<Summary>(one.summary.as_deref()?).ok());
    let (here, elsewhere): (Vec<Summary>, Vec<Summary>) = leads
        .filter(|one| one.role == Role::Lead)
        .partition(|one| std::path::Path::new(&one.dir) == settings.dir);
    let named = |one: &Summary| (one.session.to_string(), flat(&one.task, 60).0);
    let mut all: Vec<Candidate> = Vec::new();
    if let Some(newest) = here.first() {
        all.push(("last".to_owned(), flat(&newest.task, 60).0));
    }
    all.extend(here.iter().map(named));
    if !all.iter().any(|(text, _)| text.starts_with(word)) {
        all = elsewhere.iter().map(named).collect();
    }
    Ok(all)
}

async fn members(settings: &Settings, session: Option<&str>) -> Result<Vec<Candidate>, Failure> {
    let at = TeamTarget::find(settings, session).await?;
    let roster = at.team.roster(&at.session).await?;
    Ok(roster.members().map(|member| (member.name.clone(), flat(&member.role, 60).0)).collect())
}

/// Reads the words up to the cursor as the command line would, the last one being what was begun.
fn begun(words: &[String]) -> Begun {
    let mut whole = Cli::command();
    whole.build();
    let mut begun = Begun::default();
    let (Some(last), mut command) = (words.last(), &whole) else { return begun };
    let mut path: Vec<&str> = Vec::new();
    let mut positionals: usize = 0;
    let mut wanting: Option<&Arg> = None;
    // Some shells make words of their own of `=` and of what stands around it.
    for word in words[..words.len() - 1].iter().filter(|word| *word != "=") {
        if let Some(arg) = wanting.take() {
            begun.keep(arg, word);
        } else if let Some(flag) = word.strip_prefix('-').filter(|flag| !flag.is_empty()) {
            let (flag, value) =
                flag.split_once('=').map_or((flag, None), |(flag, value)| (flag, Some(value)));
            let arg = command.get_arguments().find(|arg| is_flag(arg, flag)).filter(|arg| takes_value(arg));
            match (arg, value) {
                (Some(arg), Some(value)) => begun.keep(arg, value),
                (arg, _) => wanting = arg,
            }
        } else if let (0, Some(below)) = (positionals, command.find_subcommand(word)) {
            command = below;
            path.push(below.get_name());
        } else {
            positionals += 1;
        }
    }
    let last = if last == "=" { "" } else { last.as_str() };
    let named = last.strip_prefix("--").and_then(|flag| flag.split_once('='));
    let flag = |flag: &str| command.get_arguments().find(|arg| is_flag(arg, &format!("-{flag}")));
    let (arg, word) = match (wanting, named) {
        (Some(arg), _) => (Some(arg), last),
        (None, Some((name, value))) => (flag(name), value),
        (None, None) if last.starts_with('-') => (None, last),
        (None, None) => (positional(command, positionals), last),
    };
    begun.word = word.to_owned();
    begun.kind = arg.and_then(|arg| kind(arg, &path));
    begun
}

impl Begun {
    fn keep(&mut self, arg: &Arg, value: &str) {
        let place = match arg.get_long() {
            Some("cwd") => &mut self.dir,
            Some("journal") => &mut self.journal,
            Some("session") => &mut self.session,
            _ => return,
        };
        *place = Some(value.to_owned());
    }
}

/// Whether an argument is meant by a flag, which is given without its first dash.
fn is_flag(arg: &Arg, flag: &str) -> bool {
    match flag.strip_prefix('-') {
        Some(long) => {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(long) || aliases.contains(&long)
        }
        None => arg.get_short().is_some_and(|short| flag.chars().eq([short])),
    }
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// The argument without a flag that stands at this place; the last one may stand there many times.
fn positional(command: &clap::Command, place: usize) -> Option<&Arg> {
    let all: Vec<&Arg> = command.get_positionals().collect();
    all.get(place)
        .or_else(|| all.last().filter(|last| last.get_num_args().is_some_and(|n| n.max_values() > 1)))
        .copied()
}

/// What an argument is the name of, below these commands.
fn kind(arg: &Arg, path: &[&str]) -> Option<Kind> {
    let value = arg.get_value_names().and_then(|names| names.first()).map(|name| name.as_str());
    match (value, arg.get_long(), path.first()) {
        (Some("SESSION"), ..) => Some(Kind::Session),
        (_, Some("model" | "worker-model"), _) => Some(Kind::Model),
        (Some("NAME" | "NAME|FILE"), None, Some(&"workflow")) => Some(Kind::Workflow),
        (Some("NAME"), None | Some("only"), Some(&"team" | &"mail")) => Some(Kind::Member),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_at_the_cursor_is_known_by_the_argument_that_stands_there() {
        let read = |line: &str| begun(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let check = |line: &str, kind: Option<Kind>, word: &str| {
            let begun = read(line);
            assert_eq!((begun.kind, begun.word.as_str()), (kind, word), "{line}");
        };
        check("sessions show s_", Some(Kind::Session), "s_");
        check("sessions show ", Some(Kind::Session), "");
        check("resume -q la", Some(Kind::Session), "la");
        check("sessions prune s_a s_b", Some(Kind::Session), "s_b");
        check("tasks list --run s_", Some(Kind::Session), "s_");
        check("tasks list --session s_", Some(Kind::Session), "s_");
        check("sessions show s_", Some(Kind::Session), "s_");
        check("tasks list --run=s_", Some(Kind::Session), "s_");
        check("tasks list --run = s_", Some(Kind::Session), "s_");
        check("tasks list --run =", Some(Kind::Session), "");
        check("workflow run re", Some(Kind::Workflow), "re");
        check("workflow show re", Some(Kind::Workflow), "re");
        check("run --model cla", Some(Kind::Model), "cla");
        check("-m cla", Some(Kind::Model), "cla");
        check("run --worker-model cla", Some(Kind::Model), "cla");
        check("team show al", Some(Kind::Member), "al");
        check("mail send --run s_a al", Some(Kind::Member), "al");
        check("team host s_a --only al", Some(Kind::Member), "al");
        check("runs sh", None, "sh");
        check("sessions show --re", None, "--re");
        check("run review the co", None, "co");
        check("tasks claim t_a --as al", None, "al");
        check("doc", None, "doc");
        let begun = read("-C /there --journal=/j.db mail send --run s_a al");
        let said = |text: &Option<String>| text.clone().unwrap_or_default();
        assert_eq!(
            [said(&begun.dir), said(&begun.journal), said(&begun.session)],
            ["/there", "/j.db", "s_a"]
        );
        assert_eq!(super::begun(&[]), Begun::default());
    }
}
