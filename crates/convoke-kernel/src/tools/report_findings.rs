//! `report_findings`: a worker hands in its findings and ends.

use serde_json::{Value, json};

use super::table::{Audience, Reading, Tool};
use super::{Wanted, shown};
use crate::findings::{Report, report_schema};

pub(super) static TOOL: Tool = Tool {
    name: REPORT_FINDINGS,
    audience: Audience::Worker,
    parts: &[],
    declare: |_| Some(declaration()),
    read: Reading::Input(|input, _| {
        Report::read(input).map(Wanted::Report).map_err(|why| format!("Not recorded: {why}"))
    }),
    words: shown::as_it_is,
    starts: None,
};

/// Its name, for what is told to an agent that ends without it.
pub(crate) const REPORT_FINDINGS: &str = "report_findings";

fn declaration() -> Value {
    json!({
        "name": REPORT_FINDINGS,
        "description": "Hands in your findings and ends your work: call it exactly once, when you are done. \
            Every finding has a claim that stands by itself, the evidence in words, a severity, and \
            citations wherever something can be looked up: either path, first and last line and the quote \
            that stands there, or a command you ran and a quote of what it printed. A program compares them \
            with the files and with your own recorded output before anybody reads the claim.",
        "strict": true,
        "input_schema": report_schema()
    })
}
