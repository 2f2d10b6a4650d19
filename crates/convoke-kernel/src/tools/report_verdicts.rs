//! `report_verdicts`: a verifier hands in its verdicts and ends.

use serde_json::{Value, json};

use super::table::{Audience, Reading, Tool};
use super::{Wanted, shown};
use crate::findings::{Ballot, ballot_schema};

pub(super) static TOOL: Tool = Tool {
    name: REPORT_VERDICTS,
    audience: Audience::Verifier,
    parts: &[],
    declare: |_| Some(declaration()),
    read: Reading::Input(|input, caller| {
        let ballot = Ballot::read(input, caller.findings as usize);
        ballot.map(Wanted::Ballot).map_err(|why| format!("Not recorded: {why}"))
    }),
    words: shown::as_it_is,
    starts: None,
};

/// Its name, for what is told to an agent that ends without it.
pub(crate) const REPORT_VERDICTS: &str = "report_verdicts";

fn declaration() -> Value {
    json!({
        "name": REPORT_VERDICTS,
        "description": "Hands in your verdicts and ends your work: call it exactly once, with one verdict \
            for every finding by its number. confirmed: you derived it again and it holds in full. refuted: \
            it does not. undecided: you looked and could not settle it, which counts as refuted.",
        "strict": true,
        "input_schema": ballot_schema()
    })
}
