//! What is said of a team in lines that stay: which members join and leave, which member claims what and what
//! comes of it, and that letters go from one to another. Not what they say: that is in the transcripts. Pure;
//! it prints nothing.

use std::collections::HashMap;

use convoke_kernel::{
    BoardEvent, CONVOKE, LEAD, LetterKind, PERSON, RequestKind, RequestState, RosterEvent, TaskId,
};

use convoke_view::flat;

/// How much of a subject or a reason is shown.
const MOST_CHARS: usize = 120;

/// Tells of a team.
#[derive(Debug, Default)]
pub(super) struct TeamLog {
    subjects: HashMap<TaskId, String>,
}

impl TeamLog {
    /// What there is to say about this event of the roster.
    pub(super) fn roster(event: &RosterEvent) -> Option<String> {
        of_roster(event).map(|said| line(&said))
    }

    /// What there is to say about this event of the board.
    pub(super) fn board(&mut self, event: &BoardEvent) -> Option<String> {
        self.of_board(event).map(|said| line(&said))
    }

    fn of_board(&mut self, event: &BoardEvent) -> Option<String> {
        if let BoardEvent::TaskCreated(e) = event {
            self.subjects.insert(e.task.clone(), e.subject.clone());
            let after = match e.blocked_by.len() {
                0 => String::new(),
                _ => {
                    format!(
                        " (after {})",
                        e.blocked_by.iter().map(|id| self.named(id)).collect::<Vec<_>>().join(", ")
                    )
                }
            };
            return Some(format!("new task: {}{after}", short(&e.subject)));
        }
        Some(match event {
            BoardEvent::TaskClaimed(e) => format!("{} claims {}", e.name, self.named(&e.task)),
            BoardEvent::TaskFinished(e) => format!("{} has done {}", e.name, self.named(&e.task)),
            BoardEvent::TaskFailed(e) => format!("{} failed: {}", self.named(&e.task), short(&e.why)),
            BoardEvent::TaskReleased(e) => {
                format!("{} is back on the board: {}", self.named(&e.task), short(&e.why))
            }
            BoardEvent::TaskOffered(e) => {
                format!("{} is unfinished; its holder is asked to go on", self.named(&e.task))
            }
            BoardEvent::TaskRetried(e) => format!("{} is to be tried again ({})", self.named(&e.task), e.by),
            BoardEvent::TaskCreated(_) | BoardEvent::TaskEdited(_) | BoardEvent::TaskRenewed(_) => {
                return None;
            }
        })
    }

    fn named(&self, id: &TaskId) -> String {
        match self.subjects.get(id) {
            Some(subject) => format!("\"{}\"", short(subject)),
            None => id.to_string(),
        }
    }
}

fn short(text: &str) -> String {
    flat(text, MOST_CHARS).0
}

fn line(said: &str) -> String {
    format!("[team] {}", flat(said, 300).0)
}

fn of_roster(event: &RosterEvent) -> Option<String> {
    Some(match event {
        RosterEvent::MemberSpawned(e) => format!("{} joins ({})", e.name, e.role),
        RosterEvent::LetterPosted(e) => match e.kind {
            LetterKind::Message if e.urgent => format!("{} writes to {}, urgently", e.from, e.to),
            LetterKind::Message | LetterKind::Broadcast => format!("{} writes to {}", e.from, e.to),
            LetterKind::Failed => format!("{} has failed; the lead is told", e.from),
            LetterKind::Result if e.to == LEAD => format!("{} reports to the lead", e.from),
            // Requests, answers and notices are told by what they are about.
            _ => return None,
        },
        RosterEvent::RequestAsked(e) => match e.kind {
            RequestKind::Plan => format!("{} hands in a plan", e.from),
            RequestKind::Shutdown => format!("{} is asked to stop", e.to),
        },
        RosterEvent::RequestAnswered(e) => match e.state {
            RequestState::Approved if e.by == LEAD || e.by == PERSON => format!("{} approves the plan", e.by),
            RequestState::Rejected if e.by == LEAD || e.by == PERSON => format!("{} rejects the plan", e.by),
            RequestState::Rejected => format!("{} refuses to stop", e.by),
            RequestState::Approved if e.by != CONVOKE => format!("{} agrees to stop", e.by),
            _ => return None,
        },
        RosterEvent::MemberStopped(e) => format!("{} has stopped: {}", e.name, short(&e.why)),
        RosterEvent::MemberFailed(e) => format!("{} failed: {}", e.name, short(&e.why)),
        RosterEvent::MemberAsleep(e) => format!("{} sleeps until there is mail or work", e.name),
        RosterEvent::MemberAwake(e) => format!("{} is awake again", e.name),
        RosterEvent::RosterOpened(_)
        | RosterEvent::LettersTaken(_)
        | RosterEvent::LettersPutBack(_)
        | RosterEvent::MemberRecovered(_)
        | RosterEvent::RestsTold(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use convoke_kernel::{AgentId, MemberSpawned, TaskClaimed, TaskCreated, TaskFinished};

    use super::*;

    #[test]
    fn b18_c21_a_team_is_told_in_lines_that_name_people_and_subjects() {
        let task = TaskId::derived(&["one"]);
        let agent = AgentId::from_bits([1; 10]);
        let created = TaskCreated {
            task: task.clone(),
            subject: "count \u{1b}[2Jlines".into(),
            description: String::new(),
            criteria: None,
            blocked_by: Vec::new(),
            role: None,
            priority: 0,
            by: LEAD.into(),
        };
        let spawned = MemberSpawned {
            name: "alice".into(),
            role: "coder".into(),
            agent: agent.clone(),
            requires_plan: false,
            by: LEAD.into(),
        };
        let claimed =
            TaskClaimed { task: task.clone(), name: "alice".into(), agent: Some(agent), token: 1, until: 2 };
        let done = TaskFinished { task, name: "alice".into(), result: String::new() };
        let mut team_log = TeamLog::default();
        let said: Vec<String> = [
            team_log.board(&created.into()),
            TeamLog::roster(&spawned.into()),
            team_log.board(&claimed.into()),
            team_log.board(&done.into()),
        ]
        .into_iter()
        .flatten()
        .collect();
        let expected = [
            "[team] new task: count lines",
            "[team] alice joins (coder)",
            "[team] alice claims \"count lines\"",
            "[team] alice has done \"count lines\"",
        ];
        assert_eq!(said, expected);
    }
}
