//! Decides: every rule of Convoke is a pure function in this crate, without async, clock, randomness, files
//! or network. What it decides is written to a journal first and done by `convoke-runtime` afterwards.
//!
//! * [`Agent`] is the agent loop: [`Agent::decide`], [`Agent::apply`], [`Agent::pending`].
//! * [`Event`] is what has happened, and the format of the journal.
//! * [`AgentSpec`] is what an agent is made of: prompts, tools and limits, fixed for its life.
//! * [`Segment`] is a piece of history, encoded once.
//! * The rest are the words for what a model call or a tool call came to.

mod after;
mod agent;
mod approval;
mod callee;
mod capsule;
mod citation;
mod confinement;
mod consent;
mod ending;
mod event;
mod findings;
mod fit;
mod gate;
mod ids;
mod lean;
mod ledger;
mod lesson;
mod lost;
mod mode;
mod outcome;
mod output;
mod piece;
mod program;
mod prompts;
mod run;
mod segment;
mod spec;
mod subtasks;
mod team;
mod teammate;
mod todo;
mod tools;
mod wire;

pub use after::AfterDrive;
pub use agent::{
    Agent, Effect, HeldBack, IllegalEvent, Input, LetterBatch, ModelRequest, NextInput, Opening, Pace,
    Queued, QueuedInput, RETRY_KEY, RetuneRefused, RoomAnswer, RoomAsk, Status, Summary, Unexpected,
    backoff_left, next_letters, stop_asked,
};
pub use approval::{Approvals, AskWhen, Decision, NOBODY_TO_ASK, Rule, is_simple_command};
pub use callee::{CALLEE_TURNS, Callee};
pub use capsule::{Capsule, Facts, TaskBrief};
pub use citation::{Checked, Seen, check_citation};
pub use confinement::{Confinement, Isolation, Network, Sandbox};
pub use consent::{Consent, ConsentBasis, consents};
pub use ending::{EndFacts, EndReason, EndStatus, Ending, LeadEnd, OwnProgram, StoppedBy, ending};
pub use event::{
    AgentStarted, ApprovalAsked, ApprovalGiven, BadEvent, CallMade, CompactionAsked, EndpointLearnt, Event,
    ExchangeClosed, ExchangeOpened, ExchangeReopened, ExchangeStopped, HistoryCompacted, HistoryForked,
    InputRejected, Kept, MailDelivered, ModeSet, ModelCalled, ModelFailed, ModelReplied, NoteAppended,
    Purpose, ResultsAppended, Resumed, Retuned, RoomRefused, TAKEN_BACK, ToolFinished, ToolStarted,
};
pub use findings::{Ballot, Citation, Finding, Judgement, Report, Severity, Verdict, Vote};
pub use fit::{SHORT_TEXT, TooLong};
pub use gate::{Gate, GateSight, can_verify, gate};
pub use ids::{AgentId, BadId, MessageId, RunId, SessionId, TaskId};
pub use lean::{Wishes, wishes};
pub use ledger::{
    AdmissionClosed, AgentsAdmitted, AgentsReturned, Amount, AttemptCorrected, AttemptSettled, BudgetGranted,
    Cap, Caps, Fate, HAND_BACK_TOKENS, HandBackLowered, HoldReleased, LEAST_HAND_BACK_TOKENS, Ledger,
    LedgerAnswer, LedgerEvent, LedgerHold, LedgerRequest, PromptCounted, RateTier, Rates, ReportedTokens,
    Room, RoomReserved, Sending, Sent, SessionHeld, SessionLeft, Short, Stale, UnconfirmedForgiven, answer,
    hand_back_hold,
};
pub use lesson::{Feature, IGNORED_AFTER, Learnt, OLD_VERSION, Refused, fields_named};
pub use lost::{Lost, LostWork, failed_programs, lost_calls, lost_items, standing, standing_items};
pub use mode::Section;
pub use outcome::{Outcome, Ran, ShellState, ToolResult};
pub use output::{Output, check_schema};
pub use piece::Piece;
pub use program::{
    CallAnswer, CallEnded, CallKind, CallResult, CallState, IllegalProgramEvent, KeptFrom, MadeCall,
    PassBegan, Program, ProgramClosed, ProgramCounts, ProgramEnd, ProgramEvent, ProgramInput, ProgramSaid,
    ProgramSpec, ProgramStarted, ProgramStatus, ProgramStopped, ProgramSummary, StepDeclined, StepTaken,
    answer_to, read_finding, unverified,
};
pub use prompts::{NO_CONSENT, SHELL_RESTORED, claimed_text, task_result, worktree_note};
pub use run::{
    CitationsChecked, IllegalRunEvent, ItemEnded, ItemJudged, ItemResult, ItemState, ItemStatus, ItemView,
    Reused, Run, RunClosed, RunCounts, RunEffect, RunEvent, RunInput, RunRefused, RunSpec, RunStarted,
    RunSummary, Spent, VerdictCounts, VerifierEnded, VerifierStarted, VoterResult, WorkerStarted,
    judge_report, label, verifier_prompt, worker_prompt,
};
pub use segment::Segment;
pub use spec::{
    AgentSpec, CHILD_TURNS, Callees, Child, FIRST_MAX_TOKENS, FanOut, LEAST_MAX_TOKENS, LeadSettings, Limits,
    Param, Role,
};
pub use subtasks::{MAX_TOTAL_SUBTASKS, Normalised, normalise};
pub use team::{
    ATTEMPTS, BadName, Board, BoardEntry, BoardEvent, BoardRefusal, CONVOKE, Claimant, LEAD, Letter,
    LetterHeader, LetterKind, LetterPosted, LettersPutBack, LettersTaken, MAX_LETTER, Member, MemberAsleep,
    MemberAwake, MemberFailed, MemberName, MemberRecovered, MemberSpawned, MemberState, MemberStopped,
    MemberView, NewTask, Next, PERSON, QUEUE, Request, RequestAnswered, RequestAsked, RequestKind,
    RequestState, RestsTold, Roster, RosterEntry, RosterEvent, RosterOpened, RosterRefusal, Standing, TASKS,
    Task, TaskClaimed, TaskCreated, TaskEdit, TaskEdited, TaskFailed, TaskFinished, TaskOffered,
    TaskReleased, TaskRenewed, TaskRetried, TaskState, in_order, next, state_of,
};
pub use teammate::{Membership, TEAMMATE_TURNS, Teammate};
pub use todo::{TodoItem, TodoStatus};
pub use tools::{
    AfterCrash, COMMANDS, FileCall, FileEdit, FileWork, GivenTool, GivenTools, Part, ProgramCall, Shown,
    SpawnCall, TaskCreateCall, TaskStatusCall, TaskUpdateCall, TeamCall, ToolRequest, Tools, WORKFLOW,
    WorkflowCall, bash_without_schema, is_command, known_tools, parts, shown,
};
pub use wire::{
    Capabilities, Failure, FailureKind, INVALID_INPUT, Reply, Retry, StopReason, Thinking, ToolCall, Usage,
};
