//! Kinds of agents: what a file says an agent of a kind is told and may use. A file can narrow what an agent may do and never
//! widen it. Nothing is started here.

use std::path::PathBuf;

use super::LibraryError;
use super::front_matter::{self, Fault, Field, Page};
use super::shelf::{Origin, ShelvedFile};

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
}

/// One file of a shelf of kinds, or a built-in kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindEntry {
    /// Its name or, if that cannot be read, its file's name without the ending.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Whose it is.
    pub origin: Origin,
    /// Where it stands; `None` for a built-in one.
    pub path: Option<PathBuf>,
    /// Why it cannot be used.
    pub problem: Option<String>,
    /// Whether a nearer one of the same name takes its place.
    pub hidden: bool,
}

impl KindEntry {
    /// The entry of a file; `None` for one that is no kind and does not try to be.
    pub(super) fn of(file: ShelvedFile, origin: Origin) -> Option<Self> {
        if file.text.as_ref().is_ok_and(|text| !front_matter::begins(text)) {
            return None;
        }
        let (stem, path) = (file.stem.clone(), Some(file.path.clone()));
        let (name, description, problem) = match read(file) {
            Ok(kind) => (kind.name, kind.description, None),
            Err(error) => (stem, String::new(), Some(error.to_string())),
        };
        Some(Self { name, description, origin, path, problem, hidden: false })
    }
}

/// The efforts there are.
const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];

/// Every tool that an agent of a program can have.
const ALL_TOOLS: &[&str] = &["bash", "view", "edit", "glob", "grep"];

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
    };
    let explore = AgentKind {
        name: "Explore".to_owned(),
        description: "Finds its way around and says what is where; changes nothing.".to_owned(),
        instructions: EXPLORE.to_owned(),
        tools: Some(["view", "glob", "grep", "bash"].map(str::to_owned).to_vec()),
        read_only: true,
        ..general.clone()
    };
    vec![general, explore]
}

const EXPLORE: &str = "You find things out and change nothing. Look broadly first (names, then contents), then read what matters. Say \
what you found with paths and line numbers, and say what you looked for and did not find.";

/// The kind that stands in a file.
pub(super) fn read(file: ShelvedFile) -> Result<AgentKind, LibraryError> {
    let ShelvedFile { path, stem, text } = file;
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
    let effort = one("effort")?;
    if let (Some(effort), Some(field)) = (&effort, field("effort"))
        && !EFFORTS.contains(&effort.as_str())
    {
        return Err(field.fault(format!("'{effort}' is no effort: write one of {}", EFFORTS.join(", "))));
    }
    let mut tools = field("tools").map_or(Ok(None), Field::list)?.filter(|tools| tools != &["*"]);
    if let Some(denied) = field("disallowedTools").map_or(Ok(None), Field::list)? {
        let left = tools.unwrap_or_else(|| ALL_TOOLS.iter().map(|tool| (*tool).to_owned()).collect());
        let is_denied = |tool: &String| denied.iter().any(|denied| ours(denied) == ours(tool));
        tools = Some(left.into_iter().filter(|tool| !is_denied(tool)).collect());
    }
    Ok(AgentKind {
        name: one("name")?.unwrap_or_else(|| stem.to_owned()),
        description: one("description")?.unwrap_or_default(),
        instructions: body.trim().to_owned(),
        tools,
        model: one("model")?.filter(|model| model != "inherit"),
        effort,
        read_only: one("permissionMode")?.is_some_and(|mode| mode == "plan"),
    })
}

/// Our name of a tool that people know by another. What may be done to some arguments only is denied altogether.
fn ours(tool: &str) -> &str {
    match tool.split('(').next().unwrap_or(tool).trim() {
        "Bash" => "bash",
        "Read" | "LS" => "view",
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => "edit",
        "Glob" => "glob",
        "Grep" => "grep",
        other => other,
    }
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
        };
        assert_eq!(kind("file", PLAIN).unwrap(), expected);
        assert_eq!(kind("file", &PLAIN.replace('\n', "\r\n")).unwrap(), expected);
        assert_eq!(kind("file", &format!("\u{feff}{PLAIN}")).unwrap(), expected);
        check("", |_| {});
        check("tools: Read, Grep", |kind| kind.tools = names(&["Read", "Grep"]));
        check("tools: [Read, \"Grep\"]", |kind| kind.tools = names(&["Read", "Grep"]));
        check("tools:\n  - Read\n  - 'Grep' # both\n", |kind| kind.tools = names(&["Read", "Grep"]));
        check("tools:\n- Read\n", |kind| kind.tools = names(&["Read"]));
        check("tools: Bash(git log, git diff), Read", |kind| kind.tools = names(&["Bash(git log, git diff)", "Read"]));
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
    }

    #[test]
    fn a_kind_without_a_name_is_called_as_its_file() {
        assert_eq!(kind("helper", "---\ndescription: x\n---\n").unwrap().name, "helper");
    }

    #[test]
    fn a_value_that_cannot_be_is_told_with_its_line() {
        let fault = |text: &str, line: usize, says: &str| {
            let fault = kind("file", text).unwrap_err();
            assert_eq!(fault.line, line, "{text}: {}", fault.why);
            assert!(fault.why.contains(says), "{text}: {}", fault.why);
        };
        fault("---\nname: a\neffort: huge\n---\n", 3, "'huge' is no effort: write one of low");
        fault("---\nname: a\nmodel: [a, b]\n---\n", 3, "quotes");
        fault("no front matter", 1, "begin the file with ---");
    }
}
