//! What makes an agent last: the task it holds, whether its plan is approved, its own list, and the new
//! history it begins when the old one has grown too long. A history is left behind in one step, never edited,
//! and only between two rounds of tools.

use serde_json::Value;

use super::agent_state::AgentState;
use super::decide::{Draft, message, user_text};
use super::state::{Asking, Exchange, Mark, Slot, SlotState, Stage, Tail};
use super::{Unexpected, blank};
use crate::capsule::{Capsule, Facts, TaskBrief};
use crate::confinement::Sandbox;
use crate::event::{HistoryCompacted, Kept, ModelReplied, NoteAppended};
use crate::fit::BYTES_PER_TOKEN;
use crate::ids::TaskId;
use crate::outcome::ToolResult;
use crate::prompts;
use crate::segment::Segment;
use crate::spec::Role;
use crate::team::{Letter, LetterKind};
use crate::teammate::Membership;
use crate::todo::{self, TodoItem, TodoStatus};
use crate::tools::{TeamCall, ToolRequest, Wanted};
use crate::wire::{Reply, StopReason, ToolCall};

/// The room that a summary is given.
pub(crate) const SUMMARY_TOKENS: u32 = 8_000;

/// References to results of earlier calls that are kept at hand.
const REFERENCES: usize = 40;

/// A new history must be shorter than the old one by one part in this many. One that gains
/// less was in vain, and so would be the next.
const LEAST_GAIN: u64 = 10;

/// Whether the agent needs an approved plan before it may write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Plan {
    /// None is needed.
    #[default]
    Free,
    /// One has to be handed in.
    Needed,
    /// One was handed in and waits for its answer.
    Asked,
    /// It was approved for the work in hand.
    Approved,
}

/// The result of an earlier call, as a new history refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    id: String,
    tool: String,
    what: String,
    bytes: usize,
}

/// What belongs to an agent beside its conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lasting {
    pub(super) plan: Plan,
    /// The task it worked on last.
    pub(super) work: Option<TaskId>,
    /// The task that the agent holds, as far as its own calls tell.
    held: Option<TaskId>,
    pub(super) todo: Vec<TodoItem>,
    /// Rounds of tools since the list was written.
    rounds: u32,
    /// What the journal knew when the agent was taken up; its capsule goes with the next thing it reads.
    pub(super) facts: Option<Box<Facts>>,
    /// Set when it is to begin a new history: what is to be kept in mind.
    wish: Option<String>,
    /// Whether the request under way asks for the summary.
    pub(super) summarising: bool,
    /// Where the history stood before the summary was asked for, and the bytes since the last usage then.
    pub(super) before: Option<(Mark, u64)>,
    /// Replies in the present history.
    pub(super) replies: u32,
    /// Tokens of the history that was left behind because it was too long, until a reply tells how long the
    /// present one is.
    left: Option<u64>,
    /// Whether the last history that was too long gave way to one that is hardly shorter.
    pub(super) futile: bool,
    references: Vec<Reference>,
    /// Tokens of the history as the last usage told, and the bytes added since.
    pub(super) known: u64,
    pub(super) since: u64,
}

impl Lasting {
    /// How long the history is: the last usage, and an estimate of what was added since.
    pub(super) fn tokens(&self) -> u64 {
        self.known.saturating_add(self.since.div_ceil(BYTES_PER_TOKEN))
    }

    /// A reply has become part of the history, and this many tokens were read for it; none where no usage
    /// told.
    pub(super) fn measure(&mut self, read: u64) {
        self.replies = self.replies.saturating_add(1);
        if let Some(before) = self.left.take() {
            // By the tokens the model counted, not by bytes: bytes would make a
            // long task in plain words longer than it is.
            let now = if read > 0 { read } else { self.tokens() };
            self.futile = before.saturating_sub(now).saturating_mul(LEAST_GAIN) < before;
        }
    }

    fn refer(&mut self, call: &ToolCall, result: &ToolResult) {
        let input: Value = serde_json::from_str(call.input.as_str()).unwrap_or_default();
        let words = ["command", "path", "pattern", "prompt", "task", "to"]
            .iter()
            .find_map(|name| input.get(name)?.as_str());
        let what = words.unwrap_or_default().lines().next().unwrap_or_default().chars().take(120).collect();
        let id = call.id.clone();
        let tool = call.name.clone();
        let bytes = result.text.len();
        self.references.push(Reference { id, tool, what, bytes });
        if self.references.len() > REFERENCES {
            self.references.remove(0);
        }
    }

    /// The summary is not wanted any more; returns where the history stood before it was asked for.
    pub(super) fn drop_summary(&mut self) -> Option<(Mark, u64)> {
        if !std::mem::take(&mut self.summarising) {
            return None;
        }
        self.wish = None;
        self.before.take()
    }

    fn references(&self) -> Vec<(String, String, String, usize)> {
        let row = |one: &Reference| (one.id.clone(), one.tool.clone(), one.what.clone(), one.bytes);
        self.references.iter().map(row).collect()
    }

    /// Whether the list has open items and has not been looked at for a while.
    pub(super) fn reminds(&self) -> bool {
        let open = self.todo.iter().any(|item| item.status != TodoStatus::Completed);
        open && self.rounds + 1 >= todo::REMIND_AFTER
    }
}

impl AgentState {
    pub(super) fn membership(&self) -> Option<&Membership> {
        self.spec.as_ref()?.team.as_deref()
    }

    /// Whether the history has to be left behind before the next request.
    pub(super) fn compaction_due(&self) -> bool {
        let lasting = &self.lasting;
        let wished = lasting.wish.is_some() && !lasting.futile;
        (wished || self.is_too_long()) && !lasting.summarising && lasting.replies > 0
    }

    fn is_too_long(&self) -> bool {
        self.membership().is_some_and(|team| self.lasting.tokens() >= team.compact_at)
    }

    /// Whether a call has to wait for an approved plan.
    pub(super) fn needs_plan(&self, wanted: &Wanted) -> bool {
        let gated = matches!(self.lasting.plan, Plan::Needed | Plan::Asked);
        gated && matches!(wanted, Wanted::Run(request) if request.writes())
    }

    /// Keeps what a finished call changes of the things that last.
    pub(super) fn remember(&mut self, call: &ToolCall, result: &ToolResult) {
        if self.membership().is_none() {
            return;
        }
        self.lasting.refer(call, result);
        if let Some(task) = &result.claimed {
            self.take_work(task.clone());
        }
        if result.is_error {
            return;
        }
        match self.read(call) {
            Ok(Wanted::Todo(items)) => self.lasting.todo = items,
            Ok(Wanted::Compact(focus)) => self.lasting.wish = Some(focus.unwrap_or_default()),
            Ok(Wanted::Run(ToolRequest::Team(TeamCall::SubmitPlan { .. })))
                if self.lasting.plan == Plan::Needed =>
            {
                self.lasting.plan = Plan::Asked;
            }
            // The work that the plan was approved for has ended.
            Ok(Wanted::Run(ToolRequest::Team(TeamCall::TaskUpdate(update)))) if update.status.is_some() => {
                self.end_work();
            }
            _ => {}
        }
    }

    /// A round of tools is over; `reminded` if the agent was told to look at its list.
    pub(super) fn count_round(&mut self, slots: &[Slot], reminded: bool) {
        let wrote = |slot: &Slot| {
            let done = matches!(&slot.state, SlotState::Finished(result) if !result.is_error);
            done && matches!(self.read(&slot.call), Ok(Wanted::Todo(_)))
        };
        let looked = reminded || slots.iter().any(wrote);
        self.lasting.rounds = if looked { 0 } else { self.lasting.rounds.saturating_add(1) };
    }

    /// The agent holds another task: an approval for the one before it does not count for this one.
    pub(super) fn take_work(&mut self, task: TaskId) {
        if self.lasting.held.as_ref() != Some(&task) {
            self.lasting.plan = self.first_plan();
        }
        self.lasting.held = Some(task.clone());
        self.lasting.work = Some(task);
    }

    pub(super) fn drop_ended_work(&mut self) {
        self.lasting.work = self.lasting.held.clone();
    }

    /// The task that the agent holds has ended, and with it the approval for it.
    fn end_work(&mut self) {
        if self.lasting.held.take().is_some() {
            self.lasting.plan = self.first_plan();
        }
    }

    /// An approval counts for the work it was given for: without a task that is the exchange, and it is over.
    pub(super) fn end_exchange(&mut self) {
        if self.lasting.held.is_none() && self.lasting.plan == Plan::Approved {
            self.lasting.plan = self.first_plan();
        }
    }

    fn first_plan(&self) -> Plan {
        match self.membership().is_some_and(|team| team.requires_plan) {
            true => Plan::Needed,
            false => Plan::Free,
        }
    }

    /// A task that the person or the board has taken away meanwhile is no longer held.
    pub(super) fn taken_up(&mut self, facts: &Facts) {
        let held = facts.task.as_ref().map(|brief| &brief.task.id);
        if self.lasting.held.as_ref() != held {
            self.end_work();
        }
    }

    /// Letters are in the history: the requests that they answer are answered.
    pub(super) fn hear_letters(&mut self, letters: &[Letter]) {
        for letter in letters.iter().filter(|letter| letter.kind == LetterKind::PlanAnswer) {
            if matches!(self.lasting.plan, Plan::Free) {
                continue;
            }
            let approved = letter.approve == Some(true) && letter.task == self.lasting.held;
            self.lasting.plan = if approved { Plan::Approved } else { Plan::Needed };
        }
    }

    /// Letters left the history again: their answers no longer count.
    pub(super) fn unhear_letters(&mut self, letters: &[Letter]) {
        let answered = letters.iter().any(|letter| letter.kind == LetterKind::PlanAnswer);
        if answered && self.lasting.plan != Plan::Free {
            self.lasting.plan = Plan::Asked;
        }
    }

    pub(super) fn ask_compaction(&mut self, focus: &str) {
        if self.membership().is_some() {
            self.lasting.wish = Some(focus.to_owned());
        }
    }

    /// The summary is asked for.
    pub(super) fn summarise(&mut self, asking: Asking) -> Stage {
        self.lasting.summarising = true;
        Stage::Ready(Asking { max_tokens: SUMMARY_TOKENS.min(asking.max_tokens), ..asking })
    }

    /// The old history is left behind.
    pub(super) fn compacted(&mut self, e: &HistoryCompacted) -> Option<Stage> {
        if let Some(mode) = self.mode.as_mut() {
            mode.forget();
        }
        self.mark = self.base;
        self.answered = 0;
        self.added_blocks = 0;
        let too_long = self.membership().is_some_and(|team| e.tokens >= team.compact_at);
        let lasting = &mut self.lasting;
        lasting.wish = None;
        lasting.summarising = false;
        lasting.replies = 0;
        lasting.left = too_long.then_some(e.tokens);
        lasting.futile = false;
        lasting.known = 0;
        lasting.since = self.base.tokens;
        lasting.facts = None;
        self.push(&e.message, Tail::User);
        let start = self.mark;
        let exchange = self.exchange.as_mut()?;
        // The request stands inside the new history's first message now,
        // so it cannot be taken back alone any more.
        exchange.start = start;
        exchange.kept = exchange.kept.max(1);
        exchange.letters.clear();
        exchange.fresh.clear();
        exchange.section = e.section;
        exchange.announces = true;
        Some(self.ready(self.first_room()))
    }
}

impl Draft {
    /// Asks for the summary, if the history has to be left behind and can be: it
    /// must end where a user message may follow.
    pub(super) fn summarise_if_due(&mut self) -> Result<(), Unexpected> {
        let Stage::Ready(asking) = &self.state.stage else { return Ok(()) };
        let exchange = self.state.exchange.as_ref();
        let last = exchange.is_none_or(|exchange| exchange.last_turn.is_some());
        if asking.attempt > 0 || last || self.state.mark.tail != Tail::User || !self.state.compaction_due() {
            return Ok(());
        }
        if self.state.lasting.futile {
            let message = user_text(&prompts::hand_back_full(self.final_tool()));
            self.emit(NoteAppended { hand_back: true, full: true, ..NoteAppended::of(message) })?;
            return Ok(());
        }
        self.ask_for_a_summary()
    }

    pub(super) fn ask_for_a_summary(&mut self) -> Result<(), Unexpected> {
        let focus = self.state.lasting.wish.clone().filter(|focus| !blank(focus));
        let message = message("user", &[prompts::team::summarise(focus.as_deref())]);
        self.emit(NoteAppended { summary: true, ..NoteAppended::of(message) })?;
        Ok(())
    }

    /// The summary has come: the new history begins with it, with what the journal knows, and with what was
    /// asked.
    pub(super) fn summarised(&mut self, call: u32, reply: Reply, facts: Facts) -> Result<(), Unexpected> {
        if !self.state.lasting.summarising {
            return Err(Unexpected::Stale);
        }
        let said = reply.text.trim().to_owned();
        let cut = if reply.stop == StopReason::MaxTokens { CUT_SUMMARY } else { "" };
        let summary = (!said.is_empty()).then(|| said + cut);
        self.emit(ModelReplied { call, reply, kept: Kept::Summary })?;
        self.begin_anew(facts, summary)
    }

    /// A new history begins.
    pub(super) fn begin_anew(&mut self, facts: Facts, summary: Option<String>) -> Result<(), Unexpected> {
        let summary = summary.unwrap_or_else(|| NO_SUMMARY.to_owned());
        let tokens = self.state.lasting.tokens();
        let capsule = self.capsule(facts);
        let asked = self.state.exchange.as_ref().map(Exchange::asked).unwrap_or_default();
        let text = prompts::team::continued(&capsule, &asked, &summary, &self.state.lasting.references());
        check(&capsule, &text)?;
        let section = self.state.mode.and_then(|mut mode| {
            mode.forget();
            mode.owed()
        });
        // Within the user message, whatever the model takes: behind a system message nothing but a reply may
        // stand, and the harness may yet have something to say before there is one.
        let texts: Vec<String> = std::iter::once(text).chain(section.map(prompts::reminder)).collect();
        self.emit(HistoryCompacted { message: message("user", &texts), section, summary, tokens })?;
        Ok(())
    }

    /// The capsule of an agent that was taken up, with these letters and this task in it.
    pub(super) fn who_it_is(
        &self,
        letters: &[Letter],
        brief: Option<&TaskBrief>,
    ) -> Result<Option<String>, Unexpected> {
        let Some(facts) = self.state.lasting.facts.as_deref() else { return Ok(None) };
        let mut facts = facts.clone();
        facts.task = brief.cloned().or(facts.task);
        for letter in letters {
            facts
                .unread
                .iter_mut()
                .filter(|(from, _)| *from == letter.from)
                .for_each(|(_, many)| *many = many.saturating_sub(1));
        }
        facts.unread.retain(|(_, many)| *many > 0);
        let capsule = self.capsule(facts);
        let text = prompts::team::resumed(&capsule);
        check(&capsule, &text)?;
        Ok(Some(text))
    }

    fn capsule(&self, facts: Facts) -> Capsule {
        let team = self.state.membership();
        let word = |of: fn(&Membership) -> &str| team.map(of).unwrap_or_default().to_owned();
        Capsule {
            name: word(|team| &team.name),
            role: word(|team| &team.role),
            team: word(|team| &team.team),
            mode: self.state.mode.map(|mode| mode.is_on()),
            running: self.state.running.clone(),
            authority: self.authority(),
            todo: self.state.lasting.todo.clone(),
            facts,
        }
    }

    fn authority(&self) -> String {
        let Some(spec) = &self.state.spec else { return String::new() };
        let tools = spec.local_tools.as_ref().map_or_else(
            || "all local tools".to_owned(),
            |tools| format!("local tools: {}", tools.names().join(", ")),
        );
        let writes = match spec.confinement.sandbox {
            Sandbox::ReadOnly => "nothing you write is kept",
            Sandbox::Workspace => "you write below the working directory and nowhere else",
            Sandbox::Off => "your commands are not confined",
        };
        let plan = match self.state.lasting.plan {
            Plan::Free => "",
            Plan::Needed => "; your plan is not approved, so you only read",
            Plan::Asked => "; your plan waits for approval, so you only read",
            Plan::Approved => "; your plan is approved",
        };
        let starts =
            if spec.role == Role::Lead { "you start agents and teammates" } else { "you start no agents" };
        format!("{tools}; {writes}; {starts}{plan}")
    }
}

/// What stands behind a summary that was longer than its room.
const CUT_SUMMARY: &str = "\n(The summary was cut here, at its limit.)";

/// What stands in place of a summary that never came.
const NO_SUMMARY: &str = "(No summary could be had. What is said above is all that is known here; look again \
    before you rely on anything.)";

/// Checks that the text tells the agent all of its capsule; nothing else is sent.
fn check(capsule: &Capsule, text: &str) -> Result<(), Unexpected> {
    let missing = capsule.missing_in(text);
    if missing.is_empty() { Ok(()) } else { Err(Unexpected::Incomplete(missing.join(", "))) }
}

impl Mark {
    /// The texts of a message's blocks, joined.
    pub(super) fn texts(message: &Segment) -> String {
        let message: Value = serde_json::from_str(message.as_str()).unwrap_or_default();
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        texts.join("\n\n")
    }
}
