//! Folds the events that the journal records into what people look at: agents, runs, findings, tasks,
//! letters, money, what is waited for. The terminal draws it, headless output and reports write it, the
//! library hands it out; a new way of looking begins here and matches no event itself: what an event of an
//! agent means is said once ([`Step`], [`Account`]).
//!
//! It uses the kernel for its words and nothing else of Convoke: it draws nothing, decides nothing, and
//! reaches neither the journal nor the runtime.

mod act;
mod at_work;
mod callees;
mod fleet;
mod found;
mod jsonl;
mod losses;
mod place;
mod progress;
mod reading;
#[cfg(any(test, feature = "samples"))]
pub mod sample;
mod session_event;
mod text;
mod used;
mod waits;

pub use act::{Act, came_to};
pub use at_work::{AgentsAtWork, OwnProgram, PhaseCounts, SpentSoFar, WorkPhase, WorkState, WorkingAgent};
pub use fleet::{
    AgentRow, AgentState, Entry, FindingRow, Fleet, LetterRow, Page, PhaseRow, RowFilter, RunRow, Streams,
    TaskRow, VerdictWord, is_quiet,
};
pub use found::{Claims, FindingNews, Found, found};
pub use jsonl::{end_line, event_line};
pub use losses::{Losses, is_want_of_room};
pub use place::FilePosition;
pub use progress::{CallUnderWay, Doing, Progress};
pub use reading::{Account, EntryKind, Step, kept_words, reply_figures};
pub use session_event::SessionEvent;
pub use text::{
    age, blocks_text, clean, count, dollars, escaped, first_line, flat, kind_word, message_text, revealed,
    seconds, shown, tokens,
};
pub use used::Used;
pub use waits::{Hold, Waits};
