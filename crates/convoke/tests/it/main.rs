//! The real binary, driven from outside with an empty home and a cleared environment.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

mod admin;
mod approvals;
mod control;
mod doc_test;
mod envelope;
mod escapes;
mod fan_out;
mod inspection;
mod kill;
mod kill_fan_out;
mod newcomer;
mod offline;
mod orphans;
mod output;
mod pty;
mod repo;
mod reports;
mod resume;
mod resume_programs;
mod rules;
mod run;
mod sandbox;
mod settings;
mod signals;
mod sim;
mod stage;
mod support;
mod team;
mod team_cli;
mod team_memory;
mod terminal;
mod tree;
mod undo;
mod workflow;
mod workflow_edited;
mod workflow_envelope;
mod workflow_findings;
mod workflow_plan;
mod workflow_run;
mod workflow_shipped;
mod workflow_told;
mod worktrees;
