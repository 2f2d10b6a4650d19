//! Whether a call may be run, must not be, or a person is asked first: rules that a person wrote. They are a help and not
//! the wall: what a command can reach is the sandbox's business, whatever it is called.

use serde::{Deserialize, Serialize};

use crate::tools::ToolRequest;

/// How a refusal for want of a person says so, whoever words the rest of it.
pub const NOBODY_TO_ASK: &str = "nobody is there to be asked";

/// When a person is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskWhen {
    /// Nobody is: what a rule would ask about is refused.
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
    /// The tool: `bash`, `edit`, `view`, `glob`, `grep`.
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
    /// The rules. Refusing goes before asking, asking before allowing, whatever their order; but a rule that allows this very
    /// command goes before one that asks about its kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Whether an agent whose question nobody can answer waits, instead of being refused.
    #[serde(default)]
    pub park: bool,
}

/// What a call would do, as far as rules look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    /// A command.
    Command(&'a str),
    /// A file tool; `writes` if it changes something. The path is relative to the directory where it is below it, and
    /// `climbs` if it has a `..` in it.
    File { tool: &'static str, path: String, writes: bool, climbs: bool },
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

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ruling {
    Allow,
    /// Refused, and this is why.
    Deny(String),
    /// A person is asked, and this is why.
    Ask(String),
}

impl Approvals {
    /// Why rules alone forbid a call, whoever could be asked; `None` if they do not. `dir` is where the agent works.
    pub fn forbids(&self, request: &ToolRequest, dir: &str) -> Option<String> {
        let subject = request.subject(dir)?;
        let denies = |rule: &&Rule| rule.decision == Decision::Deny && rule.matches(&subject);
        self.rules.iter().find(denies).map(forbidden)
    }

    /// Whether a call is run without asking anybody.
    pub fn allows(&self, request: &ToolRequest, dir: &str) -> bool {
        request.subject(dir).is_none_or(|subject| self.rule_on(&subject) == Ruling::Allow)
    }

    /// What becomes of a call.
    pub(crate) fn rule_on(&self, subject: &Subject<'_>) -> Ruling {
        let says = |decision| self.rules.iter().find(|rule| rule.decision == decision && rule.matches(subject));
        let changes = matches!(subject, Subject::Command(_) | Subject::File { writes: true, .. });
        let why = if let Some(rule) = says(Decision::Deny) {
            return Ruling::Deny(forbidden(rule));
        } else if self.rules.iter().any(|rule| rule.allows_exactly(subject)) {
            return Ruling::Allow;
        } else if let Some(rule) = says(Decision::Ask) {
            format!("a rule of the person's asks for it ({})", rule.describe())
        } else if self.ask == AskWhen::Always && changes && says(Decision::Allow).is_none() {
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

fn forbidden(rule: &Rule) -> String {
    format!("a rule of the person's forbids it ({})", rule.describe())
}

impl Rule {
    /// Whether it allows this command and names all of it: somebody was asked about just this one, and said always.
    fn allows_exactly(&self, subject: &Subject<'_>) -> bool {
        let (Subject::Command(text), Some(command)) = (subject, &self.command) else { return false };
        self.decision == Decision::Allow && self.matches(subject) && begins(command, text)
    }

    fn matches(&self, subject: &Subject<'_>) -> bool {
        let name = match subject {
            Subject::Command(_) => "bash",
            Subject::File { writes: true, .. } => "edit",
            Subject::File { tool, .. } => *tool,
        };
        let tool = self.tool.as_deref().is_none_or(|tool| tool == name);
        let command = self.command.as_deref().is_none_or(|prefix| match subject {
            Subject::Command(text) if self.decision == Decision::Allow => {
                is_simple_command(text) && begins(text, prefix)
            }
            Subject::Command(text) => programs(text).iter().any(|part| begins(part, prefix)),
            Subject::File { .. } => false,
        });
        let path = self.path.as_deref().is_none_or(|glob| match subject {
            Subject::Command(_) => false,
            // Where a name climbs, nobody can tell from the name alone where it leads.
            Subject::File { climbs: true, .. } if self.decision == Decision::Allow => false,
            Subject::File { path, .. } => glob_matches(glob, path),
        });
        tool && command && path
    }

    /// The rule in one line.
    fn describe(&self) -> String {
        let members = [("tool", &self.tool), ("command", &self.command), ("path", &self.path)];
        let parts: Vec<String> =
            members.iter().filter_map(|(name, value)| Some(format!("{name} = {:?}", value.as_ref()?))).collect();
        if parts.is_empty() { "every call".to_owned() } else { parts.join(", ") }
    }
}

/// Whether a command is one program with its arguments: then its beginning says what it does. Anything a shell would
/// expand or chain could do something else behind it.
pub fn is_simple_command(command: &str) -> bool {
    !command.contains([';', '|', '&', '$', '(', ')', '<', '>', '`', '\n', '\\', '{', '}', '='])
}

/// Programs that run another one which they are given.
const RUNNERS: &[&str] = &[
    "builtin", "busybox", "command", "doas", "env", "eval", "exec", "ionice", "nice", "nohup", "parallel", "setsid",
    "stdbuf", "sudo", "time", "timeout", "xargs",
];

/// Words of the shell after which a program begins.
const WORDS: &[&str] = &["!", "do", "elif", "else", "if", "then", "until", "while"];

/// What a command could run, each as program and arguments. Generous, because what is forbidden is looked for here; who wants
/// to hide a program from it can, and the sandbox does not care.
fn programs(command: &str) -> Vec<String> {
    let joined = command.replace("\\\n", " ");
    // Quotes and backslashes can stand in the middle of a word: `r\m`, `r''m`.
    let bare: String = joined.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let cut = |c: char| matches!(c, ';' | '|' | '&' | '(' | ')' | '`' | '\n' | '{' | '}' | '$');
    let quoted = |c: char| cut(c) || matches!(c, '"' | '\'');
    let parts = joined.split(quoted).chain(bare.split(cut));
    parts.flat_map(|part| begun(&part.split_whitespace().collect::<Vec<_>>())).collect()
}

/// The programs that a list of words begins: behind assignments, redirections, words of the shell and runners of others.
fn begun(words: &[&str]) -> Vec<String> {
    let passing = |word: &&&str| {
        let assigns =
            word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'));
        assigns || word.contains(['<', '>']) || WORDS.contains(word)
    };
    let begin = words.iter().take_while(passing).count();
    let Some((first, rest)) = words[begin..].split_first() else { return Vec::new() };
    let program = first.rsplit('/').next().unwrap_or(first);
    let mut found = vec![std::iter::once(&program).chain(rest).copied().collect::<Vec<_>>().join(" ")];
    if RUNNERS.contains(&program) {
        // Which of its words is the program depends on the runner, so it could be any.
        found.extend((0..rest.len()).flat_map(|at| begun(&rest[at..])));
    }
    found
}

/// Whether a text begins with these words.
fn begins(text: &str, prefix: &str) -> bool {
    let mut words = text.split_whitespace();
    prefix.split_whitespace().all(|word| words.next() == Some(word))
}

/// `*` and `?` stay within a directory, `**` goes through them. A pattern without a slash is meant for every directory.
fn glob_matches(glob: &str, path: &str) -> bool {
    let anchored = glob.trim_start_matches("./");
    let glob = if anchored.contains('/') { anchored.to_owned() } else { format!("**/{anchored}") };
    // Who looks into a directory looks at what is in it.
    let itself = glob.strip_suffix("/**").is_some_and(|dir| matches_from(dir.as_bytes(), path.as_bytes()));
    itself || matches_from(glob.as_bytes(), path.as_bytes())
}

fn matches_from(glob: &[u8], path: &[u8]) -> bool {
    match (glob, path) {
        ([], rest) => rest.is_empty(),
        ([b'*', b'*', b'/', glob @ ..], _) => {
            let starts =
                std::iter::once(0).chain(path.iter().enumerate().filter(|(_, c)| **c == b'/').map(|(at, _)| at + 1));
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
mod tests {
    use super::*;

    fn rule(tool: &str, command: &str, path: &str, decision: Decision) -> Rule {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Rule { tool: some(tool), command: some(command), path: some(path), decision }
    }

    fn check(ask: AskWhen, rules: &[Rule], subject: Subject<'_>, expected: &str) {
        let approvals = Approvals { ask, rules: rules.to_vec(), park: false };
        let got = match approvals.rule_on(&subject) {
            Ruling::Allow => "allow",
            Ruling::Deny(_) => "deny",
            Ruling::Ask(_) => "ask",
        };
        assert_eq!(got, expected, "{ask:?} {subject:?} {rules:?}");
    }

    fn command(text: &str) -> Subject<'_> {
        Subject::Command(text)
    }

    fn write(path: &str) -> Subject<'static> {
        Subject::file("edit", path, true, "/w")
    }

    fn view(path: &str) -> Subject<'static> {
        Subject::file("view", path, false, "/w")
    }

    #[test]
    fn without_rules_only_always_asks() {
        check(AskWhen::Never, &[], command("ls"), "allow");
        check(AskWhen::WhenNeeded, &[], command("ls"), "allow");
        check(AskWhen::Always, &[], command("ls"), "ask");
        check(AskWhen::Always, &[], write("a"), "ask");
        check(AskWhen::Always, &[], view("a"), "allow");
    }

    #[test]
    fn refusing_goes_before_asking_and_asking_before_allowing() {
        let rules = [
            rule("bash", "git", "", Decision::Allow),
            rule("bash", "git push", "", Decision::Ask),
            rule("bash", "git push --force", "", Decision::Deny),
        ];
        check(AskWhen::WhenNeeded, &rules, command("git status"), "allow");
        check(AskWhen::WhenNeeded, &rules, command("git push origin"), "ask");
        check(AskWhen::WhenNeeded, &rules, command("git push --force"), "deny");
        check(AskWhen::Never, &rules, command("git push"), "deny");
        check(AskWhen::Always, &rules, command("git status"), "allow");
    }

    #[test]
    fn a_rule_that_allows_the_very_command_goes_before_one_that_asks_about_its_kind() {
        let mut rules =
            vec![rule("bash", "git push", "", Decision::Ask), rule("bash", "git push origin", "", Decision::Allow)];
        for ask in [AskWhen::Never, AskWhen::WhenNeeded, AskWhen::Always] {
            check(ask, &rules, command("git push  origin"), "allow");
        }
        check(AskWhen::WhenNeeded, &rules, command("git push origin main"), "ask");
        check(AskWhen::WhenNeeded, &rules, command("git push"), "ask");
        rules.push(rule("", "git push", "", Decision::Deny));
        check(AskWhen::WhenNeeded, &rules, command("git push origin"), "deny");
    }

    #[test]
    fn a_prefix_is_whole_words_and_allows_only_simple_commands() {
        let allow = [rule("bash", "cargo test", "", Decision::Allow)];
        check(AskWhen::Always, &allow, command("cargo test -p kernel"), "allow");
        check(AskWhen::Always, &allow, command("cargo tests"), "ask");
        for tail in ["; rm x", " && rm x", " | sh", " $(rm x)", " `rm x`", "\nrm x", " > /etc/x", " &"] {
            check(AskWhen::Always, &allow, command(&format!("cargo test{tail}")), "ask");
        }
        let deny = [rule("", "rm", "", Decision::Deny)];
        for text in [
            "env rm x",
            "if true; then rm x; fi",
            "\\rm x",
            "X=1 rm x",
            "! rm x",
            ">/dev/null rm x",
            "r\\m x",
            "time rm x",
            "/bin/rm x",
            "r''m x",
            "ls | xargs -0 rm",
            "sudo -u me rm x",
            "timeout 5 rm x",
            "\\\nrm x",
            "while :; do rm x; done",
        ] {
            check(AskWhen::Never, &deny, command(text), "deny");
        }
        for text in ["rm x", "ls; rm x", "ls && rm x", "echo $(rm x)", "true\nrm x", "  rm x", "bash -c 'rm x'"] {
            check(AskWhen::Never, &deny, command(text), "deny");
        }
        check(AskWhen::Never, &deny, command("echo rm"), "allow");
        check(AskWhen::Never, &deny, command("rmdir x"), "allow");
    }

    #[test]
    fn paths_are_globs_and_say_nothing_about_commands() {
        let rules = [rule("edit", "", "src/**/*.rs", Decision::Deny), rule("", "", ".env", Decision::Deny)];
        check(AskWhen::Never, &rules, write("src/a.rs"), "deny");
        check(AskWhen::Never, &rules, write("src/a/b/c.rs"), "deny");
        check(AskWhen::Never, &rules, write("./src/a.rs"), "deny");
        check(AskWhen::Never, &rules, write("src/a.txt"), "allow");
        check(AskWhen::Never, &rules, write("deep/er/.env"), "deny");
        check(AskWhen::Never, &rules, write("x.env"), "allow");
        check(AskWhen::Never, &rules, view(".env"), "deny");
        check(AskWhen::Never, &rules, view("src/a.rs"), "allow");
        check(AskWhen::Never, &rules, command("cat .env"), "allow");
    }

    #[test]
    fn a_path_is_what_it_is_below_the_directory_however_it_is_spelt() {
        let rules = [rule("edit", "", "src/**", Decision::Deny), rule("edit", "", "docs/**", Decision::Allow)];
        for path in ["src/a", "./src/a", "/w/src/a", "/w/./src//a", "docs/../src/a", "/w/docs/../src/a"] {
            check(AskWhen::Always, &rules, write(path), "deny");
        }
        check(AskWhen::Always, &rules, write("docs/a"), "allow");
        check(AskWhen::Always, &rules, write("/w/docs/a"), "allow");
        for path in ["docs/../b", "docs/x/../a", "/elsewhere/docs/a", "/wide/docs/a"] {
            check(AskWhen::Always, &rules, write(path), "ask");
        }
    }

    #[test]
    fn globs_stay_within_a_directory_unless_they_say_otherwise() {
        for (glob, path, expected) in [
            ("a/*.rs", "a/b.rs", true),
            ("a/*.rs", "a/b/c.rs", false),
            ("a/**", "a/b/c.rs", true),
            ("a/**", "a", true),
            ("a/**", "ab", false),
            ("**/c.rs", "c.rs", true),
            ("a?c", "abc", true),
            ("a/?", "a//", false),
            ("*", "deep/file", true),
            ("x/**/y", "x/y", true),
        ] {
            assert_eq!(glob_matches(glob, path), expected, "{glob} {path}");
        }
    }
}
