//! What is folded from events.

use super::*;

mod agents;
mod pages;
mod programs;
mod runs;
mod stage;
mod team;
mod whole;
