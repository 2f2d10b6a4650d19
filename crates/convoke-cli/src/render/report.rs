//! How a session ended: judged once, and told as the answer on stdout, the report on stderr, the object and
//! the report files. It never makes a failure look like an answer.

mod judge;
mod raise;

use convoke_kernel::{AgentId, Confinement, EndReason, EndStatus};
use convoke_runtime::{DriveOutcome, Error};
use convoke_view::{Used, clean, count, dollars, end_line, tokens};

use judge::{Case, Judged, judge_outcome};
pub(crate) use raise::raised;

use super::Progress;
use super::look::{Look, Talk, WIDE};
use super::question::{checkpoints, questions};
use crate::again::Naming;
use crate::args::EndArgs;
use crate::failure::{Exit, Failure};
use crate::keeping::Left;
use crate::lead::Exchange;
use crate::questions::Question;
use crate::report::{
    Agent, AgentStatus, Cache, Checkpoint, Confined, Failed, FollowUp, Form, GateReport, Lacked, LostItem,
    MENDED, ProgramReport, ReportFile, SCHEMA_VERSION, SessionReport, Spend, Tokens, Waits, enter_changes,
    json, text,
};
use crate::settings::{Caps, OutputFormat, switch_word};
use crate::shipped;
use crate::signals::Caught;
use crate::stdio::{self, tell};
use crate::work::Work;

/// Everything that is known when driving has ended.
pub(crate) struct End {
    pub(crate) agent: AgentId,
    pub(crate) result: Result<DriveOutcome, Error>,
    pub(crate) caught: Option<Caught>,
    pub(crate) progress: Progress,
    pub(crate) ended_at: u64,
    pub(crate) warnings: Vec<String>,
    /// What a resume has to say about the journal.
    pub(crate) journal: Naming,
    /// What was asked for.
    pub(crate) asked: Asked,
    /// What was said to the lead and what came of it, as far as that could be read.
    pub(crate) exchanges: Vec<Exchange>,
    /// What the agents below the lead did.
    pub(crate) work: Work,
    /// The calls that wait for a person.
    pub(crate) questions: Vec<Question>,
    /// What it left behind in files.
    pub(crate) left: Left,
    /// What the caller wants of the end.
    pub(crate) wanted: EndArgs,
}

/// What was asked for, as far as the events of the lead do not say it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) task: String,
    pub(crate) dir: String,
    pub(crate) effort: Option<String>,
    /// Whether orchestration mode was on for the task.
    pub(crate) mode: Option<bool>,
    pub(crate) caps: Caps,
    /// What held the commands; `None` where that is not known.
    pub(crate) confinement: Option<Confinement>,
}

/// How a session ended.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) exit: Exit,
    told: SessionReport,
    files: Vec<ReportFile>,
    /// What going on takes: `resume`, or what a person is to do first.
    how: &'static str,
    /// The first of the answers that are put on stdout: those before it were put there when they came.
    newest: usize,
    /// The command that shows the whole report, once there is an end to report on.
    shows: Option<String>,
}

impl Report {
    /// Judges how a session ended.
    pub(crate) fn new(end: End) -> Self {
        let End {
            agent,
            mut result,
            caught,
            mut progress,
            ended_at,
            mut warnings,
            journal,
            asked,
            mut exchanges,
            ..
        } = end;
        let work = end.work;
        let questions = end.questions;
        let left = end.left;
        let wanted = end.wanted;
        // What came back and could not be recorded is paid for all the same.
        let summary = match &result {
            Ok(ended) => ended.summary.as_ref(),
            Err(Error::Unrecorded { summary, .. }) => summary.as_deref(),
            Err(_) => None,
        };
        if let Some(summary) = summary {
            progress = Progress::from_summary(summary);
        }
        // Work that was tried again is no question of the person's: what the lead says to it is in the place
        // of its answer to the task.
        let retried = exchanges.last().is_some_and(Exchange::is_retry);
        exchanges.retain(|exchange| !exchange.is_retry());
        if let (true, Ok(DriveOutcome { outcome: Some(outcome), .. })) = (retried, &mut result)
            && let Some(answered) = exchanges.iter().rev().find_map(|exchange| exchange.outcome.clone())
        {
            *outcome = answered;
        }
        let undone = result.as_ref().map(|ended| ended.left.clone()).unwrap_or_default();
        let can_go_on = match &result {
            Ok(ended) if !ended.left.is_empty() => true,
            Ok(ended) => {
                ended.outcome.is_none() || ended.summary.as_ref().is_some_and(|summary| summary.can_go_on)
            }
            // Whatever went wrong here is not in the journal, so going on is worth a try.
            Err(_) => true,
        };
        let run = progress.session.as_ref().map_or(agent.as_str(), |session| session.as_str()).to_owned();
        let programs: Vec<ProgramReport> =
            work.programs.iter().filter_map(|program| ProgramReport::of(program, &journal, &run)).collect();
        // A person's call is judged by itself: what an earlier one came to, such as that of a script that was
        // edited since, is past.
        let call = exchanges.last().and_then(|exchange| exchange.called(&agent));
        if call.is_some() {
            exchanges.drain(..exchanges.len() - 1);
        }
        let own = call.as_ref().map(|run| programs.iter().find(|program| program.run == run.as_str()));
        let mode = exchanges.first().and_then(|exchange| exchange.mode).or(asked.mode);
        let lacked = match (own, mode) {
            (Some(_), _) => Lacked::Verify,
            (None, Some(false)) => Lacked::Mode,
            (None, _) => Lacked::Workflow,
        };
        let gate = wanted.fail_on.map(|level| GateReport::of(level, &work.findings, work.sight, lacked));
        let case = Case {
            result: &result,
            caught,
            questions: questions.len(),
            exchanges: &exchanges,
            own,
            programs: &programs,
            losses: &work.losses,
            undone: &undone,
            gate: gate.as_ref(),
        };
        let lead = lead(&agent, &case.judge_lead(), &progress);
        let Judged { ending, answer, failure } = case.judge();
        let status = ending.status;
        let exit = Exit::of(ending);
        let reason = ending.reason.word().to_owned();
        let own = own.flatten();
        let value = own.and_then(|program| program.value.clone());
        let resumes = can_go_on || work.losses.can_go_on();
        let resume = journal.resume(&run).filter(|_| resumes && status != EndStatus::Done);
        let raise = match (exit, &work.spend, own) {
            (Exit::Budget, Some(spend), Some(own)) => raised(std::slice::from_ref(own), &[], spend),
            (Exit::Budget, Some(spend), None) => {
                // What the lead itself lacked. Any other sentence says again what the programs and the losses
                // say.
                let own = failure.as_deref().filter(|_| matches!(ending.reason, EndReason::Failure(_)));
                let said: Vec<&str> = work.losses.want_of_room().chain(own).collect();
                raised(&programs, &said, spend)
            }
            _ => String::new(),
        };
        let mends = exit == Exit::Failed && own.is_some_and(ProgramReport::wants_mending);
        // A shipped workflow that throws was given the wrong arguments: nothing of it is to be mended.
        let given = own.filter(|own| mends && shipped::has(&own.digest)).map(|own| own.name.clone());
        let mends = mends && given.is_none();
        let resume = resume.map(|resume| match &given {
            Some(name) => format!("convoke workflow run {name} --args ARGS"),
            None => resume + if mends { MENDED } else { &raise },
        });
        let how = match (given.is_some(), mends) {
            (true, _) => "run it again with other arguments",
            (false, true) => "mend the script, then",
            (false, false) => "resume",
        };
        warnings.extend(work.losses.warnings());
        let why = case.reason().word().to_owned();
        let failure = failure.map(|message| Failed { kind: why, message });
        let lost: Vec<LostItem> = work.losses.lost.iter().map(LostItem::from).collect();
        let newest = newest(&exchanges);
        let follow_ups: Vec<FollowUp> = exchanges.iter().skip(1).map(follow_up).collect();
        let task = exchanges.first().map(|task| FollowUp { answer: answer.clone(), ..follow_up(task) });
        let answers = task.into_iter().chain(follow_ups.iter().cloned()).collect();
        let used = all(&progress, &work.below);
        let spend =
            work.spend.unwrap_or_else(|| own_spend(&used, &work, asked.caps, ended_at, progress.started_at));
        let mut agents: Vec<Agent> = std::iter::once(lead).chain(work.agents).collect();
        enter_changes(&left.changed, &mut agents);
        let told = SessionReport {
            schema_version: SCHEMA_VERSION,
            run: progress.session.as_ref().map(|session| session.as_str().to_owned()),
            agent: agent.as_str().to_owned(),
            model: progress.model.clone(),
            effort: asked.effort,
            mode: mode.map(switch_word),
            dir: asked.dir,
            confinement: asked.confinement.map(Confined::from),
            task: exchanges.into_iter().next().map_or(asked.task, |exchange| exchange.text),
            status: status.word(),
            exit_code: exit as u8,
            exit_reason: reason,
            gate,
            answer,
            answers,
            value,
            failure,
            programs,
            follow_ups,
            findings: work.findings,
            agents,
            skipped: work.skipped,
            lost,
            undo: journal
                .command(&format!("sessions undo {run}"))
                .filter(|_| !left.changed.is_empty() || left.later.iter().any(|one| one.kept)),
            apply: left.apply(&run).and_then(|words| journal.command(&words)),
            changed: left.changed,
            runs_later: left.later,
            worktrees: left.trees,
            notes: work.notes.into_iter().chain(undone.iter().map(|left| format!("left: {left}"))).collect(),
            usage: Tokens::from(used.usage),
            cost_usd: used.cost_nano.map(|nano| nano as f64 / 1e9),
            cost_nano: used.cost_nano,
            turns: used.turns,
            commands: used.commands,
            spend,
            cache: work.cache.unwrap_or_else(|| own_cache(&progress)),
            started_at: progress.started_at,
            ended_at,
            resume,
            questions: questions.into_iter().map(|question| told(question, &journal, &run)).collect(),
            warnings,
        };
        let has_ended = ![EndStatus::Interrupted, EndStatus::Waiting].contains(&status);
        let shows = journal.command(&format!("sessions show {run} --report")).filter(|_| has_ended);
        Self { exit, told, files: wanted.report, how, newest, shows }
    }

    /// Writes the report files, puts the answer or the data on stdout and the rest on stderr. A file that
    /// cannot be written costs neither the answer nor the exit code.
    pub(crate) fn print(&mut self, look: Look) -> Result<Exit, Failure> {
        let unwritten: Vec<String> =
            self.files.iter().filter_map(|file| file.write(&self.told).err()).collect();
        for warning in &unwritten {
            tell(&look.fit(&format!("warning: {}\n", clean(warning))));
        }
        self.told.warnings.extend(unwritten);
        let answers = self.answers();
        let out = match look.output {
            OutputFormat::Text if answers.trim().is_empty() => String::new(),
            // Data of a program is no Markdown.
            OutputFormat::Text if look.answer_on_terminal && self.is_data() => ended(clean(&answers)),
            OutputFormat::Text if look.sets_answer() => ended(look.rendered(&answers)),
            OutputFormat::Text => ended(answers),
            OutputFormat::Json => ended(json(&self.told).to_string()),
            OutputFormat::Jsonl => ended(end_line(json(&self.told))),
        };
        // On a terminal the answer stands among the talk, so it gets some room.
        let room = look.talk == Talk::Live && look.answer_on_terminal && !out.is_empty();
        let talk = if room { format!("\n{}", self.talk(look)) } else { self.talk(look) };
        if room {
            tell("\n");
        }
        let written = match look.output {
            OutputFormat::Text => stdio::put_more(&out),
            OutputFormat::Json | OutputFormat::Jsonl => stdio::put_json(&out),
        };
        tell(&talk);
        // A reader that has gone away has read enough.
        let in_journal = || {
            format!("what the session came to is in the journal: `convoke sessions show {}`", self.session())
        };
        written.map(|_| self.exit).map_err(|failure| failure.hint(in_journal()))
    }

    fn session(&self) -> &str {
        self.told.run.as_deref().unwrap_or(&self.told.agent)
    }

    /// Puts the whole report on stdout: set for a terminal, else as Markdown; or as data.
    pub(crate) fn show(&self, look: Look) -> Result<(), Failure> {
        let markdown = Form::Markdown.render(&self.told);
        match look.output {
            OutputFormat::Text if look.sets_answer() => stdio::put(&look.rendered(&markdown)),
            OutputFormat::Text => stdio::put(&markdown),
            OutputFormat::Json => stdio::put_json(&format!("{:#}\n", json(&self.told))).map(|_| ()),
            OutputFormat::Jsonl => stdio::put_json(&format!("{}\n", json(&self.told))).map(|_| ()),
        }
    }

    fn is_data(&self) -> bool {
        self.told.value.as_ref().is_some_and(|value| !value.is_string())
    }

    /// Where the whole report is: in the files that were asked for, or in the journal.
    fn whole(&self) -> Option<String> {
        let files: Vec<String> = self.files.iter().map(|file| file.path().display().to_string()).collect();
        if files.is_empty() { self.shows.clone() } else { Some(files.join(", ")) }
    }

    /// The newest answer: that to the task and to what was given to follow it, or to what was said last. With
    /// some room between several.
    fn answers(&self) -> String {
        let later = self.told.follow_ups.iter().map(|follow_up| follow_up.answer.as_str());
        let said: Vec<&str> = std::iter::once(self.told.answer.as_str())
            .chain(later)
            .skip(self.newest)
            .filter(|text| !text.trim().is_empty())
            .collect();
        match said.as_slice() {
            [one] => (*one).to_owned(),
            several => several.iter().map(|text| text.trim_end()).collect::<Vec<_>>().join("\n\n"),
        }
    }

    fn talk(&self, look: Look) -> String {
        let mut lines = String::new();
        if let Some(failure) = &self.told.failure {
            lines.push_str(&ended(look.fit(&format!("convoke: {}", clean(&failure.message).trim_end()))));
        }
        lines.push_str(&questions(&self.told.questions, look.width().unwrap_or(WIDE)));
        let asked: Vec<&Checkpoint> =
            self.told.programs.iter().flat_map(|program| &program.questions).collect();
        lines.push_str(&checkpoints(&asked, look.width().unwrap_or(WIDE)));
        if look.talk != Talk::Quiet {
            lines.push_str(&text(&self.told, look, look.width().unwrap_or(WIDE), self.whole().as_deref()));
            lines.push_str(&ended(look.dim(&look.fit(&self.summary()))));
        }
        if let (Some(resume), true) = (&self.told.resume, self.told.questions.is_empty() && asked.is_empty())
        {
            lines.push_str(&ended(format!("{}: {resume}", self.how)));
        }
        // Last, so that the end of a log says why the build is red.
        if let Some(failed) =
            self.told.gate.as_ref().filter(|_| self.exit == Exit::Finding).and_then(GateReport::failed)
        {
            lines.push_str(&ended(look.fit(&clean(&failed))));
        }
        lines
    }

    fn summary(&self) -> String {
        let told = &self.told;
        let usage = &told.usage;
        let model = &told.model;
        let status = match &told.failure {
            Some(failure)
                if ![EndStatus::Interrupted.word(), EndStatus::Waiting.word()].contains(&told.status) =>
            {
                format!("{} ({})", told.status, failure.kind)
            }
            _ => told.status.to_owned(),
        };
        let turns = count(told.turns, "turn");
        let commands = count(told.commands, "command");
        let written = usage.cache_write_5m_tokens + usage.cache_write_1h_tokens;
        let read = tokens(usage.input_tokens + usage.cache_read_tokens + written);
        let cached = tokens(usage.cache_read_tokens);
        let written = tokens(usage.output_tokens);
        let cap = told.spend.cap_nano.map(|nano| format!(" of {}", dollars(Some(nano)))).unwrap_or_default();
        let unconfirmed = match told.spend.unconfirmed_nano {
            0 => String::new(),
            nano => format!(" and up to {} unconfirmed", dollars(Some(nano))),
        };
        let cost = format!("{}{cap}{unconfirmed}", dollars(told.spend.nano));
        let agents = match (told.spend.agents, told.spend.cap_agents) {
            (0, _) => String::new(),
            (agents, Some(cap)) => format!("{agents} of {} · ", count(cap, "agent")),
            (agents, None) => format!("{} · ", count(agents, "agent")),
        };
        format!(
            "{status} · {model} · {agents}{turns} · {commands} · {read} tokens in ({cached} from cache), \
                {written} out · {cost} · {}",
            self.session()
        )
    }
}

/// A question as the report has it, with the commands that answer it.
fn told(question: Question, journal: &Naming, run: &str) -> Waits {
    let command = |flag: &str| journal.resume(run).map(|resume| format!("{resume} {flag} {}", question.id));
    let allow = command("--allow");
    let deny = command("--deny");
    let Question { id, agent, label, wanted, why, since, .. } = question;
    Waits { id, agent: agent.to_string(), label, wanted, why, since: Some(since), allow, deny, answer: None }
}

/// The first of the exchanges that end with this one: what was said by itself, or the task with what was to
/// follow it. A task that was asked again begins anew.
fn newest(exchanges: &[Exchange]) -> usize {
    match exchanges.first() {
        Some(task) if task.is_asked_again() => 0,
        _ => exchanges.iter().rposition(|exchange| !exchange.is_follow_up()).unwrap_or(0),
    }
}

fn follow_up(exchange: &Exchange) -> FollowUp {
    let (status, answer) = match &exchange.outcome {
        None => (EndStatus::Interrupted, String::new()),
        Some(outcome) => (judge_outcome(outcome), outcome.text().to_owned()),
    };
    FollowUp {
        text: exchange.text.clone(),
        mode: exchange.mode.map(switch_word),
        status: status.word(),
        answer,
    }
}

/// The lead's row: how it ended itself, whatever became of the others.
fn lead(agent: &AgentId, Judged { ending, failure, .. }: &Judged, progress: &Progress) -> Agent {
    Agent {
        role: "lead",
        label: String::new(),
        agent: Some(agent.as_str().to_owned()),
        run: None,
        item: None,
        status: match ending.status {
            EndStatus::Done => AgentStatus::Ok,
            EndStatus::Partial | EndStatus::Failed => AgentStatus::Failed,
            EndStatus::Interrupted | EndStatus::Waiting => AgentStatus::Open,
        },
        failure: failure
            .as_ref()
            .map(|message| Failed { kind: ending.reason.word().to_owned(), message: message.clone() }),
        turns: progress.used.turns,
        commands: progress.used.commands,
        tokens: progress.used.tokens(),
        cost_nano: progress.used.cost_nano,
        changed: Vec::new(),
        reused: None,
    }
}

/// What the lead and all agents below it used.
fn all(progress: &Progress, below: &Used) -> Used {
    let mut used = progress.used;
    used.add(below);
    used
}

/// What agents spent in a session without a ledger.
fn own_spend(used: &Used, work: &Work, caps: Caps, ended_at: u64, started_at: u64) -> Spend {
    Spend {
        nano: used.cost_nano,
        cap_nano: caps.nano,
        tokens: used.tokens(),
        cap_tokens: caps.tokens,
        agents: u32::try_from(work.agents.len()).unwrap_or(u32::MAX),
        cap_agents: caps.agents,
        ms: ended_at.saturating_sub(started_at),
        cap_ms: caps.ms,
        unconfirmed_nano: 0,
        unconfirmed_tokens: 0,
    }
}

fn own_cache(progress: &Progress) -> Cache {
    let usage = &progress.used.usage;
    let written = usage.cache_write_5m_tokens.saturating_add(usage.cache_write_1h_tokens);
    Cache { read: usage.cache_read_tokens, written, fresh: usage.input_tokens, saved_nano: None }
}

fn ended(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
