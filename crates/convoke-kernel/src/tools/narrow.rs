//! Which local tools an agent was given, where it was not given all of them: names that people write, and the
//! refusal of a call of a missing one. It widens nothing: an unknown name gives nothing.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::table::Audience;
use super::{TABLE, ToolRequest};

/// What of a tool an agent can be given or not: most tools are one part, the editor can be given only to
/// view. Rules and agents' definitions name parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name in rules, in definitions and in specs, which are stored.
    pub name: &'static str,
    /// Names that people know it by from elsewhere, in small letters.
    pub(crate) aliases: &'static [&'static str],
    /// What an agent without it cannot do.
    pub(crate) cannot: &'static str,
    /// What a person is asked for before it does something to a file; `None` shows the call as it is.
    pub(crate) asks_to: Option<&'static str>,
    /// Whether it may change something.
    pub writes: bool,
    /// Whether it runs commands; any other part is about files.
    pub is_command: bool,
    /// Whether an agent has it whose model reads little at once.
    pub(crate) is_lean: bool,
}

/// All parts there are, in the order of the table.
pub fn parts() -> impl Iterator<Item = &'static Part> {
    TABLE.iter().flat_map(|tool| tool.parts.iter().copied())
}

/// The local tools that an agent was given, in order and each once. A slice, because a spec is part of an
/// event and has to stay small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools(Box<[&'static Part]>);

/// The tools that these names mean, in our words or in those that people know from elsewhere, and the names
/// that mean none.
pub fn known_tools(names: &[String]) -> (Tools, Vec<String>) {
    let mut known = Vec::new();
    let mut unknown = Vec::new();
    for name in names {
        match meant(&name.trim().to_ascii_lowercase()) {
            Some(parts) => known.extend(parts),
            None => unknown.push(name.clone()),
        }
    }
    (Tools(parts().filter(|part| known.contains(part)).collect()), unknown)
}

/// The parts that a name in small letters means; `None` if it means nothing here.
fn meant(name: &str) -> Option<Vec<&'static Part>> {
    if name == "*" {
        return Some(parts().collect());
    }
    if let Some(part) = parts().find(|part| part.name == name || part.aliases.contains(&name)) {
        return Some(vec![part]);
    }
    let tool = TABLE.iter().find(|tool| tool.name.eq_ignore_ascii_case(name))?;
    // A tool for results is offered if there is a schema, whatever the names say.
    let is_known = !tool.parts.is_empty() || tool.audience == Audience::Output;
    is_known.then(|| tool.parts.to_vec())
}

impl Serialize for Tools {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

impl<'de> Deserialize<'de> for Tools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        let named = |name: &String| {
            let part = parts().find(|part| part.name == name);
            part.ok_or_else(|| D::Error::custom(format!("unknown tool `{name}`")))
        };
        names.iter().map(named).collect::<Result<_, _>>().map(Self)
    }
}

impl Tools {
    /// All of them.
    pub fn all() -> Self {
        Self(parts().collect())
    }

    /// The local tools of an agent whose model reads little at once: what the others find can be found with
    /// commands.
    pub(crate) fn lean() -> Self {
        Self(parts().filter(|part| part.is_lean).collect())
    }

    /// Their names, as rules call them.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|part| part.name).collect()
    }

    pub(crate) fn has(&self, part: &Part) -> bool {
        self.0.contains(&part)
    }

    /// What the model reads if it calls a tool that it was not given.
    pub(crate) fn refuses(&self, request: &ToolRequest) -> Option<String> {
        let part = request.part().filter(|part| !self.has(part))?;
        let names = self.names();
        let given = if names.is_empty() {
            "no tools".to_owned()
        } else {
            format!("{} and no other tools", names.join(", "))
        };
        Some(format!(
            "Not run: you were given {given}, so you cannot {}. Go on without it, or say what is missing.",
            part.cannot
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], expected: &[&str], unknown: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let (tools, left) = known_tools(&names);
        assert_eq!(
            (tools.names(), left.iter().map(String::as_str).collect()),
            (expected.to_vec(), unknown.to_vec())
        );
        let text = serde_json::to_string(&tools).unwrap();
        assert_eq!(serde_json::from_str::<Tools>(&text).unwrap(), tools, "{text}");
    }

    #[test]
    fn tools_are_known_by_our_names_and_by_those_people_know() {
        check(&["bash", "view", "edit", "glob", "grep"], &["bash", "view", "edit", "glob", "grep"], &[]);
        check(&["Read", "Grep", "Glob", "LS"], &["view", "glob", "grep"], &[]);
        check(&["Write", "MultiEdit", "Edit"], &["edit"], &[]);
        check(&["Bash", "WebFetch", "mcp__x__y"], &["bash"], &["WebFetch", "mcp__x__y"]);
        check(&["StructuredOutput"], &[], &[]);
        check(&["*"], &["bash", "view", "edit", "glob", "grep"], &[]);
        check(&[], &[], &[]);
    }

    #[test]
    fn a_name_with_a_pattern_gives_nothing_rather_than_too_much() {
        check(&["Bash(git log:*)", "Read"], &["view"], &["Bash(git log:*)"]);
    }
}
