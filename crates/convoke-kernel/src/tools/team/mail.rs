//! `send_message`, `broadcast` and `read_inbox`: the letters of a team.

use serde_json::{Value, json};

use super::{TeamCall, run};
use crate::team::MAX_LETTER;
use crate::tools::shown::{self, CallInput, Words};
use crate::tools::table::{Audience, Reading, Tool, closed};

pub(in crate::tools) static SEND_MESSAGE: Tool = Tool {
    name: "send_message",
    audience: Audience::Team,
    parts: &[],
    declare: |_| send_message(),
    read: Reading::Fields(|fields, _| {
        let to = fields.member("to")?;
        let text = fields.text("text")?;
        Ok(run(TeamCall::Send { to, text, urgent: fields.flag("urgent")? }))
    }),
    words: send_words,
    starts: None,
};

fn send_message() -> Option<Value> {
    let description = format!(
        "Sends a letter to one member of the team. It is the only way to tell it something: what you merely \
         print does not reach it. Convoke delivers: the reader gets it after its next tool call, or is \
         woken by it, and an answer comes to you in the same way, so never poll or wait for one. It costs \
         the reader's next request. list_teammates gives the names; a name that nobody has is an error, and \
         nothing is sent. At most {MAX_LETTER} bytes: put more into a file and name its path."
    );
    closed(
        SEND_MESSAGE.name,
        &description,
        json!({
            "to": {"type": "string", "description": "The member's name; the lead is called lead."},
            "text": {"type": "string", "description": "What you have to say. It stands by itself: the reader \
                sees nothing else of yours."},
            "urgent": {"type": "boolean", "description": "True interrupts a command that the reader is \
                running; for when going on would do harm."}
        }),
        &["to", "text"],
    )
}

fn send_words(call: &CallInput<'_>) -> Words {
    let said = format!("{} to {}: {}", call.name, call.told("to"), call.told("text"));
    Words { line: Some(said.clone()), title: Some(said), doing: Some("writing"), ..Words::default() }
}

pub(in crate::tools) static BROADCAST: Tool = Tool {
    name: "broadcast",
    audience: Audience::Team,
    parts: &[],
    declare: |_| broadcast(),
    read: Reading::Fields(|fields, _| Ok(run(TeamCall::Broadcast { text: fields.text("text")? }))),
    words: broadcast_words,
    starts: None,
};

fn broadcast() -> Option<Value> {
    closed(
        BROADCAST.name,
        "Sends one letter to every other member of the team. It wakes all of them, and each pays for \
         reading it: use it for what everybody has to know, and send_message for everything else.",
        json!({"text": {"type": "string", "description": "What all of them have to know."}}),
        &["text"],
    )
}

fn broadcast_words(call: &CallInput<'_>) -> Words {
    Words { line: Some(format!("{}: {}", call.name, call.told("text"))), ..Words::default() }
}

pub(in crate::tools) static READ_INBOX: Tool = Tool {
    name: "read_inbox",
    audience: Audience::TeamLead,
    parts: &[],
    declare: |_| read_inbox(),
    read: Reading::Fields(|_, _| Ok(run(TeamCall::ReadInbox))),
    words: shown::as_it_is,
    starts: None,
};

fn read_inbox() -> Option<Value> {
    closed(
        READ_INBOX.name,
        "Shows the letters that wait for you and leaves them there. You need it only when the person asks: \
            letters come to you by themselves.",
        json!({}),
        &[],
    )
}
