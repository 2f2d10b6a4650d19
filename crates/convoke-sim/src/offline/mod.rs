//! The built-in offline model: a rule-based policy that explores a directory with read-only commands and reports what
//! they printed. It is a demonstration and a test partner. It never guesses and never claims to understand: every statement of
//! its report is a count or a line that a command printed, with its place. It changes a file in one case alone: a program asks it
//! word for word to replace one text by another in files that it names.

mod again;
mod intent;
mod policy;
mod probes;
mod read;
mod report;
mod team;
#[cfg(test)]
mod tests;

pub use policy::Offline;
