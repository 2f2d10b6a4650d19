//! What a row of the table of tools is, and what is derived from the table: lookup by name, what each role is
//! offered, how a call is read. A tool of the embedding program joins by the same door: `AnyTool` is a row or
//! a given definition, and nothing that handles calls asks which of the two it is.

use serde_json::{Value, json};

use super::fields::Fields;
use super::shown::{CallInput, Words};
use super::{Caller, GivenTool, Part, TABLE, Tools, Wanted};
use crate::output::Output;
use crate::spec::Role;

/// One tool that Convoke brings. Its file holds everything that is decided about it; the runtime does what
/// its calls ask for.
pub(crate) struct Tool {
    /// The name by which the model calls it.
    pub(crate) name: &'static str,
    /// The agents whose calls of it are read.
    pub(crate) audience: Audience,
    /// What of it an agent can be given or not; empty where `tools:` of a definition has no say.
    pub(crate) parts: &'static [&'static Part],
    /// How it is declared to an agent of its audience; `None` if that one does without it.
    pub(crate) declare: fn(&Offer<'_>) -> Option<Value>,
    /// What a call of it asks for.
    pub(crate) read: Reading,
    /// How views call a call of it, where they do not show it as it is.
    pub(crate) words: fn(&CallInput<'_>) -> Words,
    /// What a call of it is about; only for tools that start agents.
    pub(crate) starts: Option<fn(&Value) -> Option<String>>,
}

/// How a call is read; the error is the text that the model gets as its result.
pub(crate) enum Reading {
    /// From the input as it is.
    Input(fn(&Value, &Caller<'_>) -> Result<Wanted, String>),
    /// From fields all of which were declared; an error is told behind the tool's name.
    Fields(fn(&Fields<'_>, &Caller<'_>) -> Result<Wanted, String>),
}

/// The agents that have a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Every agent.
    All,
    /// The lead, which alone can start agents.
    Lead,
    /// The worker on a subtask.
    Worker,
    /// The verifier of findings.
    Verifier,
    /// An agent whose result has to fit a schema.
    Output,
    /// The lead of a team and its teammates.
    Team,
    /// The lead of a team.
    TeamLead,
    /// A teammate.
    Teammate,
}

/// The facts about an agent that say which tools it has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    pub(crate) role: Role,
    pub(crate) in_team: bool,
    pub(crate) has_output: bool,
}

impl Audience {
    fn includes(self, who: Who) -> bool {
        match self {
            Audience::All => true,
            Audience::Lead => who.role == Role::Lead,
            Audience::Worker => who.role == Role::Worker,
            Audience::Verifier => who.role == Role::Verifier,
            Audience::Output => who.has_output,
            Audience::Team => who.in_team,
            Audience::TeamLead => who.in_team && who.role == Role::Lead,
            Audience::Teammate => who.in_team && who.role != Role::Lead,
        }
    }
}

/// An agent that tools are declared to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer<'a> {
    pub(crate) role: Role,
    /// Whether its endpoint knows Anthropic's own tools.
    pub(crate) anthropic_tools: bool,
    /// The local tools it was given.
    pub(crate) hands: &'a Tools,
    /// The most subtasks of one call; `None` if it can start no agents.
    pub(crate) max_subtasks: Option<usize>,
    /// The shape its result has to have.
    pub(crate) output: Option<&'a Output>,
    /// Whether it belongs to a team.
    pub(crate) in_team: bool,
    /// Whether a plan has to be approved before it may write.
    pub(crate) requires_plan: bool,
    /// The tools of the embedding program that it gets.
    pub(crate) given: &'a [GivenTool],
}

impl<'a> Offer<'a> {
    /// An agent with these local tools and nothing beside them.
    pub(crate) fn to(role: Role, anthropic_tools: bool, hands: &'a Tools) -> Self {
        Self {
            role,
            anthropic_tools,
            hands,
            max_subtasks: None,
            output: None,
            in_team: false,
            requires_plan: false,
            given: &[],
        }
    }

    fn who(&self) -> Who {
        Who { role: self.role, in_team: self.in_team, has_output: self.output.is_some() }
    }
}

/// Declares everything that an agent is offered.
pub(crate) fn declare(offer: &Offer<'_>) -> Vec<Value> {
    let offered = AnyTool::all(offer.given).filter(|tool| tool.is_for(offer.who()));
    offered.filter_map(|tool| tool.declaration(offer)).collect()
}

/// A tool, wherever it comes from: the one answer to how a tool is declared and how a call of it is read.
/// Tools of an MCP server are to join here, as definitions like those of the embedding program.
#[derive(Clone, Copy)]
pub(crate) enum AnyTool<'a> {
    /// One that Convoke brings.
    BuiltIn(&'static Tool),
    /// One of the embedding program.
    Given(&'a GivenTool),
}

impl<'a> AnyTool<'a> {
    /// All there are, in the order in which they are declared.
    pub(crate) fn all(given: &'a [GivenTool]) -> impl Iterator<Item = Self> {
        let own = TABLE.iter().map(|tool| AnyTool::BuiltIn(tool));
        own.chain(given.iter().map(AnyTool::Given))
    }

    /// The tool of this name that an agent has.
    pub(crate) fn of(name: &str, who: Who, given: &'a [GivenTool]) -> Option<Self> {
        Self::all(given).find(|tool| tool.name() == name && tool.is_for(who))
    }

    pub(crate) fn name(self) -> &'a str {
        match self {
            AnyTool::BuiltIn(tool) => tool.name,
            AnyTool::Given(tool) => &tool.name,
        }
    }

    fn is_for(self, who: Who) -> bool {
        match self {
            AnyTool::BuiltIn(tool) => tool.audience.includes(who),
            AnyTool::Given(tool) => tool.roles.contains(&who.role),
        }
    }

    /// How it is declared; `None` if this agent does without it.
    pub(crate) fn declaration(self, offer: &Offer<'_>) -> Option<Value> {
        match self {
            AnyTool::BuiltIn(tool) => (tool.declare)(offer),
            AnyTool::Given(tool) => Some(tool.declaration()),
        }
    }

    /// Reads a call of it. Whether it reads or writes, and what rules look at, is in the request that comes
    /// of it.
    pub(crate) fn read(self, input: &Value, caller: &Caller<'_>) -> Result<Wanted, String> {
        match self {
            AnyTool::BuiltIn(tool) => tool.read(input, caller),
            AnyTool::Given(tool) => tool.read(input).map(Wanted::Run),
        }
    }
}

impl Tool {
    fn read(&self, input: &Value, caller: &Caller<'_>) -> Result<Wanted, String> {
        let read = match self.read {
            Reading::Input(read) => return read(input, caller),
            Reading::Fields(read) => read,
        };
        // What was declared to this agent, or could have been: a plan may be handed in unasked.
        let hands = Tools::all();
        let offer = Offer { requires_plan: true, ..Offer::to(caller.role, false, &hands) };
        let declared = (self.declare)(&offer).unwrap_or_default();
        let fields = Fields::of(self.name, input, &declared["input_schema"]["properties"]);
        fields.and_then(|fields| read(&fields, caller)).map_err(|why| format!("{} error: {why}", self.name))
    }
}

/// The row of this name.
pub(crate) fn row(name: &str) -> Option<&'static Tool> {
    TABLE.iter().find(|tool| tool.name == name).copied()
}

/// A declaration with a closed schema of these fields.
pub(crate) fn closed(name: &str, description: &str, properties: Value, required: &[&str]) -> Option<Value> {
    Some(json!({
        "name": name,
        "description": description,
        "input_schema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        }
    }))
}

#[cfg(test)]
mod tests;
