//! A team: its members, what they write to each other, and the board they claim work from. Three small
//! machines that know no clock and no store: the *roster* (members, letters on their way, requests that wait
//! for an answer), the *board* (tasks and their holders), and the choice of what a member does next. Each
//! folded state is a row that can be rebuilt from its events.

mod board;
mod letter;
mod name;
mod next;
mod roster;

pub use board::{
    ATTEMPTS, Board, BoardEntry, BoardEvent, BoardRefusal, Claimant, NewTask, TASKS, Task, TaskClaimed,
    TaskCreated, TaskEdit, TaskEdited, TaskFailed, TaskFinished, TaskOffered, TaskReleased, TaskRenewed,
    TaskRetried, TaskState,
};
pub use letter::{Letter, LetterKind, MAX_LETTER, in_order};
pub use name::{BadName, CONVOKE, LEAD, MemberName, PERSON};
pub use next::{Next, next};
pub use roster::{
    LetterHeader, LetterPosted, LettersPutBack, LettersTaken, Member, MemberAsleep, MemberAwake,
    MemberFailed, MemberRecovered, MemberSpawned, MemberState, MemberStopped, MemberView, QUEUE, Request,
    RequestAnswered, RequestAsked, RequestKind, RequestState, RestsTold, Roster, RosterEntry, RosterEvent,
    RosterOpened, RosterRefusal, Standing, state_of,
};
