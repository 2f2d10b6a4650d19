//! `[[rules]]` of a configuration file: which calls are allowed, refused or asked about. Every mistake is told with file,
//! line and what to write instead, and so is a rule that could never match. What a rule means for a call is the
//! kernel's business.

use std::ops::Range;

use convoke_kernel::{Approvals, AskWhen, Decision, Rule, is_simple_command};
use toml::Spanned;
use toml::de::DeValue;

use super::file::{Owner, Reader};
use super::layers::Layers;
use super::origin::Origin;
use super::value::Value;
use crate::args::ApprovalArgs;
use crate::failure::Failure;

/// When a person is asked, in the words of flags and files.
pub(super) const ASK_WORDS: &[&str] = &["never", "when-needed", "always"];

const MEMBERS: [&str; 4] = ["tool", "command", "path", "decision"];
const FILE_TOOLS: [&str; 4] = ["edit", "view", "glob", "grep"];

/// What a person laid down about calls, before it is known whether anybody sits there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asking {
    /// `None` leaves it to whether somebody sits there.
    pub(crate) ask: Option<AskWhen>,
    /// The rules, the user's before the project's.
    pub(crate) rules: Vec<Rule>,
    /// Whether an agent whose question nobody can answer waits.
    pub(crate) park: bool,
}

impl Asking {
    /// What a new session goes by; `somebody` says whether there is anybody to ask.
    pub(crate) fn approvals(&self, somebody: bool) -> Approvals {
        let usual = if somebody || self.park { AskWhen::WhenNeeded } else { AskWhen::Never };
        Approvals { ask: self.ask.unwrap_or(usual), rules: self.rules.clone(), park: self.park }
    }
}

/// Puts what the flags say over what is there.
pub(super) fn put_flags(layers: &mut Layers, args: &ApprovalArgs) {
    if let Some(ask) = args.ask {
        layers.put("ask", Value::Text(ask.word().to_owned()), Origin::Flag("--ask"));
    }
}

/// What the settled layers say about asking.
pub(super) fn asking(layers: &Layers, args: &ApprovalArgs) -> Result<Asking, Failure> {
    let ask = layers.text("ask").and_then(when);
    if args.park && ask == Some(AskWhen::Never) {
        let message =
            format!("--park has nothing to park: nobody is ever asked (ask = never, {})", layers.origin("ask"));
        return Err(Failure::usage(message).hint("say --ask when-needed or --ask always with it, or leave --park out"));
    }
    let rules = layers.rules().iter().map(|(rule, _)| rule.clone()).collect();
    Ok(Asking { ask, rules, park: args.park })
}

fn when(word: &str) -> Option<AskWhen> {
    match word {
        "never" => Some(AskWhen::Never),
        "when-needed" => Some(AskWhen::WhenNeeded),
        "always" => Some(AskWhen::Always),
        _ => None,
    }
}

/// A rule on one line, as `convoke config show` has it.
pub(super) fn show(rule: &Rule) -> String {
    let decision = match rule.decision {
        Decision::Allow => "allow",
        Decision::Deny => "deny",
        Decision::Ask => "ask",
    };
    let members = [("tool", &rule.tool), ("command", &rule.command), ("path", &rule.path)];
    let said: Vec<String> =
        members.iter().filter_map(|(name, value)| Some(format!("{name} = {:?}", value.as_ref()?))).collect();
    let what = if said.is_empty() { "every call".to_owned() } else { said.join(", ") };
    format!("{decision}: {what}")
}

/// Whether a command is one program with its arguments, as an allow rule must have it. Never more than the kernel takes
/// for one: quotes and marks that a terminal would obey are left out here too, because what is remembered must be what
/// was read.
pub(crate) fn is_simple(command: &str) -> bool {
    const SPECIAL: &str = "\"'#*?[]~!";
    let plain = !command.contains(|c: char| SPECIAL.contains(c) || c.is_control());
    plain && is_simple_command(command) && !command.trim().is_empty()
}

/// Reads the value of `rules`.
pub(super) fn read(
    reader: &Reader<'_>,
    at: &Range<usize>,
    value: &Spanned<DeValue<'_>>,
) -> Result<Vec<(Rule, Origin)>, Failure> {
    let shape = || {
        Failure::usage(format!("{}: 'rules' must be a list of tables", reader.place(at)))
            .hint("begin each with [[rules]]")
    };
    let list = value.get_ref().as_array().ok_or_else(shape)?;
    list.iter().map(|entry| rule(reader, entry)).collect()
}

/// Reads one rule.
fn rule(reader: &Reader<'_>, entry: &Spanned<DeValue<'_>>) -> Result<(Rule, Origin), Failure> {
    let at = entry.span();
    let wrong = |at: &Range<usize>, what: &str| Failure::usage(format!("{}: {what}", reader.place(at)));
    let Some(table) = entry.get_ref().as_table() else {
        return Err(wrong(&at, "a rule must be a table").hint("begin it with [[rules]]"));
    };
    let mut texts: [Option<(String, Range<usize>)>; 4] = Default::default();
    for (name, value) in table {
        let Some(place) = MEMBERS.iter().position(|member| *member == name.get_ref().as_ref()) else {
            return Err(reader.unknown(&name.span(), name.get_ref(), MEMBERS.to_vec()));
        };
        let text = value.get_ref().as_str().filter(|text| !text.trim().is_empty());
        let must =
            || wrong(&name.span(), &format!("'{}' of a rule must be a text with something in it", MEMBERS[place]));
        texts[place] = Some((text.ok_or_else(must)?.to_owned(), name.span()));
    }
    let [tool, command, path, decision] = texts;
    let Some((decision, decided_at)) = decision else {
        return Err(wrong(&at, "a rule without a 'decision'").hint("write decision = \"allow\", \"deny\" or \"ask\""));
    };
    let decision = match decision.as_str() {
        "allow" => Decision::Allow,
        "deny" => Decision::Deny,
        "ask" => Decision::Ask,
        other => {
            let what = format!("'{other}' is no decision: write allow, deny or ask");
            return Err(wrong(&decided_at, &what));
        }
    };
    if let (Decision::Allow, Owner::Project { user_file }) = (decision, reader.owner()) {
        let what = "a project cannot allow anything: whoever wrote it would decide what is run here without asking";
        return Err(
            wrong(&decided_at, what).hint(format!("write deny or ask, or move the rule to {}", user_file.display()))
        );
    }
    if let Some((tool, at)) = &tool
        && tool != "bash"
        && !FILE_TOOLS.contains(&tool.as_str())
    {
        let what = format!("there is no tool '{tool}' for rules: write bash, edit, view, glob or grep");
        return Err(wrong(at, &what));
    }
    let is_bash = tool.as_ref().map(|(tool, _)| tool == "bash");
    match (&command, &path) {
        (Some((_, at)), _) if path.is_some() || is_bash == Some(false) => {
            let what = "this rule never matches: 'command' is for the tool bash alone, 'path' for the others";
            return Err(wrong(at, what).hint("make two rules of it, or leave one of them out"));
        }
        (_, Some((_, at))) if is_bash == Some(true) => {
            let what = "this rule never matches: commands have no 'path', whatever files they name";
            return Err(wrong(at, what).hint("the sandbox decides what a command can reach (docs/sandbox.md)"));
        }
        (Some((text, at)), _) if decision == Decision::Allow && !is_simple_command(text) => {
            let what = "this rule never matches: only one program with its arguments can be allowed by its beginning";
            return Err(wrong(at, what).hint("allow its programs one by one"));
        }
        _ => {}
    }
    let text = |member: Option<(String, Range<usize>)>| member.map(|(text, _)| text);
    let rule = Rule { tool: text(tool), command: text(command), path: text(path), decision };
    Ok((rule, reader.origin(&at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_is_for_where_somebody_sits_unless_somebody_says_otherwise() {
        let check = |ask: Option<AskWhen>, park: bool, somebody: bool, expected: AskWhen| {
            let asking = Asking { ask, park, rules: Vec::new() };
            assert_eq!(asking.approvals(somebody).ask, expected, "{asking:?} {somebody}");
        };
        check(None, false, true, AskWhen::WhenNeeded);
        check(None, false, false, AskWhen::Never);
        check(None, true, false, AskWhen::WhenNeeded);
        check(Some(AskWhen::Never), false, true, AskWhen::Never);
        check(Some(AskWhen::Always), true, false, AskWhen::Always);
    }

    #[test]
    fn only_what_is_one_plain_program_is_simple() {
        for text in ["ls", "cargo test -p kernel", "git push origin main"] {
            assert!(is_simple(text), "{text}");
        }
        for text in
            ["", " ", "a; b", "a | b", "a && b", "a $(b)", "a > b", "a\nb", "A=1 b", "a 'b c'", "a *", "a\u{1b}b"]
        {
            assert!(!is_simple(text), "{text:?}");
        }
    }
}
