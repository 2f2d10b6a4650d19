//! Tools of your own: what they are, what a call is told, and what a crash in the middle of a call means.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use convoke_kernel::{GivenTool, Segment};
use convoke_runtime::{CallContext, CustomTool};
use serde_json::Value;

/// A tool that your program gives to agents.
///
/// Its calls are like those of our own tools: recorded before and after, ruled on by [`Rule`](crate::Rule)s
/// under the tool's name, and bounded in what the model reads of the result. It runs in your process and not
/// in the sandbox: what it may do is up to you. The definition is recorded with a session, so a session goes
/// on with the same bytes; it goes on only in a program that has the tool.
///
/// ```
/// use convoke::{AfterCrash, Tool, ToolContext, Value, json};
///
/// struct Ticket;
///
/// impl Tool for Ticket {
///     fn name(&self) -> &str {
///         "ticket"
///     }
///     fn description(&self) -> &str {
///         "Shows a ticket of the tracker by its number."
///     }
///     fn input_schema(&self) -> Value {
///         json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}})
///     }
///     fn writes(&self) -> bool {
///         false
///     }
///     fn after_crash(&self) -> AfterCrash {
///         AfterCrash::Repeat
///     }
///     async fn call(&self, input: Value, _context: ToolContext) -> Result<String, String> {
///         Ok(format!("ticket {} is open", input["id"]))
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// Its name, by which models and rules call it: letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// What it is for and when to use it, as the model reads it.
    fn description(&self) -> &str;

    /// The JSON schema of its input, an object. A call whose input does not fit is sent back to the model.
    fn input_schema(&self) -> Value;

    /// Whether it changes something. Such calls run one at a time and alone; calls that only read run beside
    /// each other.
    fn writes(&self) -> bool {
        true
    }

    /// What becomes of a call that was under way when the process ended.
    fn after_crash(&self) -> AfterCrash {
        AfterCrash::Unknown
    }

    /// Makes a call. The text goes to the model, and so does the error, which the model can react to. A panic
    /// is such an error too.
    fn call(&self, input: Value, context: ToolContext)
    -> impl Future<Output = Result<String, String>> + Send;
}

/// What becomes of a tool call that was under way when its process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AfterCrash {
    /// It is made again: making it twice does no harm.
    Repeat,
    /// It is made again with the same [`ToolContext::idempotency_key`], by which the tool knows what it has
    /// done before.
    RepeatWithKey,
    /// It is not made again. The model is told that its outcome is unknown, and decides.
    Unknown,
}

/// The agents that a tool is given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Role {
    /// The agent that answers [`Session::run`](crate::Session::run).
    Lead,
    /// One subtask of a fan-out.
    Worker,
    /// Tries to refute what a worker found.
    Verifier,
    /// One task that the lead hands over.
    Task,
    /// One agent that a workflow's `agent()` starts.
    WorkflowAgent,
    /// One agent of a team.
    Teammate,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 6] =
        [Role::Lead, Role::Worker, Role::Verifier, Role::Task, Role::WorkflowAgent, Role::Teammate];
}

/// What a call of a tool is told.
#[derive(Debug, Clone)]
pub struct ToolContext {
    call: CallContext,
}

impl ToolContext {
    /// The id of the agent that calls.
    pub fn agent(&self) -> &str {
        self.call.agent.as_str()
    }

    /// The directory the agent works in.
    pub fn dir(&self) -> &Path {
        &self.call.dir
    }

    /// The same for every time this call is made, after a crash too, and for no other call.
    pub fn idempotency_key(&self) -> &str {
        &self.call.idempotency_key
    }

    /// Whether the work was stopped. A call that goes on for two more seconds is cut off.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancelled.is_cancelled()
    }

    /// Waits until the work is stopped.
    pub async fn cancelled(&self) {
        self.call.cancelled.cancelled().await;
    }
}

/// The tool as the runtime has it.
pub(crate) fn custom(tool: impl Tool, roles: impl IntoIterator<Item = Role>) -> CustomTool {
    let definition = GivenTool {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        input_schema: Segment::encode(&tool.input_schema()),
        writes: tool.writes(),
        after_crash: match tool.after_crash() {
            AfterCrash::Repeat => convoke_kernel::AfterCrash::Repeat,
            AfterCrash::RepeatWithKey => convoke_kernel::AfterCrash::RepeatWithKey,
            AfterCrash::Unknown => convoke_kernel::AfterCrash::Unknown,
        },
        roles: roles.into_iter().map(role).collect(),
    };
    let tool = Arc::new(tool);
    CustomTool::new(definition, move |input, context| {
        let tool = Arc::clone(&tool);
        async move { tool.call(input, ToolContext { call: context }).await }
    })
}

fn role(role: Role) -> convoke_kernel::Role {
    match role {
        Role::Lead => convoke_kernel::Role::Lead,
        Role::Worker => convoke_kernel::Role::Worker,
        Role::Verifier => convoke_kernel::Role::Verifier,
        Role::Task => convoke_kernel::Role::Task,
        Role::WorkflowAgent => convoke_kernel::Role::Callee,
        Role::Teammate => convoke_kernel::Role::Teammate,
    }
}
