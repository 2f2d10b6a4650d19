//! Whether a call may be run, must not be, or a person is asked first: rules that a person wrote. They are a
//! help and not the wall: the sandbox decides what a command can reach, whatever it is called.

mod commands;
mod lexer;

use serde::{Deserialize, Serialize};

use self::commands::Fit;
use crate::tools::{COMMANDS, ToolRequest};

/// The words of every refusal for want of a person, whichever code writes the rest of it.
pub const NOBODY_TO_ASK: &str = "nobody is there to be asked";

/// When a person is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskWhen {
    /// Never: what a rule would ask about is refused.
    #[default]
    Never,
    /// Where a rule says so.
    WhenNeeded,
    /// Before every command and every change that no rule allows.
    Always,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Run it.
    Allow,
    /// Refuse it.
    Deny,
    /// Ask a person.
    Ask,
}

/// One rule. A member that is absent matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The tool: `bash`, `edit`, `view`, `glob`, `grep`, or one of the embedding program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// How a command begins, in whole words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Which files, as a glob relative to the working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What it says.
    pub decision: Decision,
}

/// What a person laid down for a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approvals {
    /// When a person is asked.
    pub ask: AskWhen,
    /// The rules. Refusing goes before asking, asking before allowing, whatever their order; but a rule that
    /// allows this very command goes before one that asks about its kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Whether an agent waits when no person can answer its question, instead of being refused.
    #[serde(default)]
    pub park: bool,
}

/// What a call would do, as far as rules look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    /// A command.
    Command(&'a str),
    /// A file tool; `writes` if it changes something. The path is relative to the directory where it is below
    /// it, and `climbs` if it has a `..` in it.
    File { tool: &'static str, path: String, writes: bool, climbs: bool },
    /// A tool of the embedding program.
    Tool { name: &'a str, writes: bool },
}

impl Subject<'_> {
    /// What a file tool is about, with the path as rules know it.
    pub(crate) fn file(tool: &'static str, path: &str, writes: bool, dir: &str) -> Self {
        let rest = path.strip_prefix(dir).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let absolute = rest.is_none() && path.starts_with('/');
        let mut parts: Vec<&str> = Vec::new();
        for part in rest.unwrap_or(path).split('/').filter(|part| !part.is_empty() && *part != ".") {
            match part {
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let climbs = path.split('/').any(|part| part == "..");
        let root = if absolute { "/" } else { "" };
        Subject::File { tool, path: format!("{root}{}", parts.join("/")), writes, climbs }
    }
}

/// The decision on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ruling {
    Allow,
    /// Refused, and this is why.
    Deny(String),
    /// A person is asked, and this is why.
    Ask(String),
}

impl Approvals {
    /// Why rules alone forbid a call, even if a person could be asked; `None` if
    /// they do not. `dir` is where the agent works.
    pub fn forbids(&self, request: &ToolRequest, dir: &str) -> Option<String> {
        let subject = request.subject(dir)?;
        self.says(Decision::Deny, &subject).map(forbidden)
    }

    /// Whether a call is run without a question to the person.
    pub fn allows(&self, request: &ToolRequest, dir: &str) -> bool {
        request.subject(dir).is_none_or(|subject| self.rule_on(&subject) == Ruling::Allow)
    }

    /// The first rule with this decision that fits a call; one that certainly
    /// fits goes before one that possibly does.
    fn says(&self, decision: Decision, subject: &Subject<'_>) -> Option<(&Rule, Fit)> {
        let rules = self.rules.iter().filter(|rule| rule.decision == decision);
        let fitting: Vec<_> = rules.filter_map(|rule| Some((rule, rule.fits(subject)?))).collect();
        let certain = fitting.iter().find(|(_, fit)| *fit == Fit::Certain);
        certain.or(fitting.first()).copied()
    }

    /// The decision on a call.
    pub(crate) fn rule_on(&self, subject: &Subject<'_>) -> Ruling {
        let changes = matches!(
            subject,
            Subject::Command(_) | Subject::File { writes: true, .. } | Subject::Tool { writes: true, .. }
        );
        let why = if let Some(said) = self.says(Decision::Deny, subject) {
            return Ruling::Deny(forbidden(said));
        } else if self.rules.iter().any(|rule| rule.allows_exactly(subject)) {
            return Ruling::Allow;
        } else if let Some((rule, fit)) = self.says(Decision::Ask, subject) {
            format!("a rule of the person's asks for it ({}){}", rule.describe(), unknown(fit))
        } else if self.ask == AskWhen::Always && changes && self.says(Decision::Allow, subject).is_none() {
            "the person wants to be asked before everything (--ask always)".to_owned()
        } else {
            return Ruling::Allow;
        };
        match self.ask {
            AskWhen::Never => Ruling::Deny(format!("{why}, and {NOBODY_TO_ASK} (--ask never)")),
            AskWhen::WhenNeeded | AskWhen::Always => Ruling::Ask(why),
        }
    }
}

fn forbidden((rule, fit): (&Rule, Fit)) -> String {
    format!("a rule of the person's forbids it ({}){}", rule.describe(), unknown(fit))
}

/// What a message adds when a rule only possibly fits, because the command does not spell its programs out.
fn unknown(fit: Fit) -> &'static str {
    match fit {
        Fit::Certain => "",
        Fit::Possible => {
            ": which program a part of it runs cannot be told before it runs, so it could be that one; \
             spell programs out, without variables, patterns or braces"
        }
    }
}

impl Rule {
    /// Whether it allows this command and names all of it: the person was asked
    /// about exactly this command, and said always.
    fn allows_exactly(&self, subject: &Subject<'_>) -> bool {
        let (Subject::Command(text), Some(command)) = (subject, &self.command) else { return false };
        self.decision == Decision::Allow && self.fits(subject).is_some() && begins(command, text)
    }

    /// Whether it is about this call, and how surely.
    fn fits(&self, subject: &Subject<'_>) -> Option<Fit> {
        let name = match subject {
            Subject::Command(_) => COMMANDS.name,
            Subject::File { tool, .. } => *tool,
            Subject::Tool { name, .. } => *name,
        };
        let sure = |holds: bool| holds.then_some(Fit::Certain);
        let tool = sure(self.tool.as_deref().is_none_or(|tool| tool == name))?;
        let command = self.command.as_deref().map_or(Some(Fit::Certain), |prefix| match subject {
            Subject::Command(text) if self.decision == Decision::Allow => {
                sure(is_simple_command(text) && begins(text, prefix))
            }
            Subject::Command(text) => commands::fit(text, prefix),
            Subject::File { .. } | Subject::Tool { .. } => None,
        })?;
        let path = self.path.as_deref().is_none_or(|glob| match subject {
            Subject::Command(_) | Subject::Tool { .. } => false,
            // Where a path with `..` leads cannot be told from its text, so no rule allows it by its path.
            Subject::File { climbs: true, .. } if self.decision == Decision::Allow => false,
            Subject::File { path, .. } => glob_matches(glob, path),
        });
        Some(tool.min(command).min(sure(path)?))
    }

    /// The rule in one line.
    fn describe(&self) -> String {
        let members = [("tool", &self.tool), ("command", &self.command), ("path", &self.path)];
        let parts: Vec<String> = members
            .iter()
            .filter_map(|(name, value)| Some(format!("{name} = {:?}", value.as_ref()?)))
            .collect();
        if parts.is_empty() { "every call".to_owned() } else { parts.join(", ") }
    }
}

/// Whether a command is one program with its arguments: then its beginning says what it does. Anything a
/// shell would expand or chain could do something else behind it.
pub fn is_simple_command(command: &str) -> bool {
    !command.contains([';', '|', '&', '$', '(', ')', '<', '>', '`', '\n', '\\', '{', '}', '='])
}

/// Whether a text begins with these words.
fn begins(text: &str, prefix: &str) -> bool {
    let mut words = text.split_whitespace();
    prefix.split_whitespace().all(|word| words.next() == Some(word))
}

/// `*` and `?` stay within a directory, `**` goes through them. A pattern without a slash is meant for every
/// directory.
fn glob_matches(glob: &str, path: &str) -> bool {
    let anchored = glob.trim_start_matches("./");
    let glob = if anchored.contains('/') { anchored.to_owned() } else { format!("**/{anchored}") };
    // A look into a directory is a look at what is in it.
    let itself = glob.strip_suffix("/**").is_some_and(|dir| matches_from(dir.as_bytes(), path.as_bytes()));
    itself || matches_from(glob.as_bytes(), path.as_bytes())
}

fn matches_from(glob: &[u8], path: &[u8]) -> bool {
    match (glob, path) {
        ([], rest) => rest.is_empty(),
        ([b'*', b'*', b'/', glob @ ..], _) => {
            let starts = std::iter::once(0)
                .chain(path.iter().enumerate().filter(|(_, c)| **c == b'/').map(|(at, _)| at + 1));
            starts.into_iter().any(|at| matches_from(glob, &path[at..]))
        }
        ([b'*', b'*'], _) => true,
        ([b'*', glob @ ..], _) => {
            let end = path.iter().position(|c| *c == b'/').unwrap_or(path.len());
            (0..=end).any(|at| matches_from(glob, &path[at..]))
        }
        ([b'?', glob @ ..], [c, path @ ..]) if *c != b'/' => matches_from(glob, path),
        ([g, glob @ ..], [c, path @ ..]) if g == c => matches_from(glob, path),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
