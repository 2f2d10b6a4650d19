//! The questions of workflow programs that wait for a person, named by ids that a person can type, and what a
//! person says to them. It only reads; the process that drives the session receives the answers.

use std::path::Path;

use convoke_journal::{Filter, Journal, StreamId};
use convoke_kernel::{CallKind, Program, ProgramEvent, ProgramSummary, RunId, SessionId};
use serde_json::Value;

use crate::again::Naming;
use crate::args::AnswerArgs;
use crate::failure::Failure;
use crate::named::read_text;
use crate::render::{first_line, hanging, revealed};
use crate::settings::Settings;

/// A program and when each of its calls was made.
#[derive(Debug)]
pub(crate) struct ProgramRead {
    pub(crate) run: RunId,
    pub(crate) program: Program,
    made_at: Vec<u64>,
    /// The keys of what was said to it and not heard yet.
    said: Vec<String>,
}

/// A call of a program that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenCall {
    /// The name a person uses: `wf_…:3`.
    pub(crate) id: String,
    pub(crate) run: RunId,
    pub(crate) call: u32,
    pub(crate) kind: CallKind,
    /// What the program is called.
    pub(crate) program: String,
    /// The whole question, or what people call the call.
    pub(crate) text: String,
    /// When it was made.
    pub(crate) since: u64,
}

/// What a person says to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// The answer to its question.
    Text(String),
    /// The program is to do without it.
    Skip,
}

/// The programs of a session, in the order they were started.
pub(crate) async fn programs(journal: &Journal, session: &SessionId) -> Result<Vec<ProgramRead>, Failure> {
    let filter = Filter { prefix: Some(RunId::PREFIX.to_owned()), limit: None };
    let mut programs = Vec::new();
    // Newest first in the listing.
    for listing in journal.list(&filter).await?.into_iter().rev() {
        let summary = listing.summary.and_then(|text| serde_json::from_str::<ProgramSummary>(&text).ok());
        let ours = summary.is_some_and(|summary| summary.session == *session);
        if let (true, Ok(run)) = (ours, listing.stream.as_str().parse()) {
            programs.push(ProgramRead::read(journal, run).await?);
        }
    }
    Ok(programs)
}

/// The questions of a session's programs that have no answer yet.
pub(crate) async fn open(journal: &Journal, session: &SessionId) -> Result<Vec<OpenCall>, Failure> {
    let programs = programs(journal, session).await?;
    Ok(programs.iter().flat_map(ProgramRead::open).filter(|call| call.kind == CallKind::Checkpoint).collect())
}

impl ProgramRead {
    async fn read(journal: &Journal, run: RunId) -> Result<Self, Failure> {
        let stream = StreamId::new(run.as_str())?;
        let mut program = Program::new();
        let mut made_at = Vec::new();
        for record in journal.load(&stream, 0).await? {
            let bad =
                |why: String| Failure::failed(format!("event {} of {run} cannot be read: {why}", record.seq));
            let event = ProgramEvent::decode(&record.event).map_err(|error| bad(error.to_string()))?;
            program.apply(&event, record.at).map_err(|error| bad(error.to_string()))?;
            match event {
                ProgramEvent::StepTaken(step) => made_at.extend(step.calls.iter().map(|_| record.at)),
                // A new pass makes its calls anew.
                ProgramEvent::PassBegan(_) => made_at.clear(),
                _ => {}
            }
        }
        let said = journal.inputs(&stream).await?.into_iter().map(|input| input.key).collect();
        Ok(Self { run, program, made_at, said })
    }

    /// The calls that have not ended and have neither an answer nor a skip waiting.
    pub(crate) fn open(&self) -> Vec<OpenCall> {
        let answered = |call: u32| {
            let key = |word: &str| format!("{word}:{call}:");
            self.said.iter().any(|said| said.starts_with(&key("answer")) || said.starts_with(&key("skip")))
        };
        let pending = self.program.pending().into_iter().filter(|call| !answered(*call));
        pending.filter_map(|call| self.call(call)).collect()
    }

    fn call(&self, call: u32) -> Option<OpenCall> {
        let made = &self.program.call(call)?.made;
        let question = || {
            serde_json::from_str::<Value>(made.want.as_str()).ok()?["question"].as_str().map(str::to_owned)
        };
        Some(OpenCall {
            id: format!("{}:{call}", self.run),
            run: self.run.clone(),
            call,
            kind: made.kind,
            program: self.program.spec().map(|spec| spec.name.clone()).unwrap_or_default(),
            text: question().unwrap_or_else(|| made.label.clone()),
            since: (call as usize)
                .checked_sub(1)
                .and_then(|at| self.made_at.get(at))
                .copied()
                .unwrap_or_default(),
        })
    }

    /// Whether this names a call of the program that has ended.
    fn had(&self, given: &str) -> bool {
        let ended = |call: &convoke_kernel::CallState| call.result.is_some() || self.program.is_closed();
        self.program.calls().filter(|call| ended(call)).any(|call| is_named(given, &self.run, call.made.call))
    }
}

impl OpenCall {
    /// The call on one line.
    fn line(&self) -> String {
        format!("{}  {}: {}", self.id, self.kind.word(), first_line(&revealed(&self.text), 80))
    }

    /// The command that answers it, with a place for the text.
    pub(crate) fn answer(&self, naming: &Naming, session: &str) -> Option<String> {
        naming.resume(session).map(|resume| format!("{resume} --answer {}=TEXT", self.id))
    }

    /// The question as a person reads it, whole, and the command that answers it.
    pub(crate) fn told(&self, naming: &Naming, session: &str, width: usize) -> String {
        let head =
            format!("{}  the workflow \"{}\" asks:", self.id, first_line(&revealed(&self.program), 60));
        let mut text = format!("{}\n", hanging(&head, width, "  "));
        for line in revealed(&self.text).lines() {
            text.push_str(&format!("{}\n", hanging(&format!("  | {line}"), width, "  | ")));
        }
        if let Some(command) = self.answer(naming, session) {
            text.push_str(&format!("answer: {command}\n"));
        }
        text
    }
}

/// What a person says to which calls. An id that names no open call, or a call twice, is an error that lists
/// what is open; nothing is answered then.
pub(crate) async fn replies(
    settings: &Settings,
    journal: &Journal,
    session: &SessionId,
    args: &AnswerArgs,
) -> Result<Vec<(OpenCall, Said)>, Failure> {
    let mut said = Vec::new();
    for given in &args.answer {
        let Some((id, text)) = given.split_once('=') else {
            let what = format!("'{given}' is no answer; nothing was answered");
            return Err(Failure::usage(what).hint("write it as --answer ID=TEXT, or --answer ID=@FILE"));
        };
        said.push((id.trim().to_owned(), Said::Text(words(text, &settings.dir)?)));
    }
    said.extend(args.skip.iter().map(|id| (id.trim().to_owned(), Said::Skip)));
    if said.is_empty() {
        return Ok(Vec::new());
    }
    let programs = programs(journal, session).await?;
    let open: Vec<OpenCall> = programs.iter().flat_map(ProgramRead::open).collect();
    choose(&open, said).map_err(|mistake| {
        let Mistake { given, several } = mistake;
        let had = programs.iter().any(|told| told.had(&given));
        let what = match (several, had) {
            (true, _) => {
                format!("'{given}' fits several calls of {session}, or is given twice; nothing was answered")
            }
            (false, true) => format!("'{given}' of {session} has ended already; nothing was answered"),
            (false, false) => format!("'{given}' is no open question of {session}; nothing was answered"),
        };
        listing(Failure::usage(what), &open)
    })
}

/// The text of an answer: itself, or what is in a file.
fn words(text: &str, tree: &Path) -> Result<String, Failure> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let read = read_text(Path::new(path), tree).map_err(|error| {
        Failure::usage(format!("the answer in {path} cannot be read: {error}"))
            .hint("an answer that begins with @ names a file; put something before the @ to say it as it is")
    })?;
    Ok(read.strip_suffix('\n').map(str::to_owned).unwrap_or(read))
}

#[derive(Debug, PartialEq, Eq)]
struct Mistake {
    given: String,
    several: bool,
}

/// Which of the open calls are meant. Only a question can be answered in words.
fn choose(open: &[OpenCall], said: Vec<(String, Said)>) -> Result<Vec<(OpenCall, Said)>, Mistake> {
    let mut chosen: Vec<(OpenCall, Said)> = Vec::new();
    for (given, said) in said {
        let fits = |call: &&OpenCall| {
            let can = said == Said::Skip || call.kind == CallKind::Checkpoint;
            can && is_named(&given, &call.run, call.call)
        };
        let meant: Vec<&OpenCall> = open.iter().filter(fits).collect();
        match meant.as_slice() {
            [call] if !chosen.iter().any(|(other, _)| other.id == call.id) => {
                chosen.push(((*call).clone(), said))
            }
            [] => return Err(Mistake { given, several: false }),
            _ => return Err(Mistake { given, several: true }),
        }
    }
    Ok(chosen)
}

/// Whether what a person typed names this call: `RUN:CALL` with any beginning of the run's id, the call
/// alone, or the run alone.
fn is_named(given: &str, run: &RunId, call: u32) -> bool {
    let names_run = |given: &str| {
        let body = run.as_str().trim_start_matches(RunId::PREFIX).trim_start_matches('_');
        !given.is_empty() && (run.as_str().starts_with(given) || body.starts_with(given))
    };
    match given.split_once(':') {
        Some((prefix, number)) => names_run(prefix) && number.parse() == Ok(call),
        None => given.parse() == Ok(call) || (given.starts_with(RunId::PREFIX) && names_run(given)),
    }
}

/// Adds every open call to a failure, as advice.
fn listing(failure: Failure, open: &[OpenCall]) -> Failure {
    if open.is_empty() {
        return failure.hint("no question is open");
    }
    open.iter().fold(failure.hint("open:"), |failure, call| failure.hint(call.line()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(run: &str, call: u32, kind: CallKind) -> OpenCall {
        let run = RunId::derived(&[run]);
        let program = "p".to_owned();
        let text = "Go on?".to_owned();
        OpenCall { id: format!("{run}:{call}"), run, call, kind, program, text, since: 0 }
    }

    fn open() -> [OpenCall; 3] {
        [
            call("one", 2, CallKind::Checkpoint),
            call("one", 3, CallKind::Agent),
            call("two", 3, CallKind::Checkpoint),
        ]
    }

    #[track_caller]
    fn check(given: &str, said: Said, expected: Result<usize, bool>) {
        let open = open();
        let chosen = choose(&open, vec![(given.to_owned(), said)]).map(|chosen| chosen[0].0.clone());
        let expected =
            expected.map(|at| open[at].clone()).map_err(|several| Mistake { given: given.into(), several });
        assert_eq!(chosen, expected, "{given}");
    }

    #[test]
    fn a_question_is_named_by_its_run_and_call_or_by_the_call_alone_where_that_is_enough() {
        let text = || Said::Text("yes".into());
        let run = open()[2].run.to_string();
        check(&format!("{run}:3"), text(), Ok(2));
        check(&format!("{}:3", &run[..8]), text(), Ok(2));
        check(&format!("{}:3", &run[3..9]), text(), Ok(2));
        check("2", text(), Ok(0));
        check("3", text(), Ok(2));
        check(&run, text(), Ok(2));
    }

    #[test]
    fn what_fits_nothing_or_too_much_says_nothing_to_anybody() {
        check("4", Said::Text(String::new()), Err(false));
        check("", Said::Text(String::new()), Err(false));
        check("3", Said::Skip, Err(true));
        let twice = vec![("2".to_owned(), Said::Skip), ("2".to_owned(), Said::Text("x".into()))];
        assert_eq!(choose(&open(), twice), Err(Mistake { given: "2".into(), several: true }));
    }

    #[test]
    fn an_answer_is_its_words_or_a_file_without_the_last_line_break() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(words("a=b", dir.path()).unwrap(), "a=b");
        let file = dir.path().join("answer");
        std::fs::write(&file, "two\nlines\n").unwrap();
        assert_eq!(words(&format!("@{}", file.display()), dir.path()).unwrap(), "two\nlines");
        assert!(words("@/nowhere/at/all", dir.path()).unwrap_err().message.contains("/nowhere/at/all"));
    }
}
