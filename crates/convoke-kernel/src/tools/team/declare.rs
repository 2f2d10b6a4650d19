//! How the tools of a team are declared to the lead and to teammates. The reader takes from here who has which tool and which fields
//! it has, so that nothing is read that was not offered.

use serde_json::{Value, json};

use crate::team::MAX_LETTER;
use crate::todo::MOST_ITEMS;

/// What a lead is offered: spawn_teammate, send_message, broadcast, read_inbox, list_teammates, request_shutdown, review_plan,
/// task_create, task_update, task_get, task_list, todo, compact, recall.
pub(crate) fn declare_lead() -> Vec<Value> {
    let own = [spawn_teammate(), send_message(), broadcast(), read_inbox(), list_teammates()];
    let mut tools: Vec<Value> = own.into_iter().chain([request_shutdown(), review_plan()]).collect();
    tools.extend(for_everybody());
    tools
}

/// What a teammate is offered: send_message, broadcast, list_teammates, idle, claim_task, submit_plan (only with `plan`), answer_shutdown,
/// task_create, task_update, task_get, task_list, todo, compact, recall.
pub(crate) fn declare_teammate(plan: bool) -> Vec<Value> {
    let mut tools = vec![send_message(), broadcast(), list_teammates(), idle(), claim_task()];
    tools.extend(plan.then(submit_plan));
    tools.push(answer_shutdown());
    tools.extend(for_everybody());
    tools
}

fn for_everybody() -> [Value; 7] {
    [task_create(), task_update(), task_get(), task_list(), todo(), compact(), recall()]
}

fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Value {
    json!({
        "name": name,
        "description": description,
        "input_schema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        }
    })
}

fn spawn_teammate() -> Value {
    tool(
        "spawn_teammate",
        "Makes a teammate: an agent with a name, a role, mail and a history of its own that lives on until it is stopped. Use it for work that \
goes on over several rounds, needs a dialogue, or is claimed piece by piece from the board; for one question or one piece of work use \
task, which costs less and ends by itself. It comes back at once and the teammate begins with the prompt, so the prompt has to say everything: it \
sees nothing of this conversation. What its work comes to is sent to you as a letter. While it has something to do it costs like \
any agent; at rest it costs nothing. The name of a living teammate cannot be given again: write to it instead.\n\n\
Teammates work in this directory, all at the same time, unless isolation says otherwise: give them files of their own, or a worktree each.",
        json!({
            "name": {"type": "string", "description": "A small letter and then up to 31 of a-z, 0-9, - and _."},
            "role": {"type": "string", "description": "What it is there for, in a word or two. Tasks that want a role are claimed by teammates that have it."},
            "prompt": {"type": "string", "description": "What it is told first: its work, where, and what to bring back."},
            "require_plan": {"type": "boolean", "description": "True lets it only read until you have approved its plan."},
            "tools": {"type": "array", "items": {"type": "string", "enum": ["bash", "view", "edit", "glob", "grep"]}, "description": "The only hands it is given; all of them if absent."},
            "isolation": {"type": "string", "enum": ["none", "copy", "worktree"], "description": "Where it works: in this directory (none, also if absent), in a throwaway copy, or in a git worktree of its own whose changes are kept on a branch."}
        }),
        &["name", "role", "prompt"],
    )
}

fn send_message() -> Value {
    let description = format!(
        "Sends a letter to one member of the team. It is the only way to tell it something: what you merely print does not reach it. \
Convoke delivers: the reader gets it after its next tool call, or is woken by it, and an answer comes to you in the same way, so never poll \
or wait for one. It costs the reader's next request. list_teammates gives the names; a name that nobody has is an error, and \
nothing is sent. At most {MAX_LETTER} bytes: put more into a file and name its path."
    );
    tool(
        "send_message",
        &description,
        json!({
            "to": {"type": "string", "description": "The member's name; the lead is called lead."},
            "text": {"type": "string", "description": "What you have to say. It stands by itself: the reader sees nothing else of yours."},
            "urgent": {"type": "boolean", "description": "True interrupts a command that the reader is running; for when going on would do harm."}
        }),
        &["to", "text"],
    )
}

fn broadcast() -> Value {
    tool(
        "broadcast",
        "Sends one letter to every other member of the team. It wakes all of them, and each pays for reading it: use it for what everybody has \
to know, and send_message for everything else.",
        json!({"text": {"type": "string", "description": "What all of them have to know."}}),
        &["text"],
    )
}

fn read_inbox() -> Value {
    tool(
        "read_inbox",
        "Shows the letters that wait for you and leaves them there. You need it only when the person asks: letters come to you by themselves.",
        json!({}),
        &[],
    )
}

fn list_teammates() -> Value {
    tool(
        "list_teammates",
        "Shows who belongs to the team: name, role, what each is doing, the task in its hands, letters that wait for it. Not for waiting: \
results come as letters.",
        json!({}),
        &[],
    )
}

fn request_shutdown() -> Value {
    tool(
        "request_shutdown",
        "Asks a teammate to stop. It ends or gives back what it holds and answers by letter; if it does not answer in time, Convoke stops it, \
gives its task back to the board and tells you. A teammate at rest costs nothing, so ask only when it is not needed any more.",
        json!({
            "name": {"type": "string", "description": "Who is to stop."},
            "reason": {"type": "string", "description": "Why, for it to read."}
        }),
        &["name"],
    )
}

fn review_plan() -> Value {
    tool(
        "review_plan",
        "Answers the plan of a teammate that may only read until you do. Approve what you would have done the same way; otherwise say what has to \
be different, and it hands in another.",
        json!({
            "request": {"type": "string", "description": "The request, as the letter with the plan names it (m_…)."},
            "approve": {"type": "boolean", "description": "True lets it begin."},
            "feedback": {"type": "string", "description": "What it is to heed, or what has to be different."}
        }),
        &["request", "approve"],
    )
}

fn idle() -> Value {
    tool(
        "idle",
        "Says that you have no more work for now. It ends this piece of work: what you said last is sent to the lead, and you rest at no cost until a \
letter or a task wakes you. Call it alone, and end the task in your hands first.",
        json!({}),
        &[],
    )
}

fn claim_task() -> Value {
    tool(
        "claim_task",
        "Takes a task from the board into your hands, and brings it back whole. It has to be pending, with nothing open that it depends on, and for \
your role, and you can hold one at a time. When you are idle work is also claimed for you, so use it only for a task you want in particular.",
        json!({"task": {"type": "string", "description": "The task's id (t_…)."}}),
        &["task"],
    )
}

fn submit_plan() -> Value {
    tool(
        "submit_plan",
        "Hands in your plan for the work before you. Until the lead approves it you can only read, and the approval holds for this work alone. Then \
call idle: the answer comes by letter and wakes you. Another plan takes the place of one that still waits.",
        json!({"plan": {"type": "string", "description": "What you will change, where, in what order, how you will check it, and what could go wrong."}}),
        &["plan"],
    )
}

fn answer_shutdown() -> Value {
    tool(
        "answer_shutdown",
        "Answers a request to stop. If you agree, end the task in your hands or give it back first and tell the lead what is left: you stop when this \
piece of work ends. If you have to finish something, say what.",
        json!({
            "approve": {"type": "boolean", "description": "True if you stop."},
            "reason": {"type": "string", "description": "Why not, or what is left."},
            "request": {"type": "string", "description": "The request, as its letter names it (m_…); the one that waits if absent."}
        }),
        &["approve"],
    )
}

fn task_create() -> Value {
    tool(
        "task_create",
        "Writes one task on the team's board, where teammates that have nothing to do claim it by themselves; its id comes back. One task for each \
distinct piece of work that one agent can do and check alone. It arrives with its claimant as you write it and with nothing \
else, so the description says everything. Create what comes first first, then name its id in blocked_by of what needs it: such a task is \
claimed only when all of those are done, and arrives with their results.",
        json!({
            "subject": {"type": "string", "description": "What it is about, in one line."},
            "description": {"type": "string", "description": "Everything that has to be known to do it."},
            "criteria": {"type": "string", "description": "When it counts as done, in a way that can be checked."},
            "blocked_by": {"type": "array", "items": {"type": "string"}, "description": "Ids of the tasks that have to be done before it."},
            "role": {"type": "string", "description": "The role a claimant has to have; anybody's if absent."},
            "priority": {"type": "integer", "description": "The greater, the sooner; 0 if absent. Equals go by age."}
        }),
        &["subject"],
    )
}

fn task_update() -> Value {
    tool(
        "task_update",
        "Ends, gives back or changes a task. done and failed are for its holder to say, with the result; done sets free at once what waited for it. \
pending gives it back to the board, or has a failed one tried again; cancelled means that nobody is to do it. To take one, use claim_task. Of \
a done task nothing can be changed, and its dependencies only while it is pending.",
        json!({
            "task": {"type": "string", "description": "The task's id (t_…)."},
            "status": {"type": "string", "enum": ["done", "failed", "pending", "cancelled"], "description": "Where it is to stand."},
            "result": {"type": "string", "description": "What it came to and where that lies, for those who depend on it; or why it failed or is given back."},
            "subject": {"type": "string", "description": "Another subject."},
            "description": {"type": "string", "description": "Another description."},
            "criteria": {"type": "string", "description": "Other criteria."},
            "priority": {"type": "integer", "description": "Another priority."},
            "role": {"type": "string", "description": "Another role."},
            "add_blocked_by": {"type": "array", "items": {"type": "string"}, "description": "More tasks that have to be done before it."},
            "remove_blocked_by": {"type": "array", "items": {"type": "string"}, "description": "Tasks that need not be done before it any more."}
        }),
        &["task"],
    )
}

fn task_get() -> Value {
    tool(
        "task_get",
        "Shows one task whole: description, criteria, what it depends on, who holds it, what it came to.",
        json!({"task": {"type": "string", "description": "The task's id (t_…)."}}),
        &["task"],
    )
}

fn task_list() -> Value {
    tool(
        "task_list",
        "Shows the board: every task with its id, subject, state, holder and what it still waits for. Not for waiting.",
        json!({}),
        &[],
    )
}

fn todo() -> Value {
    let description = format!(
        "Writes your own list of what you have to do; each call replaces the whole list, and it outlives your history. Use it for work of three steps \
or more: one item in progress at a time, completed as soon as it is. At most {MOST_ITEMS} items. Nobody claims from it: work for others \
belongs on the board."
    );
    tool(
        "todo",
        &description,
        json!({
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string", "description": "What there is to do, in one line."},
                        "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]}
                    },
                    "required": ["text", "status"],
                    "additionalProperties": false
                },
                "description": "The whole list, in order."
            }
        }),
        &["items"],
    )
}

fn compact() -> Value {
    tool(
        "compact",
        "Begins a new history: you are asked for a summary, and from then on you have that, what Convoke knows of you, and references to earlier \
results. Use it between two pieces of work, when what you read for the last one is of no use for the next; when the context gets full it \
happens by itself. It costs one request, and the next one reads everything anew.",
        json!({"focus": {"type": "string", "description": "What the summary must keep above all."}}),
        &[],
    )
}

fn recall() -> Value {
    tool(
        "recall",
        "Reads the result of an earlier call again that a new history left out, page by page. It costs nothing but the reading, and shows what was \
true then: look again at what may have changed.",
        json!({
            "reference": {"type": "string", "description": "The reference, as the beginning of your history names it."},
            "from": {"type": "integer", "description": "The character to start from; 0 is the beginning."}
        }),
        &["reference"],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tools: &[Value]) -> Vec<&str> {
        tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
    }

    const SHARED: [&str; 7] = ["task_create", "task_update", "task_get", "task_list", "todo", "compact", "recall"];

    #[test]
    fn b17_a_lead_of_a_team_gains_the_tools_to_make_it_write_to_it_and_look_at_its_mail() {
        let tools = declare_lead();
        let own = ["spawn_teammate", "send_message", "broadcast", "read_inbox", "list_teammates", "request_shutdown"];
        assert_eq!(names(&tools), [&own[..], &["review_plan"], &SHARED].concat());
    }

    #[test]
    fn b11_c18_a_teammate_has_its_mail_idle_and_claim_task_and_a_plan_only_where_one_is_required() {
        let own = ["send_message", "broadcast", "list_teammates", "idle", "claim_task"];
        assert_eq!(names(&declare_teammate(false)), [&own[..], &["answer_shutdown"], &SHARED].concat());
        let with_plan = [&own[..], &["submit_plan", "answer_shutdown"], &SHARED].concat();
        assert_eq!(names(&declare_teammate(true)), with_plan);
    }

    #[test]
    fn c6_idle_has_no_parameters() {
        assert_eq!(idle()["input_schema"]["properties"], json!({}));
        assert_eq!(idle()["input_schema"]["required"], json!([]));
    }

    #[test]
    fn every_schema_is_closed_says_what_each_field_is_and_requires_only_what_it_has() {
        for tool in declare_lead().into_iter().chain(declare_teammate(true)) {
            let schema = &tool["input_schema"];
            assert_eq!(schema["additionalProperties"], json!(false), "{}", tool["name"]);
            assert!(tool["description"].as_str().is_some_and(|text| text.ends_with('.')), "{}", tool["name"]);
            let properties = schema["properties"].as_object().unwrap();
            for (field, property) in properties {
                assert!(property["description"].is_string(), "{}.{field}", tool["name"]);
            }
            for field in schema["required"].as_array().unwrap() {
                assert!(properties.contains_key(field.as_str().unwrap()), "{}.{field}", tool["name"]);
            }
        }
    }

    #[test]
    fn a_member_is_told_that_printing_sends_nothing_and_that_nothing_is_polled_for() {
        let text = send_message()["description"].as_str().unwrap().to_owned();
        for said in ["merely print", "never poll", "list_teammates", "32768 bytes"] {
            assert!(text.contains(said), "{said}");
        }
    }
}
