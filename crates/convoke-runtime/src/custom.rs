//! Tools of the embedding program: how they are called, and what becomes of what they say. Their definitions
//! are the kernel's ([`GivenTool`]); the program brings the call.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use convoke_beneath::Dir;
use convoke_kernel::{AgentId, GivenTool, Segment, ToolResult};
use futures_util::FutureExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::error::Error;

/// How long a tool has to end by itself after it was cancelled.
const GRACE: Duration = Duration::from_secs(2);

/// Characters of a result that the model reads, and of those the ones at its end; the rest is in a file. As
/// many as of the output of a command.
const SHOWN: usize = 8_000;
const AT_THE_END: usize = 3_800;

/// A tool of the embedding program.
#[derive(Clone)]
pub struct CustomTool {
    /// What it is called, what it is for, what it takes, and who gets it.
    pub definition: GivenTool,
    call: Arc<Call>,
}

type Called = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;
type Call = dyn Fn(Value, CallContext) -> Called + Send + Sync;

impl CustomTool {
    /// A tool that is called by this. An error is told to the model, which can go on.
    pub fn new<F>(
        definition: GivenTool,
        call: impl Fn(Value, CallContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self { definition, call: Arc::new(move |input, context| Box::pin(call(input, context))) }
    }
}

impl fmt::Debug for CustomTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomTool").field(&self.definition.name).finish()
    }
}

/// What a call of a tool is told.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The agent that calls.
    pub agent: AgentId,
    /// The directory the agent works in.
    pub dir: PathBuf,
    /// The same for every time this call is made, after a crash too, and for no other call.
    pub idempotency_key: String,
    /// Cancelled when the work is stopped.
    pub cancelled: CancellationToken,
}

/// The tools of the embedding program.
#[derive(Debug, Clone, Default)]
pub struct CustomTools(Vec<CustomTool>);

impl CustomTools {
    /// These tools. Refused if one cannot be declared to a model.
    pub fn new(tools: Vec<CustomTool>) -> Result<Self, Error> {
        let definitions: Vec<GivenTool> = tools.iter().map(|tool| tool.definition.clone()).collect();
        GivenTool::check(&definitions).map_err(Error::BadTool)?;
        Ok(Self(tools))
    }

    pub(crate) fn definitions(&self) -> Vec<GivenTool> {
        self.0.iter().map(|tool| tool.definition.clone()).collect()
    }

    /// That every tool that an agent was given is here.
    pub(crate) fn check(&self, given: &[GivenTool]) -> Result<(), Error> {
        let missing = given.iter().find(|tool| self.find(&tool.name).is_none());
        missing.map_or(Ok(()), |tool| Err(Error::ToolMissing(tool.name.clone())))
    }

    fn find(&self, name: &str) -> Option<&CustomTool> {
        self.0.iter().find(|tool| tool.definition.name == name)
    }

    /// Makes a call. A cancelled one has a moment to end; one that panics has failed.
    pub(crate) async fn perform(&self, name: &str, input: &Segment, context: CallContext) -> ToolResult {
        let Some(tool) = self.find(name) else {
            return ToolResult::refused(format!("Not run: the program has no tool {name} any more."));
        };
        let input = serde_json::from_str(input.as_str()).unwrap_or(Value::Null);
        let cancelled = context.cancelled.clone();
        let called = async { (tool.call)(input, context).await };
        let mut called = pin!(AssertUnwindSafe(called).catch_unwind());
        let done = tokio::select! {
            done = &mut called => Some(done),
            () = cancelled.cancelled() => tokio::time::timeout(GRACE, called).await.ok(),
        };
        match done {
            Some(Ok(Ok(text))) => ToolResult::done(text),
            Some(Ok(Err(why))) => ToolResult { is_error: true, ..ToolResult::done(why) },
            Some(Err(_)) => ToolResult::interrupted(format!("{name} broke down; what it did is unknown.")),
            None => ToolResult::interrupted(format!("{name} was cut off; what it did is unknown.")),
        }
    }
}

/// A result as the model reads it: what is too long is kept in a file, and its beginning and end are shown.
pub(crate) fn bounded(result: ToolResult, outputs: &Path, call: &str) -> ToolResult {
    let all = result.text.chars().count();
    if all <= SHOWN {
        return result;
    }
    let kept = keep(outputs, call, &result.text);
    let place = match &kept {
        Some(path) => format!("the whole of it is in {}", path.display()),
        None => "the whole of it could not be kept".to_owned(),
    };
    let at_the_start = SHOWN / 2;
    let head: String = result.text.chars().take(at_the_start).collect();
    let tail: String = result.text.chars().skip(all - AT_THE_END).collect();
    let left_out = all - at_the_start - AT_THE_END;
    let text = format!("{head}\n({left_out} characters are left out here; {place})\n{tail}");
    let full_output = kept.map(|path| path.to_string_lossy().into_owned());
    ToolResult { text, full_output, ..result }
}

fn keep(outputs: &Path, call: &str, text: &str) -> Option<PathBuf> {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name = format!("{}.txt", call.chars().map(safe).collect::<String>());
    Dir::make_named(outputs, None, 0o777).ok()?;
    let path = outputs.join(name);
    std::fs::write(&path, text).ok()?;
    Some(path)
}
