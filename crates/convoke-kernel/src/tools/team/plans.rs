//! `submit_plan` and `review_plan`: a plan that has to be approved before a teammate may write.

use serde_json::{Value, json};

use super::{TeamCall, run};
use crate::tools::shown;
use crate::tools::table::{Audience, Reading, Tool, closed};

pub(in crate::tools) static SUBMIT_PLAN: Tool = Tool {
    name: "submit_plan",
    audience: Audience::Teammate,
    parts: &[],
    declare: |offer| submit_plan().filter(|_| offer.requires_plan),
    read: Reading::Fields(|fields, _| Ok(run(TeamCall::SubmitPlan { plan: fields.text("plan")? }))),
    words: shown::as_it_is,
    starts: None,
};

fn submit_plan() -> Option<Value> {
    closed(
        SUBMIT_PLAN.name,
        "Hands in your plan for the work before you. Until the lead approves it you can only read, and the \
         approval holds for this work alone. Then call idle: the answer comes by letter and wakes you. \
         Another plan takes the place of one that still waits.",
        json!({"plan": {"type": "string", "description": "What you will change, where, in what order, how \
            you will check it, and what could go wrong."}}),
        &["plan"],
    )
}

pub(in crate::tools) static REVIEW_PLAN: Tool = Tool {
    name: "review_plan",
    audience: Audience::TeamLead,
    parts: &[],
    declare: |_| review_plan(),
    read: Reading::Fields(|fields, _| {
        let request = fields.text("request")?.trim().to_owned();
        let approve = fields.answer("approve")?;
        Ok(run(TeamCall::ReviewPlan { request, approve, feedback: fields.words("feedback")? }))
    }),
    words: shown::as_it_is,
    starts: None,
};

fn review_plan() -> Option<Value> {
    closed(
        REVIEW_PLAN.name,
        "Answers the plan of a teammate that may only read until you do. Approve what you would have done \
         the same way; otherwise say what has to be different, and it hands in another.",
        json!({
            "request": {"type": "string", "description": "The request, as the letter with the plan names it \
                (m_…)."},
            "approve": {"type": "boolean", "description": "True lets it begin."},
            "feedback": {"type": "string", "description": "What it is to heed, or what has to be different."}
        }),
        &["request", "approve"],
    )
}
