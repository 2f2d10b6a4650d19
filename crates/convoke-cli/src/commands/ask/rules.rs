//! What is allowed without asking in a session, with what was answered there: the rules it was begun with,
//! those of the settings, and those that a person had remembered meanwhile.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use convoke_kernel::{Approvals, COMMANDS, Decision, Rule, ToolRequest};

use super::remember;
use crate::render::{clean, revealed};
use crate::settings::{Settings, is_simple};

/// The rules that hold now.
pub(in crate::commands) struct Rules {
    /// Where rules are remembered.
    file: PathBuf,
    held: Mutex<Approvals>,
}

impl Rules {
    /// Those of a session. The rules of the settings may be newer than those it was begun with.
    pub(in crate::commands) fn of(settings: &Settings, approvals: &Approvals) -> Self {
        let mut all = approvals.clone();
        all.rules
            .extend(settings.asking.rules.iter().filter(|rule| !approvals.rules.contains(rule)).cloned());
        Self { file: settings.user_file(), held: Mutex::new(all) }
    }

    /// Rules that ask about every call, remembered in this file.
    #[cfg(test)]
    pub(in crate::commands) fn at(file: PathBuf) -> Self {
        let ask = convoke_kernel::AskWhen::Always;
        Self { file, held: Mutex::new(Approvals { ask, ..Approvals::default() }) }
    }

    /// Whether a command that the session asks about needs no asking any more.
    pub(in crate::commands) fn allows(&self, command: &str) -> bool {
        self.held().allows(&ToolRequest::Bash { command: command.to_owned() }, "")
    }

    /// What it means to always allow this command; `None` if a rule could not tell it from something else.
    pub(in crate::commands) fn always(&self, command: &str) -> Option<String> {
        if !is_simple(command) || revealed(command) != command {
            return None;
        }
        // Where a rule asks, only the very command is meant: that rule was written to be asked about others
        // like it.
        let asks = self.held().rules.iter().any(|rule| rule.decision == Decision::Ask);
        let what = if asks { "this very command" } else { "also when more words follow" };
        Some(format!("always, {what} (a rule in {})", clean(&self.file.display().to_string())))
    }

    /// Allows the command at once for all agents of this session, and from now on in every other session.
    /// Returns what to tell the person.
    pub(in crate::commands) fn remember(&self, command: &str) -> String {
        let tool = Some(COMMANDS.name.to_owned());
        let command_of_rule = Some(command.to_owned());
        self.held().rules.push(Rule {
            tool,
            command: command_of_rule,
            path: None,
            decision: Decision::Allow,
        });
        let line = match remember::allow(&self.file, command) {
            Ok(()) => format!("remembered in {}", self.file.display()),
            Err(why) => format!("allowed for this session; it could not be remembered: {why}"),
        };
        clean(&line)
    }

    fn held(&self) -> MutexGuard<'_, Approvals> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
