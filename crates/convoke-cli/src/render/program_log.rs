//! What is said of programs' runs in lines that stay: what the programs themselves say, what failed, and how
//! they end; and where there is no moving picture also which phase begins. Pure; it prints nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use convoke_kernel::{
    CallState, FailureKind, ItemStatus, Program, ProgramEvent, ProgramSaid, ProgramStatus, RunId,
};

use super::kind_word;
use convoke_view::flat;

/// More lines of one program than this are in its record alone.
const MOST_LINES: usize = 500;
/// How much of a line is shown.
const MOST_CHARS: usize = 300;

/// A line about a program's run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogLine {
    pub(super) line: String,
    /// Whether it is also said where a moving picture shows the rest.
    pub(super) stays: bool,
}

/// Tells of programs' runs.
#[derive(Debug, Default)]
pub(super) struct ProgramLog(HashMap<RunId, RunFacts>);

#[derive(Debug, Default)]
struct RunFacts {
    name: String,
    background: bool,
    /// What calls are called, by number, and whether agents do them.
    calls: BTreeMap<u32, (String, bool)>,
    phases: BTreeSet<String>,
    lines: usize,
    failed: u32,
    ok: u32,
    served: u32,
    /// What connections came to that failed, as it was told.
    unreached: BTreeSet<String>,
}

impl ProgramLog {
    /// One that knows of runs that began before this process did.
    pub(super) fn knowing(programs: &[Program]) -> Self {
        let mut tales = HashMap::new();
        for program in programs {
            let Some(spec) = program.spec() else { continue };
            let Ok(run) = spec.run.parse() else { continue };
            let named =
                |call: &CallState| (call.made.call, (call.made.label.clone(), call.made.kind.is_agents()));
            let calls = program.calls().map(named).collect();
            let phases = program.calls().filter_map(|call| call.made.phase.clone()).collect();
            let counts = program.counts();
            let ok = counts.ok;
            let failed = counts.failed;
            let served = counts.reused;
            let name = flat(&spec.name, 40).0;
            let background = spec.background;
            let unreached = BTreeSet::new();
            tales.insert(
                run,
                RunFacts { name, background, calls, phases, lines: 0, failed, ok, served, unreached },
            );
        }
        Self(tales)
    }

    /// What there is to say about this event.
    pub(super) fn heard(&mut self, run: &RunId, event: &ProgramEvent) -> Vec<LogLine> {
        let tale = self.0.entry(run.clone()).or_default();
        tale.heard(event)
    }
}

impl RunFacts {
    fn told(&self, text: &str, stays: bool) -> LogLine {
        let name = if self.name.is_empty() { "workflow" } else { &self.name };
        LogLine { line: format!("[{name}] {}", flat(text, MOST_CHARS).0), stays }
    }

    fn heard(&mut self, event: &ProgramEvent) -> Vec<LogLine> {
        match event {
            ProgramEvent::ProgramStarted(e) => {
                (self.name, self.background) = (flat(&e.spec.name, 40).0, e.spec.background);
                Vec::new()
            }
            ProgramEvent::PassBegan(e) => {
                let name = std::mem::take(&mut self.name);
                *self = Self { name, background: self.background, ..Self::default() };
                vec![self.told(&format!("pass {}: {}", e.pass, e.why), true)]
            }
            ProgramEvent::StepTaken(e) => {
                let mut told = Vec::new();
                for said in &e.said {
                    match said {
                        ProgramSaid::Phase(title) => told.extend(self.begins(title)),
                        ProgramSaid::Log(line) => told.extend(self.says(line)),
                    }
                }
                for made in &e.calls {
                    self.calls.insert(made.call, (made.label.clone(), made.kind.is_agents()));
                    let phase = match (&made.phase, &made.within) {
                        (Some(phase), Some(within)) => Some(format!("▸ {within}: {phase}")),
                        (phase, _) => phase.clone(),
                    };
                    told.extend(phase.and_then(|phase| self.begins(&phase)));
                }
                told
            }
            ProgramEvent::StepDeclined(e) => vec![self.told(&format!("declined: {}", e.reason), true)],
            ProgramEvent::CallEnded(e) => {
                let result = &e.result;
                let (label, agents) = self.calls.get(&e.call).cloned().unwrap_or_default();
                self.served += u32::from(result.reused.is_some() || result.kept.is_some());
                let why = match &result.status {
                    ItemStatus::Ok if result.degraded.is_none() => {
                        self.ok += u32::from(agents);
                        return Vec::new();
                    }
                    ItemStatus::Ok => format!("degraded: {}", result.degraded.as_deref().unwrap_or_default()),
                    ItemStatus::Failed { kind, message } => {
                        format!("failed ({}): {message}", kind_word(*kind))
                    }
                    ItemStatus::Skipped { reason } if result.by_person => format!("skipped: {reason}"),
                    ItemStatus::Skipped { reason } => format!("not done: {reason}"),
                };
                self.failed += u32::from(agents);
                // A server that cannot be reached fails all of them, and is told once.
                if let ItemStatus::Failed { kind: FailureKind::Transport, message } = &result.status
                    && !self.unreached.insert(message.clone())
                {
                    return Vec::new();
                }
                vec![self.told(&format!("call {} {label}: {why}", e.call), true)]
            }
            ProgramEvent::ProgramStopped(e) => vec![self.told(&format!("stopped by {}", e.by), true)],
            ProgramEvent::ProgramClosed(e) => vec![self.ended(e.status)],
        }
    }

    fn begins(&mut self, phase: &str) -> Option<LogLine> {
        self.phases.insert(phase.to_owned()).then(|| self.told(&format!("phase: {phase}"), false))
    }

    fn says(&mut self, line: &str) -> Option<LogLine> {
        self.lines += 1;
        match self.lines {
            lines if lines < MOST_LINES => Some(self.told(line, true)),
            MOST_LINES => Some(self.told("(what it says further is in its record)", true)),
            _ => None,
        }
    }

    fn ended(&self, status: ProgramStatus) -> LogLine {
        let parts = [(self.ok, "ok"), (self.failed, "lost"), (self.served, "served from before")];
        let said: Vec<String> =
            parts.iter().filter(|(many, _)| *many > 0).map(|(many, word)| format!("{many} {word}")).collect();
        let calls = if said.is_empty() { String::new() } else { format!(" · calls: {}", said.join(", ")) };
        // The report says what became of a person's own.
        self.told(&format!("{}{calls}", status.word()), self.background)
    }
}

#[cfg(test)]
mod tests {
    use convoke_kernel::{
        AgentId, CallAnswer, CallEnded, CallKind, CallResult, MadeCall, ProgramClosed, ProgramSpec,
        ProgramStarted, Segment, SessionId, StepTaken,
    };

    use super::*;

    fn made(call: u32, kind: CallKind, phase: &str) -> MadeCall {
        MadeCall {
            call,
            kind,
            label: format!("label {call}\u{1b}[2J"),
            phase: Some(phase.to_owned()),
            within: None,
            path: String::new(),
            key: String::new(),
            occurrence: 0,
            agents: 1,
            schema: None,
            attempt: 0,
            want: Segment::encode(&serde_json::Value::Null),
        }
    }

    fn ended(call: u32, status: ItemStatus) -> ProgramEvent {
        CallEnded { call, result: CallResult::bare(status, CallAnswer::null()), spent_total: 0 }.into()
    }

    fn started(background: bool) -> ProgramEvent {
        let spec = serde_json::json!({
            "run": "", "session": SessionId::from_bits([1; 10]), "lead": AgentId::from_bits([1; 10]), "call": "", "dir": "/", "base": "", "voters": 1,
            "name": "tidy", "description": "", "phases": [], "source": "", "digest": "", "background": background, "consent": "",
        });
        let spec: ProgramSpec = serde_json::from_value(spec).unwrap();
        ProgramStarted { spec }.into()
    }

    #[test]
    fn a_program_says_its_phases_its_lines_what_failed_and_its_end() {
        let run = RunId::derived(&["x"]);
        let calls = vec![
            made(1, CallKind::Agent, "One"),
            made(2, CallKind::Agent, "Two"),
            made(3, CallKind::Sh, "Two"),
        ];
        let said = vec![ProgramSaid::Phase("One".into()), ProgramSaid::Log("hello\nworld".into())];
        let failed = ItemStatus::Failed { kind: FailureKind::Api, message: "no".into() };
        let events = [
            started(false),
            StepTaken { fed: None, calls, cleared: Vec::new(), said, end: None }.into(),
            ended(1, ItemStatus::Ok),
            ended(3, ItemStatus::Ok),
            ended(2, failed),
            ProgramClosed { status: ProgramStatus::Partial }.into(),
        ];
        let mut program_log = ProgramLog::default();
        let told: Vec<(String, bool)> = events
            .iter()
            .flat_map(|event| program_log.heard(&run, event))
            .map(|told| (told.line, told.stays))
            .collect();
        let expected = [
            ("[tidy] phase: One", false),
            ("[tidy] hello world", true),
            ("[tidy] phase: Two", false),
            ("[tidy] call 2 label 2: failed (api): no", true),
            ("[tidy] partial · calls: 1 ok, 1 lost", false),
        ];
        assert_eq!(told, expected.map(|(line, stays)| (line.to_owned(), stays)));
    }

    #[test]
    fn a_server_that_cannot_be_reached_is_told_once_and_not_for_each_call() {
        let run = RunId::derived(&["x"]);
        let mut program_log = ProgramLog::default();
        program_log.heard(&run, &started(true));
        let calls = (1..=8).map(|call| made(call, CallKind::Agent, "One")).collect();
        program_log.heard(
            &run,
            &StepTaken { fed: None, calls, cleared: Vec::new(), said: Vec::new(), end: None }.into(),
        );
        let lost = || ItemStatus::Failed { kind: FailureKind::Transport, message: "cannot connect".into() };
        let told: usize = (1..=8).map(|call| program_log.heard(&run, &ended(call, lost())).len()).sum();
        let end = program_log.heard(&run, &ProgramClosed { status: ProgramStatus::Failed }.into());
        assert_eq!((told, end[0].line.as_str()), (1, "[tidy] failed · calls: 8 lost"));
    }

    #[test]
    fn a_program_that_says_too_much_is_not_listened_to_for_ever() {
        let run = RunId::derived(&["x"]);
        let mut program_log = ProgramLog::default();
        program_log.heard(&run, &started(true));
        let said = vec![ProgramSaid::Log("again".into()); MOST_LINES * 3];
        let step = StepTaken { fed: None, calls: Vec::new(), cleared: Vec::new(), said, end: None };
        assert_eq!(program_log.heard(&run, &step.into()).len(), MOST_LINES);
    }
}
