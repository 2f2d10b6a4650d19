//! The oracle: how a session must end, from what the server did. It knows the rules of the table of exit
//! codes in docs/reference.md and nothing of how the binary comes to its own judgement.

use convoke_sim::Received;

use super::draw::{Form, Manner, Schedule, Subtask};
use crate::team::role;

/// How a session ends, as far as a caller can rely on it. Lists are sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct End {
    pub(super) exit: i32,
    pub(super) status: String,
    /// What was begun and has no result: `subtask`, `verification` or `call`, and the subtask.
    pub(super) lost: Vec<String>,
    /// Subtasks that were not begun, because the budget had no room.
    pub(super) skipped: Vec<String>,
    /// Every finding that was reported, and what became of it.
    pub(super) verdicts: Vec<(String, String)>,
}

/// What the server saw of one agent.
struct Heard<'a>(Vec<&'a Received>);

impl Heard<'_> {
    /// Whether the reply at this position was sent to its end.
    fn replied(&self, position: usize) -> bool {
        self.0.iter().any(|request| request.position == position && request.replied)
    }
}

fn heard<'a>(requests: &'a [Received], who: &str, part: &str) -> Heard<'a> {
    let opening = |request: &Received| request.body["messages"][0].to_string();
    let part = serde_json::Value::from(part).to_string();
    let part = part.trim_matches('"');
    Heard(
        requests
            .iter()
            .filter(|request| role(&request.body) == who && opening(request).contains(part))
            .collect(),
    )
}

/// The end that follows from what the server did.
pub(super) fn expected(schedule: &Schedule, requests: &[Received]) -> End {
    if schedule.form == Form::Program {
        return of_program(schedule, requests);
    }
    let lead = heard(requests, "lead", "review it all");
    let fanned_out = lead.replied(0);
    let answered = lead.replied(1);
    // A fan-out is admitted whole or not at all: a worker and a verifier for each subtask.
    let refused = schedule.agents.is_some_and(|agents| agents < 2 * schedule.subtasks.len());
    let began = fanned_out && !refused;
    let mut end = End {
        exit: 0,
        status: "done".to_owned(),
        lost: Vec::new(),
        skipped: Vec::new(),
        verdicts: Vec::new(),
    };
    let mut decides = false;
    for subtask in schedule.subtasks.iter().filter(|_| began) {
        match verdict(subtask, requests) {
            Fate::Lost => end.lost.push(format!("subtask {}", subtask.text)),
            Fate::Nothing => {}
            Fate::Judged(verdict) => {
                if verdict == "unverified" {
                    end.lost.push(format!("verification {}", subtask.text));
                }
                decides |= verdict == "confirmed" && counts(schedule, &subtask.text);
                end.verdicts.push((subtask.text.clone(), verdict.to_owned()));
            }
        }
    }
    end.lost.sort();
    end.verdicts.sort();
    (end.exit, end.status) = match () {
        () if !answered => (1, "failed".to_owned()),
        () if refused => (4, "partial".to_owned()),
        () if !end.lost.is_empty() => (3, "partial".to_owned()),
        () => (0, "done".to_owned()),
    };
    // A confirmed finding that the gate names is the end that CI asked for, whatever else is missing.
    if decides && matches!(end.exit, 0 | 3) {
        end.exit = 6;
    }
    end
}

/// A program returns whatever its agents came to, so nothing but its agents decides.
fn of_program(schedule: &Schedule, requests: &[Received]) -> End {
    let refused = schedule.agents.is_some_and(|agents| agents < schedule.subtasks.len());
    let lost = |subtask: &&Subtask| {
        let answers = matches!(subtask.manner, Manner::Finds | Manner::FindsNothing);
        !(answers && heard(requests, "task", &subtask.text).replied(0))
    };
    let lost = schedule.subtasks.iter().filter(|_| !refused).filter(lost);
    let mut end =
        End { lost: lost.map(|subtask| format!("call {}", subtask.text)).collect(), ..End::default() };
    end.lost.sort();
    (end.exit, end.status) = match () {
        () if refused => (4, "partial".to_owned()),
        () if !end.lost.is_empty() => (3, "partial".to_owned()),
        () => (0, "done".to_owned()),
    };
    end
}

/// What became of a subtask.
enum Fate {
    Lost,
    Nothing,
    Judged(&'static str),
}

fn verdict(subtask: &Subtask, requests: &[Received]) -> Fate {
    let worker = heard(requests, "worker", &format!("<subtask>\n{}\n", subtask.text));
    match subtask.manner {
        Manner::Refuses | Manner::Rambles => Fate::Lost,
        Manner::Finds | Manner::FindsNothing if !worker.replied(1) => Fate::Lost,
        Manner::FindsNothing => Fate::Nothing,
        Manner::Finds => {
            let verifier = heard(requests, "verifier", &format!("\"claim\":\"{}\"", subtask.text));
            Fate::Judged(match (verifier.replied(1), subtask.text.contains("wrong")) {
                (false, _) => "unverified",
                (true, true) => "refuted",
                (true, false) => "confirmed",
            })
        }
    }
}

/// Whether `--fail-on` names findings of this severity.
fn counts(schedule: &Schedule, claim: &str) -> bool {
    let rank = |word: &str| ["high", "medium", "low"].iter().position(|level| *level == word);
    let severity = claim.split(' ').next().and_then(rank);
    schedule.fail_on.is_some_and(|level| severity <= rank(level))
}
