//! What the person wants of the row that is chosen: open, stop, try again, write, answer. It says what is
//! wanted, or why that cannot be; nothing is done here.

use convoke_kernel::AgentId;
use convoke_view::{AgentState, FilePosition};

use crate::screen_update::About;
use crate::user_action::{QuestionAnswer, UserAction};

use super::footer::{Pending, takes_messages};
use super::list::Rows;
use super::page::Looked;
use super::pager::{Pager, Subject};
use super::prompt::{Prompt, Purpose};
use super::{Did, FleetView, Seen, agents, findings, mail, questions, tasks};

impl FleetView {
    /// Goes one step deeper: into an agent, or to all of a row.
    pub(super) fn go_in(&mut self, seen: &Seen<'_>) -> Did {
        let rows = self.rows(seen);
        let Some(at) = self.standing().settle(&rows) else {
            return Did::Nothing;
        };
        let pager = match rows {
            Rows::Agents(rows) => {
                self.inside = true;
                return self.look_at(&rows[at].id);
            }
            Rows::Tasks(rows) => Pager::new(Subject::Other, "Task", tasks::whole(rows[at]), Vec::new()),
            Rows::Mail(rows) => {
                Pager::new(Subject::Other, "Letter", mail::whole(rows[at], seen.now), Vec::new())
            }
            Rows::Findings(rows) => {
                Pager::new(Subject::Other, "Finding", findings::whole(rows[at]), rows[at].places.clone())
            }
            Rows::Questions(rows) => Pager::new(
                Subject::Question(rows[at].id),
                "Question",
                questions::whole(&rows[at]),
                Vec::new(),
            ),
        };
        self.pager = Some(pager);
        Did::Changed
    }

    /// Goes from an agent to all of the chosen entry. A text that was looked for is looked for there too.
    pub(super) fn go_into_entry(&mut self) -> Did {
        let Some(looked) = &self.looked else { return Did::Nothing };
        let at = looked.chosen();
        let Some(entry) = looked.entry(at) else { return Did::Nothing };
        let title = match entry.came_to.as_str() {
            "" => entry.title.clone(),
            came_to => format!("{} · {came_to}", entry.title),
        };
        let mut pager =
            Pager::new(Subject::Entry(at), &title, entry.body.clone(), entry.place.iter().cloned().collect());
        if !looked.needle().is_empty() {
            pager.search(looked.needle());
        }
        self.pager = Some(pager);
        Did::Changed
    }

    /// Looks at an agent: its history is asked for, unless it is there.
    pub(super) fn look_at(&mut self, agent: &AgentId) -> Did {
        if self.looked.as_ref().is_some_and(|looked| looked.agent() == agent) {
            return Did::Changed;
        }
        self.looked = Some(Looked::new(agent.clone()));
        Did::Wants(UserAction::Open(agent.clone()))
    }

    /// The agent that is meant: the one looked at, or the chosen one of the list.
    fn meant(&mut self, seen: &Seen<'_>) -> Option<AgentId> {
        if self.inside {
            return self.looked.as_ref().map(|looked| looked.agent().clone());
        }
        let rows = self.rows(seen);
        let at = self.standing().settle(&rows)?;
        match rows {
            Rows::Agents(rows) => Some(rows[at].id.clone()),
            _ => None,
        }
    }

    pub(super) fn stop(&mut self, seen: &Seen<'_>) -> Did {
        let Some(row) = self.meant(seen).and_then(|agent| seen.fleet.agent(&agent)) else {
            return Did::Nothing;
        };
        if agents::has_ended(row.state) {
            return self.says(&format!("\"{}\" is not at work: it is {}.", row.label, row.state.word()));
        }
        self.pending = Some(Pending::Stop(row.id.clone(), row.label.clone()));
        Did::Changed
    }

    pub(super) fn retry(&mut self, seen: &Seen<'_>) -> Did {
        if let Some(row) = self.meant(seen).and_then(|agent| seen.fleet.agent(&agent)) {
            return match row.state {
                AgentState::Failed | AgentState::Stopped => {
                    Did::Wants(UserAction::RetryAgent(row.id.clone()))
                }
                state => self.says(&format!(
                    "\"{}\" is {}: only what failed or was stopped is tried again. R tries again what failed \
                        in its run.",
                    row.label,
                    state.word()
                )),
            };
        }
        let rows = self.rows(seen);
        let (Rows::Tasks(rows), Some(at)) = (&rows, self.standing().settle(&rows)) else {
            return Did::Nothing;
        };
        match rows[at].state {
            "failed" | "cancelled" => Did::Wants(UserAction::RetryTask(rows[at].id.clone())),
            state => {
                self.says(&format!("This task is {state}: only a failed or cancelled one is tried again."))
            }
        }
    }

    pub(super) fn retry_run(&mut self, seen: &Seen<'_>) -> Did {
        let of_agent = self.meant(seen).and_then(|agent| seen.fleet.agent(&agent)?.run.clone());
        let Some(run) = self.run.clone().or(of_agent) else {
            return self.says("No run is meant: choose one with g, or an agent of one.");
        };
        let Some(row) = seen.fleet.runs().iter().find(|row| row.id == run) else { return Did::Nothing };
        if row.failed == 0 {
            return self.says(&format!("Nothing failed in \"{}\".", row.title));
        }
        self.pending = Some(Pending::RetryRun(run, row.title.clone()));
        Did::Changed
    }

    pub(super) fn message(&mut self, seen: &Seen<'_>) -> Did {
        let Some(row) = self.meant(seen).and_then(|agent| seen.fleet.agent(&agent)) else {
            return Did::Nothing;
        };
        if !takes_messages(row.role) {
            return self.says(&format!(
                "\"{}\" is a {}, and takes no messages: write to the lead or to a teammate.",
                row.label,
                agents::role_word(row.role)
            ));
        }
        let purpose = Purpose::Message { to: row.id.clone(), label: row.label.clone() };
        self.writing = Some(Prompt::new(purpose, ""));
        Did::Changed
    }

    /// Answers the chosen question, or the one in the pager, by a key.
    pub(super) fn answer(&mut self, key: char, seen: &Seen<'_>) -> Did {
        let id = match &self.pager {
            Some(Pager { subject: Subject::Question(id), .. }) => Some(*id),
            Some(_) => None,
            None => {
                let rows = self.rows(seen);
                let chosen = self.standing().settle(&rows);
                match rows {
                    Rows::Questions(rows) => chosen.map(|at| rows[at].id),
                    _ => return Did::Nothing,
                }
            }
        };
        let Some(id) = id else {
            return self.says("Choose a question first: ↑ and ↓ do.");
        };
        let Some(asking) = seen.questions.iter().find(|asking| asking.id == id) else {
            return self.says("This question needs no answer any more.");
        };
        let answer = match (key, &asking.about) {
            ('n', About::Call { .. } | About::Workflow) => QuestionAnswer::No,
            _ if !self.has_seen(id) => {
                return self.says(
                    "Not all of the question was seen: open it with Enter and go to its end with End.",
                );
            }
            (_, About::Checkpoint) => {
                self.writing = Some(Prompt::new(Purpose::Words(id), ""));
                return Did::Changed;
            }
            ('y', _) => QuestionAnswer::Yes,
            (_, About::Call { always: Some(_) }) => QuestionAnswer::Always,
            _ => return self.says("Always is not offered here: y says yes this once."),
        };
        self.answered();
        Did::Wants(UserAction::Answer { question: id, answer })
    }

    /// An answer was given. Nothing is chosen now, so that a key pressed twice does not answer the next
    /// question.
    pub(super) fn answered(&mut self) {
        if matches!(&self.pager, Some(Pager { subject: Subject::Question(_), .. })) {
            self.pager = None;
        }
        self.standing().forget();
    }

    /// Whether all of a question was on the screen.
    pub(super) fn has_seen(&self, question: u64) -> bool {
        self.frame.whole_question == Some(question) || self.read.contains(&question)
    }

    /// Opens the file that belongs to what is looked at.
    pub(super) fn open_place(&mut self, seen: &Seen<'_>) -> Did {
        let places: Vec<FilePosition> = match (&self.pager, &self.looked) {
            (Some(pager), _) => pager.places.clone(),
            (None, Some(looked)) if self.inside => {
                looked.entry(looked.chosen()).and_then(|entry| entry.place.clone()).into_iter().collect()
            }
            _ => {
                let rows = self.rows(seen);
                match (&rows, self.standing().settle(&rows)) {
                    (Rows::Findings(rows), Some(at)) => rows[at].places.clone(),
                    _ => Vec::new(),
                }
            }
        };
        match places.as_slice() {
            [] => self.says("No file belongs to this."),
            [place] => Did::Wants(UserAction::Edit(place.clone())),
            _ => {
                self.pending = Some(Pending::Open(places));
                Did::Changed
            }
        }
    }

    /// Says something at the bottom about a key that did nothing.
    pub(super) fn says(&mut self, text: &str) -> Did {
        self.remark(text, true);
        Did::Changed
    }
}
