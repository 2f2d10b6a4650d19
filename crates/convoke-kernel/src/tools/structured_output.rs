//! `StructuredOutput`: an agent hands in a value of the shape that was asked for and ends.

use serde_json::{Value, json};

use super::table::{Audience, Reading, Tool};
use super::{Wanted, shown};
use crate::wire::ToolCall;

pub(super) static TOOL: Tool = Tool {
    name: STRUCTURED_OUTPUT,
    audience: Audience::Output,
    parts: &[],
    declare: |offer| offer.output.map(|output| declaration(output.input_schema())),
    read: Reading::Input(|input, caller| {
        caller.output.map_or(Ok(()), |output| output.fits(input))?;
        Ok(Wanted::Output(input.clone()))
    }),
    words: shown::as_it_is,
    starts: None,
};

/// Its name, for what is told to an agent that ends without it.
pub(crate) const STRUCTURED_OUTPUT: &str = "StructuredOutput";

/// The value that a call hands in, whatever it is worth.
pub(crate) fn value_of(call: &ToolCall) -> Option<Value> {
    serde_json::from_str(call.input.as_str()).ok()
}

/// Not strict: schemas are the author's, and most do not close every object.
fn declaration(schema: Value) -> Value {
    json!({
        "name": STRUCTURED_OUTPUT,
        "description": "Hands in your result and ends your work: call it exactly once, when you are done, \
            with the whole value. A value that does not fit the schema comes back with what is wrong with \
            it; then call again with the whole value.",
        "input_schema": schema
    })
}
