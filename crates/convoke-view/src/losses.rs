//! What a session lost, as the one function that decides its end wants to know it: the list itself, and how
//! many of what.

use std::collections::HashMap;

use convoke_kernel::{
    AgentId, EndFacts, FailureKind, GateSight, Lost, LostWork, Program, ProgramEnd, ProgramStatus, Run,
    Summary, failed_programs, lost_calls, lost_items, standing,
};

/// What a program throws that goes on where the budget has no room: the kernel's words for a request, the
/// interpreter's for the program's own total.
const NO_ROOM: [&str; 2] = ["budget exhausted: ", "was not started: the budget of "];

/// Whether what a program threw says that the budget had no room.
pub fn is_want_of_room(thrown: &str) -> bool {
    NO_ROOM.iter().any(|words| thrown.contains(words))
}

/// What a session lost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    /// Everything, in the order of its workflows.
    pub lost: Vec<Lost>,
    /// Why the last fan-out was refused whole, if none was admitted since.
    pub refused: Option<String>,
    /// The runs of programs that threw because the budget had no room.
    pub thrown: Vec<String>,
    /// Programs of the lead's that failed, with none that completed later.
    pub programs_failed: u32,
    /// Results that are degraded, if every result is.
    pub degraded: u32,
    /// The runs of programs of which a step waits for a larger budget.
    pub declined: Vec<String>,
}

impl Losses {
    /// What a session with these agents, flat workflows and programs lost. `refused` says why its lead's last
    /// fan-out was refused whole.
    pub fn of<'a>(
        refused: Option<&str>,
        agents: impl IntoIterator<Item = (&'a AgentId, &'a Summary)>,
        runs: &[Run],
        programs: &[Program],
    ) -> Self {
        let failures: HashMap<&AgentId, FailureKind> =
            agents.into_iter().filter_map(|(agent, summary)| Some((agent, summary.failure?))).collect();
        let mut lost = lost_items(runs, |agent| failures.get(agent).copied());
        let standing = standing(programs);
        // Of a lead's program that failed the failure counts: it may have failed because of them, or they
        // because of it.
        let lists = |program: &&&Program| {
            let by_person = program.spec().is_some_and(|spec| !spec.background);
            program.status() == Some(ProgramStatus::Partial) || by_person
        };
        lost.extend(standing.iter().filter(lists).flat_map(|program| lost_calls(program)));
        let thrown = |program: &&&Program| match program.end() {
            Some(ProgramEnd::Failed { message, .. }) => is_want_of_room(message),
            _ => false,
        };
        let declined = |program: &&&Program| program.status().is_none() && program.declined().is_some();
        let id = |program: &&Program| program.spec().map(|spec| spec.run.clone());
        Self {
            lost,
            refused: refused.map(str::to_owned),
            thrown: standing.iter().filter(thrown).filter_map(id).collect(),
            programs_failed: failed_programs(programs),
            degraded: GateSight::of(runs, programs).all_degraded(),
            declined: standing.iter().filter(declined).filter_map(id).collect(),
        }
    }

    /// What of this was lost by the program that a person ran.
    pub fn of_own(&self, own: &str) -> Self {
        let only = |runs: &[String]| runs.iter().filter(|run| *run == own).cloned().collect();
        Self {
            lost: self.lost.iter().filter(|lost| lost.run == own).cloned().collect(),
            refused: None,
            thrown: only(&self.thrown),
            programs_failed: 0,
            degraded: 0,
            declined: only(&self.declined),
        }
    }

    /// Puts in what these say of how the session ended.
    pub fn enter(&self, facts: EndFacts) -> EndFacts {
        let short = count(self.lost.iter().filter(|lost| lost.is_short()));
        let lost = count(self.lost.iter()) - short;
        let refused = u32::from(self.refused.is_some());
        let declined = count(self.declined.iter());
        let short = short + count(self.thrown.iter());
        let programs_failed = self.programs_failed;
        EndFacts { refused, declined, short, lost, degraded: self.degraded, programs_failed, ..facts }
    }

    /// How many of this kind were lost for want of room, or for other reasons.
    pub fn number(&self, what: LostWork, short: bool) -> u32 {
        count(self.lost.iter().filter(|lost| lost.what == what && lost.is_short() == short))
    }

    /// Whether anything was left out for want of room.
    pub fn is_short(&self) -> bool {
        self.refused.is_some() || self.lost.iter().any(Lost::is_short)
    }

    /// What was said where there was no room.
    pub fn want_of_room(&self) -> impl Iterator<Item = &str> {
        let short = self.lost.iter().filter(|lost| lost.is_short()).map(|lost| lost.reason.as_str());
        self.refused.as_deref().into_iter().chain(short)
    }

    /// Whether a resume has something to do about it.
    pub fn can_go_on(&self) -> bool {
        self.refused.is_some() || self.lost.iter().any(|lost| lost.kind.is_worth_a_retry())
    }

    /// What a reader of the report must not overlook.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(why) = &self.refused {
            let why = why.strip_prefix("Workflow error: ").unwrap_or(why);
            warnings.push(format!("a fan-out was refused whole, and none was admitted later: {why}"));
        }
        let lost = count(self.lost.iter());
        if lost > 0 {
            let never = count(self.lost.iter().filter(|lost| !lost.kind.is_worth_a_retry()));
            let refused = match never {
                0 => String::new(),
                never => format!(" ({never} of them a model refused, and a retry would not mend that)"),
            };
            let items = if lost == 1 { "piece" } else { "pieces" };
            warnings.push(format!(
                "{lost} {items} of work lost{refused}; `lost` lists each with its agent and why"
            ));
        }
        warnings
    }

    /// What a resume tries again; what had no room only where there is `more` of it now.
    pub fn to_retry(&self, more: bool) -> impl Iterator<Item = &Lost> {
        self.lost.iter().filter(move |lost| lost.kind.is_worth_a_retry() && (more || !lost.is_short()))
    }
}

fn count(of: impl Iterator) -> u32 {
    u32::try_from(of.count()).unwrap_or(u32::MAX)
}
