//! What the interpreter does, by behaviour: programs as people write them, programs that attack, the contract
//! row by row.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests fail by panicking and print their figures"
)]

mod attacks;
mod compose;
mod conformance;
mod corpus;
mod crossing;
mod drive;
mod fuzz;
mod hostile;
mod language;
mod limits;
mod mutate;
mod paths;
mod protocol;
mod real;
mod stub;
