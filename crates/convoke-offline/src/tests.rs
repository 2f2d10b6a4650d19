//! Plays the offline model against real directories: its commands are run, its answer is checked against the
//! files.

mod cut;
mod errands;
mod harness;
mod intents;
mod languages;
mod reviews;
mod robust;
mod unread;
