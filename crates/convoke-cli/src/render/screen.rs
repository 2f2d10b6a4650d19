//! The thread that shows a session. It is a thread of its own because a terminal or a pipe may stand still
//! for as long as it likes, and neither the journal nor a heartbeat may wait for it.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use convoke_kernel::{AgentId, EndpointLearnt, Event};
use convoke_runtime::{Clock, Notice, Runtime, Watcher};
use convoke_view::{AgentsAtWork, Progress, SessionEvent, event_line};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::clean;
use super::flows::Flows;
use super::heard::heard;
use super::live::{Live, Shown, TerminalLock};
use super::look::{Look, Talk, terminal_size};
use super::program_log::ProgramLog;
use super::progress::under_way;
use super::team_log::TeamLog;
use crate::open::DRAIN;
use crate::settings::OutputFormat;
use crate::signals::Caught;
use crate::stdio::{self, put_json};

/// How long a signal may go unanswered.
const LATE: Duration = Duration::from_secs(1);

/// What the screen is told beside the session's notices.
#[derive(Debug)]
pub(crate) enum Message {
    /// A line to show for good.
    Line(String),
    /// The session was asked to stop, softly; the signal's name.
    Stopping(&'static str),
    /// Nothing comes any more.
    Close,
}

/// The handle of the showing thread.
pub(crate) struct Screen {
    watcher: Watcher,
    messages: UnboundedSender<Message>,
    thread: JoinHandle<Progress>,
}

impl Screen {
    /// Starts to show a session whose lead stands here.
    pub(crate) async fn start(
        look: Look,
        terminal: TerminalLock,
        runtime: &Runtime,
        clock: Clock,
        lead: AgentId,
        progress: Progress,
    ) -> Self {
        let (work, program_log) = known(runtime, &lead, &progress).await;
        Self::begin(look, terminal, clock, Shown { lead, progress, work }, program_log)
    }

    /// Starts to show a session of which nothing is known: everything about it is sent as notices, from its
    /// beginning.
    pub(crate) fn watching(
        look: Look,
        terminal: TerminalLock,
        clock: Clock,
        lead: AgentId,
        model: &str,
    ) -> Self {
        let progress = Progress::new(model);
        let work = AgentsAtWork::new(lead.clone());
        Self::begin(look, terminal, clock, Shown { lead, progress, work }, ProgramLog::default())
    }

    fn begin(
        look: Look,
        terminal: TerminalLock,
        clock: Clock,
        shown: Shown,
        program_log: ProgramLog,
    ) -> Self {
        let (watcher, notices) = unbounded_channel();
        let (messages, told) = unbounded_channel();
        let handle = Handle::current();
        let thread = std::thread::spawn(move || {
            let live = Live::new(stdio::Talk, look, terminal, terminal_size, shown, Instant::now());
            let signalled = None;
            let draining = false;
            let flows = Flows::default();
            let team_log = TeamLog::default();
            Shower { live, look, clock, handle, signalled, draining, flows, program_log, team_log }
                .show(notices, told)
        });
        Self { watcher, messages, thread }
    }

    /// Where a session sends its notices.
    pub(crate) fn watcher(&self) -> Watcher {
        self.watcher.clone()
    }

    /// Where the rest of the program sends its messages.
    pub(crate) fn messages(&self) -> UnboundedSender<Message> {
        self.messages.clone()
    }

    /// Shows what is still to be shown, and hands back where the session stands.
    pub(crate) async fn close(self) -> Option<Progress> {
        // If the thread is gone, joining it says so.
        let _ = self.messages.send(Message::Close);
        let thread = self.thread;
        tokio::task::spawn_blocking(move || thread.join().ok()).await.ok().flatten()
    }
}

/// The agents and programs of the session so far. A journal that cannot be read now says so where that
/// matters.
async fn known(runtime: &Runtime, lead: &AgentId, progress: &Progress) -> (AgentsAtWork, ProgramLog) {
    let nobody = || (AgentsAtWork::new(lead.clone()), ProgramLog::default());
    let Some(session) = &progress.session else { return nobody() };
    let agents = runtime.agents(session).await;
    let runs = runtime.runs(session).await;
    match (agents, runs, runtime.programs(session).await, runtime.ledger(session).await) {
        (Ok(agents), Ok(runs), Ok(programs), Ok(ledger)) => {
            let program_log = ProgramLog::knowing(&programs);
            (AgentsAtWork::known(lead.clone(), &agents, runs, programs, ledger), program_log)
        }
        _ => nobody(),
    }
}

struct Shower {
    live: Live<stdio::Talk>,
    look: Look,
    clock: Clock,
    handle: Handle,
    /// A signal that the session has not answered yet.
    signalled: Option<(&'static str, Instant)>,
    /// What is said of workflows where there is no moving picture.
    flows: Flows,
    /// What is said of programs.
    program_log: ProgramLog,
    /// What is said of a team.
    team_log: TeamLog,
    /// Whether it has been said that nothing new starts.
    draining: bool,
}

enum Next {
    Notice(Notice),
    Message(Message),
    Time,
}

impl Shower {
    fn show(
        mut self,
        mut notices: UnboundedReceiver<Notice>,
        mut messages: UnboundedReceiver<Message>,
    ) -> Progress {
        loop {
            let pause = self.live.pause();
            let handle = self.handle.clone();
            let next = handle.block_on(async {
                tokio::select! {
                    // What was sent first is heard first: a signal is announced before the session answers
                    // it.
                    biased;
                    Some(message) = messages.recv() => Next::Message(message),
                    Some(notice) = notices.recv() => Next::Notice(notice),
                    () = tokio::time::sleep(pause) => Next::Time,
                }
            });
            match next {
                Next::Notice(notice) => self.notice(notice),
                Next::Message(Message::Line(line)) => self.live.line(&line),
                Next::Message(Message::Stopping(signal)) => self.signalled = Some((signal, Instant::now())),
                Next::Message(Message::Close) => break,
                Next::Time => {}
            }
            self.answer_late();
            self.live.tick(Instant::now(), self.clock.now());
        }
        while let Ok(notice) = notices.try_recv() {
            self.notice(notice);
        }
        self.live.close();
        self.live.progress
    }

    fn notice(&mut self, notice: Notice) {
        match &notice {
            Notice::Controlled { control } => {
                self.signalled = Some((Caught::from(*control).name(), Instant::now()));
            }
            Notice::Waiting { .. } => {
                wait_line(&notice).iter().for_each(|line| self.live.say(line));
            }
            Notice::StoreAway { .. } | Notice::StoreBack { .. } => {
                wait_line(&notice).iter().for_each(|line| self.live.line(&self.look.fit(line)));
            }
            _ => {}
        }
        let line = self.line(&notice);
        if let Some(heard) = heard(notice) {
            self.hear(heard);
        }
        if let Some(line) = line {
            // A reader that has gone away is no reason to stop a run that is paid for.
            let _ = put_json(&line);
        }
    }

    fn hear(&mut self, heard: SessionEvent) {
        match heard {
            SessionEvent::Agent { agent, at, event, .. } => {
                self.live.recorded(&agent, at, &event);
                if let Event::EndpointLearnt(learnt) = &*event {
                    self.learnt(learnt);
                }
            }
            SessionEvent::Run { run, at, event, .. } => {
                self.live.run(run.as_str(), at, &event);
                let said = self.flows.heard(&run, &event, at, self.live.work.run_of(&run));
                for line in said.iter().filter(|_| self.look.talk == Talk::Sparse) {
                    self.live.line(line);
                }
            }
            SessionEvent::Program { run, at, event, .. } => {
                for said in self.program_log.heard(&run, &event) {
                    if self.look.talk == Talk::Sparse || said.stays {
                        self.live.say(&said.line);
                    }
                }
                self.live.program(run.as_str(), at, &event);
            }
            SessionEvent::Roster { event, .. } => self.say(TeamLog::roster(&event)),
            SessionEvent::Board { event, .. } => {
                let said = self.team_log.board(&event);
                self.say(said);
            }
            SessionEvent::Ledger(ledger) => self.live.ledger(ledger),
            SessionEvent::Held(hold) => self.live.held(hold),
            SessionEvent::Live { agent, piece } => self.live.piece(&agent, &piece),
            SessionEvent::Draining => self.draining(),
        }
    }

    fn say(&mut self, line: Option<String>) {
        line.iter().for_each(|line| self.live.say(line));
    }

    /// An event as a line of its own, if that is the output.
    fn line(&self, notice: &Notice) -> Option<String> {
        if self.look.output != OutputFormat::Jsonl {
            return None;
        }
        let line = match notice {
            Notice::Recorded { agent, seq, at, event } => {
                event_line(agent.as_str(), *seq, *at, &event.encode().ok()?)
            }
            Notice::Run { run, seq, at, event } => event_line(run.as_str(), *seq, *at, &event.encode().ok()?),
            Notice::Program { run, seq, at, event } => {
                event_line(run.as_str(), *seq, *at, &event.encode().ok()?)
            }
            Notice::Team { stream, seq, at, event } => event_line(stream, *seq, *at, &event.encode().ok()?),
            _ => return None,
        };
        Some(line + "\n")
    }

    /// Says what was found out about the server, once however many agents find it out.
    fn learnt(&mut self, learnt: &EndpointLearnt) {
        let said = learnt.line().filter(|line| !self.live.progress.lessons.contains(line));
        if let Some(line) = said {
            self.live.line(&self.look.fit(&format!("warning: {}", clean(&line))));
            self.live.progress.lessons.push(line);
        }
    }

    /// Says what is waited for once the session has said that nothing new starts, and not before: until then
    /// it might. Every agent says so; a person hears it once.
    fn draining(&mut self) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        let signal = self.signalled.take().map_or("stopping", |(signal, _)| signal);
        self.live.work.drains();
        let agents = self.live.work.running();
        let waits = match (agents, under_way(&self.live.progress)) {
            (1, _) => format!("waiting up to {} s for the agent at work", DRAIN.as_secs()),
            (2.., _) => format!("waiting up to {} s for what {agents} agents are doing", DRAIN.as_secs()),
            (0, Some(what)) => format!("waiting up to {} s for {what}", DRAIN.as_secs()),
            (0, None) => "leaving".to_owned(),
        };
        let line = format!(
            "{signal}: nothing new starts, {waits}; a second signal cuts it off, a third leaves at once"
        );
        self.live.line(&self.look.fit(&line));
    }

    /// A person whose signal seems to have no effect is told that it has been heard.
    fn answer_late(&mut self) {
        if let Some((signal, _)) = self.signalled.take_if(|(_, since)| since.elapsed() >= LATE) {
            let line = format!(
                "{signal}: stopping as soon as the journal has answered; a third signal leaves at once"
            );
            self.live.line(&self.look.fit(&line));
        }
    }
}

/// Says that a command waits, and for which agent and process.
fn waiting(agent: Option<&str>, pid: Option<u32>) -> String {
    let whose = agent.map_or_else(|| "another agent".to_owned(), str::to_owned);
    let process = pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
    format!(
        "[wait] a command waits: one of {whose} in {process} is under way in this directory; if that \
         process is gone or stands still past its lease, this one goes on without it"
    )
}

/// What a person is told of a command that waits for its turn, and of a store that is away or back; `None`
/// for everything else.
pub(crate) fn wait_line(notice: &Notice) -> Option<String> {
    match notice {
        Notice::Waiting { agent, pid } => Some(waiting(agent.as_ref().map(AgentId::as_str), *pid)),
        Notice::StoreAway { reason, seconds } => {
            Some(format!("the journal does not answer ({reason}), trying again; {seconds} s"))
        }
        Notice::StoreBack { seconds } => Some(format!("the journal answers again after {seconds} s")),
        _ => None,
    }
}
