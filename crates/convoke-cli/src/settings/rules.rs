//! `[[rules]]` of a configuration file: which calls are allowed, refused or asked about. Every mistake is
//! told with file, line and what to write instead, and so is a rule that could never match. What a rule means
//! for a call is the kernel's business.

use std::ops::Range;

use convoke_kernel::{
    Approvals, AskWhen, COMMANDS, Decision, Part, Rule, ToolRequest, is_simple_command, parts,
};
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

pub(super) const MEMBERS: [&str; 4] = ["tool", "command", "path", "decision"];

/// What a person laid down about calls, before it is known whether there is a person to ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asking {
    /// `None` leaves it to whether there is a person to ask.
    pub(crate) ask: Option<AskWhen>,
    /// The rules, the user's before the project's.
    pub(crate) rules: Vec<Rule>,
    /// Whether an agent waits when there is no person to answer its question.
    pub(crate) park: bool,
}

impl Asking {
    /// What a new session goes by; the argument says whether there is a person to ask.
    pub(crate) fn approvals(&self, somebody: bool) -> Approvals {
        let usual = if somebody || self.park { AskWhen::WhenNeeded } else { AskWhen::Never };
        Approvals { ask: self.ask.unwrap_or(usual), rules: self.rules.clone(), park: self.park }
    }

    /// What is forbidden now, whatever a session was begun with: rules that deny, and no others.
    pub(crate) fn forbidden(&self) -> Approvals {
        let denies = |rule: &&Rule| rule.decision == Decision::Deny;
        Approvals { rules: self.rules.iter().filter(denies).cloned().collect(), ..Approvals::default() }
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
        let message = format!(
            "--wait-for-answers has nothing to wait for: no person is ever asked (ask = never, {})",
            layers.origin("ask")
        );
        return Err(Failure::usage(message)
            .hint("say --ask when-needed or --ask always with it, or leave --wait-for-answers out"));
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

/// Whether a command is one program with its arguments, as an allow rule must have it. Never more than the
/// kernel takes for one: quotes and marks that a terminal would obey are left out here too, because what is
/// remembered must be what was read.
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
        let must = || {
            wrong(
                &name.span(),
                &format!("'{}' of a rule must be a text with something in it", MEMBERS[place]),
            )
        };
        texts[place] = Some((text.ok_or_else(must)?.to_owned(), name.span()));
    }
    let [tool, command, path, decision] = texts;
    let Some((decision, decided_at)) = decision else {
        return Err(
            wrong(&at, "a rule without a 'decision'").hint("write decision = \"allow\", \"deny\" or \"ask\"")
        );
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
        let what = "a project cannot allow anything: its author would decide what is run here without asking";
        return Err(wrong(&decided_at, what)
            .hint(format!("write deny or ask, or move the rule to {}", user_file.display())));
    }
    if let Some((tool, at)) = &tool
        && !parts().any(|part| part.name == tool)
    {
        let what = format!("there is no tool '{tool}' for rules: write {}", tools_of_rules());
        return Err(wrong(at, &what));
    }
    let is_bash = tool.as_ref().map(|(tool, _)| tool == COMMANDS.name);
    match (&command, &path) {
        (Some((_, at)), _) if path.is_some() || is_bash == Some(false) => {
            let what = "this rule never matches: 'command' is for the tool bash alone, 'path' for the others";
            return Err(wrong(at, what).hint("make two rules of it, or leave one of them out"));
        }
        (_, Some((_, at))) if is_bash == Some(true) => {
            let what = "this rule never matches: commands have no 'path', whatever files they name";
            return Err(
                wrong(at, what).hint("the sandbox decides what a command can reach (docs/sandbox.md)")
            );
        }
        (Some((text, at)), _) if decision == Decision::Allow && !is_simple_command(text) => {
            let what = "this rule never matches: only one program with its arguments can be allowed by its \
                beginning";
            return Err(wrong(at, what).hint("allow its programs one by one"));
        }
        _ => {}
    }
    if let Some((text, at)) = &command {
        command_matches(text, decision).map_err(|never| never.at(reader, at))?;
    }
    if let Some((text, at)) = &path {
        path_matches(text).map_err(|never| never.at(reader, at))?;
    }
    let text = |member: Option<(String, Range<usize>)>| member.map(|(text, _)| text);
    let rule = Rule { tool: text(tool), command: text(command), path: text(path), decision };
    Ok((rule, reader.origin(&at)))
}

/// The tools that a rule can name, those that change something first.
fn tools_of_rules() -> String {
    let (mut names, others): (Vec<&Part>, Vec<&Part>) = parts().partition(|part| part.writes);
    names.extend(others);
    let names: Vec<&str> = names.iter().map(|part| part.name).collect();
    let (last, before) = names.split_last().unwrap_or((&"", &[]));
    format!("{} or {last}", before.join(", "))
}

/// Why a rule could never match, or not what it was written for, and what to write instead.
#[derive(Debug)]
struct Never {
    why: String,
    instead: String,
}

impl Never {
    fn at(self, reader: &Reader<'_>, at: &Range<usize>) -> Failure {
        Failure::usage(format!("{}: this rule never matches: {}", reader.place(at), self.why))
            .hint(self.instead)
    }
}

/// Whether a command could begin like this.
fn command_matches(text: &str, decision: Decision) -> Result<(), Never> {
    let is_pattern = |word: &&str| word.contains(['*', '?', '[']);
    if let Some(pattern) = text.split_whitespace().find(is_pattern) {
        let before: Vec<&str> = text.split_whitespace().take_while(|word| !is_pattern(word)).collect();
        let instead = match before.as_slice() {
            [] => "for every command leave 'command' out and write tool = \"bash\"".to_owned(),
            before => format!(
                "a command is known by its beginning, whatever follows: write command = \"{}\"",
                before.join(" ")
            ),
        };
        return Err(Never {
            why: format!("'command' is compared word by word, and '{pattern}' is no pattern in it"),
            instead,
        });
    }
    // A rule that forbids a command must fit at least that very command.
    let itself = Rule { tool: None, command: Some(text.to_owned()), path: None, decision: Decision::Deny };
    let rules = Approvals { rules: vec![itself], ..Approvals::default() };
    let request = ToolRequest::Bash { command: text.to_owned() };
    // What is known only when it runs fits every rule, and says nothing about this one.
    let unknown = text.contains(['$', '`', '{']);
    if decision != Decision::Allow && (unknown || rules.forbids(&request, "/").is_none()) {
        let why =
            "commands are looked at program by program, each by its bare name and without quotes".to_owned();
        let instead = "write one rule for each program, such as command = \"git push\"".to_owned();
        return Err(Never { why, instead });
    }
    Ok(())
}

/// Whether a file tool could be about a path like this.
fn path_matches(glob: &str) -> Result<(), Never> {
    let never = |why: &str, instead: &str| Err(Never { why: why.to_owned(), instead: instead.to_owned() });
    let parts: Vec<&str> = glob.trim_start_matches("./").split('/').collect();
    if glob.starts_with(['/', '~']) {
        return never(
            "'path' is relative to the directory that is worked in, and file tools reach nothing outside of \
                it",
            "write src/** for everything in its directory src",
        );
    }
    if parts.contains(&"..") {
        return never(
            "file tools reach nothing outside the directory that is worked in, and paths are compared \
                without '..'",
            "write the path as it is below that directory, such as src/**",
        );
    }
    if parts.iter().any(|part| part.is_empty() || *part == ".") {
        return never(
            "no path has an empty part or a '.' in it",
            "write src/** for everything in a directory src",
        );
    }
    if glob.contains(['[', '{']) {
        return never(
            "there are no sets in a 'path', only *, ? and **",
            "write one rule for each, and ? for a bracket in a name",
        );
    }
    Ok(())
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

    fn told(got: Result<(), Never>) -> Option<String> {
        got.err().map(|never| format!("{}; {}", never.why, never.instead))
    }

    #[test]
    fn a_command_that_no_call_could_begin_with_is_told_with_what_to_write() {
        let check = |text: &str, decision: Decision, expected: Option<&str>| {
            let told = told(command_matches(text, decision));
            match expected {
                None => assert_eq!(told, None, "{text}"),
                Some(says) => {
                    assert!(told.as_ref().is_some_and(|told| told.contains(says)), "{text}: {told:?}")
                }
            }
        };
        for decision in [Decision::Allow, Decision::Ask, Decision::Deny] {
            check("git push", decision, None);
            check("env rm", decision, None);
            check("cargo test -p kernel", decision, None);
            check("git *", decision, Some("write command = \"git\""));
            check("rm -rf /tmp/?", decision, Some("write command = \"rm -rf\""));
            check("*", decision, Some("tool = \"bash\""));
        }
        for text in ["a && b", "a | b", "a; b", "echo $(b)", "/bin/rm", "X=1 make", "git commit -m \"x\""] {
            check(text, Decision::Deny, Some("program by program"));
            check(text, Decision::Ask, Some("one rule for each program"));
        }
    }

    #[test]
    fn a_path_that_no_file_tool_could_be_about_is_told_with_what_to_write() {
        let check = |glob: &str, expected: Option<&str>| {
            let told = told(path_matches(glob));
            match expected {
                None => assert_eq!(told, None, "{glob}"),
                Some(says) => {
                    assert!(told.as_ref().is_some_and(|told| told.contains(says)), "{glob}: {told:?}")
                }
            }
        };
        for glob in ["src/**", "*.rs", "./docs/a.md", ".env", "**/x?.txt", "a..b/c"] {
            check(glob, None);
        }
        check("/home/me/project/src/**", Some("relative to the directory"));
        check("~/x", Some("relative to the directory"));
        check("../x", Some("outside"));
        check("src/../x", Some("without '..'"));
        check("src/", Some("src/**"));
        check("src//x", Some("empty part"));
        check("src/[ab].rs", Some("no sets"));
        check("*.{rs,toml}", Some("no sets"));
    }

    #[test]
    fn only_what_is_one_plain_program_is_simple() {
        for text in ["ls", "cargo test -p kernel", "git push origin main"] {
            assert!(is_simple(text), "{text}");
        }
        for text in [
            "", " ", "a; b", "a | b", "a && b", "a $(b)", "a > b", "a\nb", "A=1 b", "a 'b c'", "a *",
            "a\u{1b}b",
        ] {
            assert!(!is_simple(text), "{text:?}");
        }
    }
}
