//! The built-in offline model: a rule-based policy that explores a directory with read-only commands and
//! reports what they printed. It is a demonstration and a test partner. It never guesses and never claims to
//! understand: every statement of its report is a count or a line that a command printed, with its place. It
//! changes files in three cases alone: a program asks it word for word to replace one text by another in
//! files that it names, a new module is asked for of which nothing else is said, or the task has a tool
//! called word for word.

mod again;
mod given;
mod intent;
mod module;
mod policy;
mod probes;
mod read;
mod report;
mod team;
#[cfg(test)]
mod tests;

pub use policy::Offline;
