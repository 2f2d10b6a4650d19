//! The runtime against the strict simulator, real shells and real journals.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests fail by panicking and print their figures"
)]

mod bash;
mod cache;
mod compaction;
mod confined;
mod conformance;
mod consent;
mod control;
mod counts;
mod crash;
mod crash_fan_out;
mod crash_programs;
mod custom_tools;
mod dialect;
mod fan_out;
mod fork;
mod hostile;
mod interpreter;
mod lead;
mod modes;
mod money;
mod overload;
mod parked;
mod plans;
mod programs;
mod programs_held;
mod remembered;
mod resume_programs;
mod retune;
mod schedules;
mod scripted_team;
mod side_by_side;
mod spool;
mod stop;
mod stop_exchange;
mod stop_exchange_below;
mod storm;
mod support;
mod tasks;
mod team;
mod team_autonomy;
mod team_board;
mod team_client;
mod team_crash;
mod team_lasting;
mod team_mail;
mod team_play;
mod team_protocols;
mod team_refuted;
mod teams;
mod truth;
mod unsay;
mod workers;
mod workspace;
