//! Kinds of agents: what a file says an agent of a kind is told and may use. A file can narrow what an agent
//! may do and never widen it. Nothing is started here.

use std::path::PathBuf;

use convoke_kernel::{Part, Tools, known_tools, parts};

use super::LibraryError;
use super::folder::{LibraryFile, Origin};
use super::front_matter::{self, Fault, Field, Page};

/// A kind of agent, as `agentType` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentKind {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What an agent of this kind is told beside its task; may be empty.
    pub instructions: String,
    /// The only tools it may use, as they are written; `None` leaves all.
    pub tools: Option<Vec<String>>,
    /// The model it asks; `None` is the session's.
    pub model: Option<String>,
    /// How hard it tries; `None` is the session's.
    pub effort: Option<String>,
    /// Whether it changes nothing that stays.
    pub read_only: bool,
    /// Whether it is told what the project's memory files say. One that only looks around needs no rules of
    /// how to work there.
    pub memory: bool,
    /// What its author should know, such as a word that means nothing here and is left out.
    pub warnings: Vec<String>,
}

/// One file of a folder of kinds, or a built-in kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindEntry {
    /// Its name or, if that cannot be read, its file's name without the ending.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Where it stands; `None` for a built-in one.
    pub path: Option<PathBuf>,
    /// Why it cannot be used.
    pub problem: Option<String>,
    /// What its author should know; it can be used all the same.
    pub warnings: Vec<String>,
    /// Whether a nearer one of the same name takes its place.
    pub hidden: bool,
}

impl KindEntry {
    /// The entry of a file; `None` for one that is no kind and does not try to be.
    pub(super) fn of(file: LibraryFile, origin: Origin) -> Option<Self> {
        if file.text.as_ref().is_ok_and(|text| !front_matter::begins(text)) {
            return None;
        }
        let stem = file.stem.clone();
        let path = Some(file.path.clone());
        let (name, description, warnings, problem) = match read(file) {
            Ok(kind) => (kind.name, kind.description, kind.warnings, None),
            Err(error) => (stem, String::new(), Vec::new(), Some(error.to_string())),
        };
        Some(Self { name, description, origin, path, problem, warnings, hidden: false })
    }
}

/// The efforts there are.
const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];

/// What agents elsewhere can be denied and no agent here has: denying it takes nothing away.
const ELSEWHERE: &[&str] = &[
    "agent",
    "askuserquestion",
    "notebookread",
    "skill",
    "task",
    "todowrite",
    "webfetch",
    "websearch",
    "workflow",
];

/// The kinds that are always there.
pub(super) fn built_in() -> Vec<AgentKind> {
    let general = AgentKind {
        name: "general-purpose".to_owned(),
        description: "An agent with every tool and no instructions of its own.".to_owned(),
        instructions: String::new(),
        tools: None,
        model: None,
        effort: None,
        read_only: false,
        memory: true,
        warnings: Vec::new(),
    };
    let explore = AgentKind {
        name: "Explore".to_owned(),
        description: "Finds its way around and says what is where; changes nothing.".to_owned(),
        instructions: EXPLORE.to_owned(),
        tools: Some(looking()),
        read_only: true,
        memory: false,
        ..general.clone()
    };
    vec![general, explore]
}

/// Everything but what is there to write files: commands work on a copy.
fn looking() -> Vec<String> {
    let (commands, others): (Vec<&Part>, Vec<&Part>) = parts().partition(|part| part.is_command);
    let reading = others.into_iter().filter(|part| !part.writes);
    reading.chain(commands).map(|part| part.name.to_owned()).collect()
}

const EXPLORE: &str = "You find things out and change nothing. Look broadly first (names, then contents), \
    then read what matters. Say what you found with paths and line numbers, and say what you looked for and \
    did not find.";

/// The kind that stands in a file.
pub(super) fn read(file: LibraryFile) -> Result<AgentKind, LibraryError> {
    let LibraryFile { path, stem, text } = file;
    let text = match text {
        Ok(text) => text,
        Err(why) => return Err(LibraryError::Unreadable { path, why }),
    };
    kind(&stem, &text).map_err(|Fault { line, why }| LibraryError::FrontMatter { path, line, why })
}

fn kind(stem: &str, text: &str) -> Result<AgentKind, Fault> {
    let Page { fields, body } = front_matter::page(text)?;
    let field = |key: &str| fields.iter().find(|field| field.key == key);
    let one = |key: &str| field(key).map_or(Ok(None), Field::text);
    let mut warnings = Vec::new();
    let mut effort = one("effort")?;
    if let Some(odd) = effort.take_if(|effort| !EFFORTS.contains(&effort.as_str())) {
        warnings.push(format!(
            "'{odd}' is no effort, so the session's is used: write one of {}",
            EFFORTS.join(", ")
        ));
    }
    let mut tools = field("tools").map_or(Ok(None), Field::list)?.filter(|tools| tools != &["*"]);
    if let Some(field) = field("disallowedTools")
        && let Some(names) = field.list()?
    {
        let (denied, unknown) = denied(&names);
        warnings.extend(unknown.iter().map(|name| unknown_denied(name)));
        let given = tools.unwrap_or_else(|| own(&Tools::all()));
        tools = Some(given.into_iter().flat_map(|tool| left_of(tool, &denied)).collect());
    }
    Ok(AgentKind {
        name: one("name")?.unwrap_or_else(|| stem.to_owned()),
        description: one("description")?.unwrap_or_default(),
        instructions: body.trim().to_owned(),
        tools,
        model: one("model")?.filter(|model| model != "inherit"),
        effort,
        read_only: one("permissionMode")?.is_some_and(|mode| mode == "plan"),
        memory: true,
        warnings,
    })
}

/// The tools that these names deny, and the names that are unknown here. Files are written for several
/// products: what has no name here is not here, so denying it takes nothing away. A slip of the pen looks the
/// same, so it is told.
fn denied(names: &[String]) -> (Vec<String>, Vec<&String>) {
    let mut denied = Vec::new();
    let mut strange = Vec::new();
    for name in names {
        let plain = plain(name);
        let (tools, unknown) = known_tools(std::slice::from_ref(&plain));
        if !unknown.is_empty() && !ELSEWHERE.contains(&plain.as_str()) && !plain.starts_with("mcp__") {
            strange.push(name);
        }
        denied.extend(own(&tools));
    }
    (denied, strange)
}

fn unknown_denied(name: &str) -> String {
    let known = own(&Tools::all()).join(", ");
    format!(
        "'{name}' is no tool here, so denying it takes nothing away: there are {known}, and * for all of them"
    )
}

/// What is left of a tool as it is written: itself, if nothing of it is denied.
fn left_of(tool: String, denied: &[String]) -> Vec<String> {
    let tools = own(&known_tools(&[plain(&tool)]).0);
    if tools.iter().any(|tool| denied.contains(tool)) {
        tools.into_iter().filter(|tool| !denied.contains(tool)).collect()
    } else {
        vec![tool]
    }
}

/// A name as it can be looked up. What is denied for some arguments only is denied altogether.
fn plain(name: &str) -> String {
    let name = name.split('(').next().unwrap_or(name).trim().to_ascii_lowercase();
    if name == "notebookedit" { "edit".to_owned() } else { name }
}

fn own(tools: &Tools) -> Vec<String> {
    tools.names().into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "---\nname: auditor\ndescription: Looks at money.\n---\n\nBe exact.\n";

    #[track_caller]
    fn check(header: &str, expected: impl FnOnce(&mut AgentKind)) {
        let mut kind_expected = kind("file", PLAIN).unwrap();
        expected(&mut kind_expected);
        let text = format!("---\nname: auditor\ndescription: Looks at money.\n{header}\n---\n\nBe exact.\n");
        assert_eq!(kind("file", &text).unwrap(), kind_expected, "{header}");
    }

    fn names(tools: &[&str]) -> Option<Vec<String>> {
        Some(tools.iter().map(|tool| (*tool).to_owned()).collect())
    }

    #[test]
    fn a_kind_is_read_from_what_stands_before_and_after_the_lines() {
        let expected = AgentKind {
            name: "auditor".into(),
            description: "Looks at money.".into(),
            instructions: "Be exact.".into(),
            tools: None,
            model: None,
            effort: None,
            read_only: false,
            memory: true,
            warnings: Vec::new(),
        };
        assert_eq!(kind("file", PLAIN).unwrap(), expected);
        assert_eq!(kind("file", &PLAIN.replace('\n', "\r\n")).unwrap(), expected);
        assert_eq!(kind("file", &format!("\u{feff}{PLAIN}")).unwrap(), expected);
        check("", |_| {});
        check("tools: Read, Grep", |kind| kind.tools = names(&["Read", "Grep"]));
        check("tools: [Read, \"Grep\"]", |kind| kind.tools = names(&["Read", "Grep"]));
        check("tools:\n  - Read\n  - 'Grep' # both\n", |kind| kind.tools = names(&["Read", "Grep"]));
        check("tools:\n- Read\n", |kind| kind.tools = names(&["Read"]));
        check("tools: Bash(git log, git diff), Read", |kind| {
            kind.tools = names(&["Bash(git log, git diff)", "Read"])
        });
        check("tools: []", |kind| kind.tools = names(&[]));
        check("tools: \"*\"", |_| {});
        check("model: haiku", |kind| kind.model = Some("haiku".into()));
        check("model: inherit", |_| {});
        check("effort: high", |kind| kind.effort = Some("high".into()));
        check("permissionMode: plan", |kind| kind.read_only = true);
        check("permissionMode: acceptEdits", |_| {});
        check("color: red\nhooks:\n  Stop:\n    - command: [\"x\"\n", |_| {});
    }

    #[test]
    fn tools_that_are_denied_are_taken_from_those_there_are() {
        check("disallowedTools: Write", |kind| kind.tools = names(&["bash", "view", "glob", "grep"]));
        check("disallowedTools: Bash(rm:*)", |kind| kind.tools = names(&["view", "edit", "glob", "grep"]));
        check("tools: Read, Bash\ndisallowedTools: [Bash]", |kind| kind.tools = names(&["Read"]));
        check("disallowedTools: bASH, write, LS", |kind| kind.tools = names(&["glob", "grep"]));
        check("disallowedTools: NotebookEdit", |kind| kind.tools = names(&["bash", "view", "glob", "grep"]));
        check("disallowedTools: str_replace_based_edit_tool", |kind| {
            kind.tools = names(&["bash", "glob", "grep"])
        });
        check("tools: str_replace_based_edit_tool\ndisallowedTools: Edit", |kind| {
            kind.tools = names(&["view"])
        });
        check("tools: Read, Grep\ndisallowedTools: \"*\"", |kind| kind.tools = names(&[]));
        check("disallowedTools: [\"*\"]", |kind| kind.tools = names(&[]));
        // A tool that no agent here has need not be taken away.
        check("tools: Read\ndisallowedTools: WebFetch, Task, mcp__x__y", |kind| {
            kind.tools = names(&["Read"])
        });
    }

    #[test]
    fn a_kind_without_a_name_is_called_as_its_file() {
        assert_eq!(kind("helper", "---\ndescription: x\n---\n").unwrap().name, "helper");
    }

    #[test]
    fn what_means_nothing_here_is_left_out_and_told() {
        let check = |header: &str, says: &[&str], tools: Option<Vec<String>>| {
            let kind = kind("file", &format!("---\nname: a\n{header}\n---\n")).unwrap();
            assert_eq!((kind.tools, kind.effort), (tools, None), "{header}");
            assert_eq!(kind.warnings.len(), says.len(), "{header}: {:?}", kind.warnings);
            for (warning, says) in kind.warnings.iter().zip(says) {
                assert!(warning.starts_with(says), "{header}: {warning}");
            }
        };
        check("effort: normal", &["'normal' is no effort, so the session's is used: write one of low"], None);
        let none = "' is no tool here, so denying it takes nothing away";
        let left = names(&["bash", "glob", "grep"]);
        check(
            "disallowedTools: Read, Bahs",
            &[&format!("'Bahs{none}")],
            names(&["bash", "edit", "glob", "grep"]),
        );
        check("disallowedTools: Everything(x), Edit, Read", &[&format!("'Everything(x){none}")], left);
    }

    #[test]
    fn a_value_that_cannot_be_is_told_with_its_line() {
        let fault = |text: &str, line: usize, says: &str| {
            let fault = kind("file", text).unwrap_err();
            assert_eq!(fault.line, line, "{text}: {}", fault.why);
            assert!(fault.why.contains(says), "{text}: {}", fault.why);
        };
        fault("---\nname: a\nmodel: [a, b]\n---\n", 3, "quotes");
        fault("no front matter", 1, "begin the file with ---");
    }
}
