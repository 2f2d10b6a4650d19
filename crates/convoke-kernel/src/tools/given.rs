//! Tools that the embedding program gives to agents: their definitions, as an agent's spec has them. What
//! they do is the program's; when they run, and what becomes of a call that was cut off, is decided here.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{TABLE, ToolRequest};
use crate::output::{Output, check_schema};
use crate::segment::Segment;
use crate::spec::Role;

/// A tool that the embedding program gives to agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenTool {
    /// Its name, by which the model calls it.
    pub name: String,
    /// What it is for, as the model reads it.
    pub description: String,
    /// The JSON schema of its input.
    pub input_schema: Segment,
    /// Whether it changes something: such calls run one at a time and alone.
    #[serde(default)]
    pub writes: bool,
    /// What becomes of a call that was cut off by a crash.
    pub after_crash: AfterCrash,
    /// The agents that get it.
    pub roles: Vec<Role>,
}

/// The tools of the embedding program, as a spec has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GivenTools(Vec<GivenTool>);

impl GivenTools {
    /// These; `None` if there are none. Boxed, because a spec is part of an event and has to stay small.
    pub(crate) fn of(tools: Vec<GivenTool>) -> Option<Box<Self>> {
        (!tools.is_empty()).then(|| Box::new(Self(tools)))
    }

    pub(crate) fn all(&self) -> &[GivenTool] {
        &self.0
    }
}

/// What becomes of a tool call that was under way when its process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterCrash {
    /// It is made again: making it twice does no harm.
    Repeat,
    /// It is made again with the same key, by which the tool knows what it has done before.
    RepeatWithKey,
    /// It is not made again. The model is told that its outcome is unknown, and decides.
    Unknown,
}

/// Characters a name may have, as the API takes it.
const LONGEST_NAME: usize = 64;

impl GivenTool {
    /// That agents can be given these tools; the error says which one is wrong and what to do.
    pub fn check(tools: &[GivenTool]) -> Result<(), String> {
        let mut taken: BTreeSet<&str> = TABLE.iter().map(|tool| tool.name).collect();
        for GivenTool { name, input_schema, roles, .. } in tools {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
                return Err(format!(
                    "a tool cannot be called {name:?}: 1 to 64 letters, digits, '_' and '-'"
                ));
            }
            if !taken.insert(name) {
                return Err(format!("there is a tool {name} already: give yours another name"));
            }
            if roles.is_empty() {
                return Err(format!("the tool {name} is given to no agent: name a role"));
            }
            let schema: Value = serde_json::from_str(input_schema.as_str())
                .map_err(|error| format!("the schema of the tool {name} cannot be read: {error}"))?;
            check_schema(&schema).map_err(|why| format!("the tool {name}: {why}"))?;
        }
        Ok(())
    }

    /// How it is declared to the model.
    pub(crate) fn declaration(&self) -> Value {
        let schema = Output { schema: self.input_schema.clone() }.input_schema();
        json!({"name": self.name, "description": self.description, "input_schema": schema})
    }

    /// Reads a call of it; the error is what the model gets as its result.
    pub(super) fn read(&self, input: &Value) -> Result<ToolRequest, String> {
        let schema = Output { schema: self.input_schema.clone() };
        if let Err(problems) = schema.problems(input) {
            return Err(format!("Not run: the input does not fit the schema of {}.\n{problems}", self.name));
        }
        let name = self.name.clone();
        let writes = self.writes;
        let after_crash = self.after_crash;
        Ok(ToolRequest::Given { name, input: Segment::encode(input), writes, after_crash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: &str) -> GivenTool {
        GivenTool {
            name: name.into(),
            description: "Looks something up.".into(),
            input_schema: Segment::from_json(schema.to_owned()).unwrap(),
            writes: false,
            after_crash: AfterCrash::Repeat,
            roles: vec![Role::Lead],
        }
    }

    #[test]
    fn a_tool_needs_a_name_of_its_own_a_role_and_a_schema_of_an_object() {
        let object = r#"{"type":"object"}"#;
        let check = |tools: &[GivenTool], expected: Option<&str>| match (GivenTool::check(tools), expected) {
            (Ok(()), None) => {}
            (Err(why), Some(part)) => assert!(why.contains(part), "{why}"),
            (got, want) => panic!("{got:?}, wanted {want:?}"),
        };
        check(&[tool("ticket", object), tool("log-line_2", object)], None);
        for name in ["", "a b", "ä"] {
            check(&[tool(name, object)], Some("cannot be called"));
        }
        for name in ["bash", "Workflow", "report_findings", "grep", "StructuredOutput"] {
            check(&[tool(name, object)], Some("there is a tool"));
        }
        check(&[tool("ticket", object), tool("ticket", object)], Some("there is a tool ticket already"));
        check(&[tool("ticket", r#"{"type":"string"}"#)], Some("has to be \"object\""));
        check(&[GivenTool { roles: Vec::new(), ..tool("ticket", object) }], Some("given to no agent"));
    }

    #[test]
    fn a_call_whose_input_does_not_fit_is_answered_with_what_is_wrong() {
        let tool =
            tool("ticket", r#"{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}"#);
        assert!(matches!(tool.read(&json!({"id": 7})), Ok(ToolRequest::Given { .. })));
        let why = tool.read(&json!({"id": "x"})).unwrap_err();
        assert!(why.starts_with("Not run: the input does not fit the schema of ticket.\n- /id"), "{why}");
    }
}
