//! The tool of the embedding program that the tests give to sessions.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use convoke::{AfterCrash, Tool, ToolContext, Value, json};
use tokio::sync::Notify;

/// Remembers how it was called; one that waits ends only when it is cancelled.
#[derive(Clone, Default)]
pub(crate) struct Note {
    waits: bool,
    pub(crate) begun: Arc<Notify>,
    calls: Arc<Mutex<Vec<NoteCall>>>,
}

/// One call of [`Note`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoteCall {
    pub(crate) agent: String,
    pub(crate) key: String,
    pub(crate) dir: PathBuf,
    pub(crate) text: String,
}

impl Note {
    pub(crate) fn that_waits() -> Self {
        Self { waits: true, ..Self::default() }
    }

    pub(crate) fn calls(&self) -> Vec<NoteCall> {
        self.calls.lock().unwrap().clone()
    }
}

impl Tool for Note {
    fn name(&self) -> &str {
        "note"
    }

    fn description(&self) -> &str {
        "Writes a note down."
    }

    fn input_schema(&self) -> Value {
        json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}})
    }

    fn after_crash(&self) -> AfterCrash {
        AfterCrash::RepeatWithKey
    }

    async fn call(&self, input: Value, context: ToolContext) -> Result<String, String> {
        let text = input["text"].as_str().unwrap().to_owned();
        self.calls.lock().unwrap().push(NoteCall {
            agent: context.agent().to_owned(),
            key: context.idempotency_key().to_owned(),
            dir: context.dir().to_owned(),
            text: text.clone(),
        });
        self.begun.notify_one();
        if self.waits {
            context.cancelled().await;
            assert!(context.is_cancelled());
            return Err(format!("the note of the {text} was given up"));
        }
        Ok(format!("noted: {text}"))
    }
}
