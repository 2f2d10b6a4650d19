//! A history that begins as another one did: what is taken along, and where an agent stands that begins with
//! it. The messages are the same bytes, so the server's cache knows them; the other session has paid for
//! them. Its team, its board and its runs in the background stay where they are, and the model is told so
//! with the first thing it reads.

use serde_json::Value;

use super::Agent;
use super::agent_state::AgentState;
use super::state::{Stage, Tail};
use crate::event::HistoryForked;
use crate::ids::{AgentId, SessionId};
use crate::segment::Segment;
use crate::spec::{AgentSpec, Role};

/// What a fork reads beside the first thing that is said to it.
pub(super) const FORKED: &str = "[this conversation was forked]\n\
    What stands above was said in another session, and this one goes on from there by itself. Agents, \
    teammates, letters, tasks and runs that are mentioned above belong to that session and cannot be \
    reached from here, nor can results be recalled that were referred to there. The shell is a new one in \
    the working directory, and files may have changed since.";

impl Agent {
    /// What a new lead would begin with if it went on from here: its spec and the history. `id` is the agent
    /// whose history it is. `None` if this agent is no idle lead, or has no reply to go on from.
    pub fn fork(&self, id: &AgentId, session: SessionId) -> Option<(AgentSpec, HistoryForked)> {
        let state = &self.state;
        let spec = state.spec.as_deref().filter(|spec| spec.role == Role::Lead && self.is_idle())?;
        let kept = whole(&self.segments)?;
        let fork = HistoryForked {
            agent: id.clone(),
            session: spec.session.clone(),
            exchange: state.exchange.as_ref().map_or(0, |exchange| exchange.number),
            task: state.task.clone(),
            messages: self.segments[..kept].to_vec(),
            section: state.mode.and_then(|mode| mode.told()),
            tokens: state.mark.tokens,
        };
        let mut spec = AgentSpec { session, ..spec.clone() };
        if let (Some(fan_out), Some(mode)) = (spec.fan_out.as_mut(), state.mode) {
            fan_out.mode = mode.is_on();
        }
        Some((spec, fork))
    }

    /// The session whose history this one began with.
    pub fn forked_from(&self) -> Option<&SessionId> {
        self.state.forked.as_ref()
    }
}

impl AgentState {
    pub(super) fn history_forked(&mut self, e: &HistoryForked) -> Option<Stage> {
        // Only a history that has not begun can take over another one, and
        // only one after which something can be said.
        let untouched = self.mark.segments == 0 && self.exchange.is_none() && self.forked.is_none();
        let last = last_reply(&e.messages)?;
        if !untouched || whole(&e.messages) != Some(e.messages.len()) {
            return None;
        }
        for (index, message) in e.messages.iter().enumerate() {
            let tail = match Shape::of(message)?.role {
                Speaker::User => Tail::User,
                Speaker::System => Tail::System,
                Speaker::Assistant => {
                    self.lasting.replies = self.lasting.replies.saturating_add(1);
                    Tail::Reply
                }
            };
            if index == last {
                // As if the last reply had just come: what the cache holds ends before it.
                self.answered = index;
                self.added_blocks = 0;
            }
            self.push(message, tail);
        }
        self.mark.tokens = e.tokens;
        self.lasting.known = e.tokens;
        self.lasting.since = 0;
        if let Some(mode) = self.mode.as_mut() {
            mode.recall(e.section);
        }
        self.task.clone_from(&e.task);
        self.forked = Some(e.session.clone());
        Some(Stage::Idle)
    }

    /// The note that goes with the next thing said, if the agent is a fork that has not answered yet.
    pub(super) fn fork_note(&self) -> Option<String> {
        (self.forked.is_some() && self.turns == 0).then(|| FORKED.to_owned())
    }
}

/// The ids of all calls in a history.
pub(super) fn call_ids(messages: &[Segment]) -> impl Iterator<Item = String> {
    messages.iter().filter_map(Shape::of).flat_map(|shape| shape.calls)
}

/// How many messages of a history can be gone on from: all up to its last reply, and the results of its
/// calls. `None` without a reply, and while calls of it are unanswered.
fn whole(messages: &[Segment]) -> Option<usize> {
    let last = last_reply(messages)?;
    let calls = Shape::of(messages.get(last)?)?.calls;
    if calls.is_empty() {
        return Some(last + 1);
    }
    let answers = messages.get(last + 1).and_then(Shape::of)?.answers;
    calls.iter().all(|call| answers.contains(call)).then_some(last + 2)
}

fn last_reply(messages: &[Segment]) -> Option<usize> {
    messages
        .iter()
        .rposition(|message| Shape::of(message).is_some_and(|shape| shape.role == Speaker::Assistant))
}

/// What a message is, as far as the order of a history depends on it.
struct Shape {
    role: Speaker,
    calls: Vec<String>,
    answers: Vec<String>,
}

#[derive(PartialEq, Eq)]
enum Speaker {
    User,
    Assistant,
    System,
}

impl Shape {
    fn of(message: &Segment) -> Option<Self> {
        let message: Value = serde_json::from_str(message.as_str()).ok()?;
        let role = match message["role"].as_str()? {
            "user" => Speaker::User,
            "assistant" => Speaker::Assistant,
            "system" => Speaker::System,
            _ => return None,
        };
        let ids = |kind: &str, name: &str| {
            let blocks =
                message["content"].as_array().into_iter().flatten().filter(|block| block["type"] == kind);
            blocks.filter_map(|block| block[name].as_str().map(str::to_owned)).collect()
        };
        Some(Self { role, calls: ids("tool_use", "id"), answers: ids("tool_result", "tool_use_id") })
    }
}
