//! A command that a crash cut off is run again, and what comes of it is what would have come without the cut.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::harness::{Tree, request};
use crate::policy::answer;

const INTERRUPTED: &str = "Interrupted: Convoke was stopped while this command was under way, so its \
    outcome is unknown. It may have run in whole, in part or not at all: look before you repeat it.";

fn tree() -> Tree {
    let tree = Tree::new(&[
        ("src/a.rs", "// TODO: later\nfn f() {\n    g().unwrap();\n}\n"),
        ("src/b.py", "try:\n    f()\nexcept:\n    pass\n"),
        ("README.md", "[gone](gone.md)\n"),
    ]);
    tree.git();
    tree
}

/// The result as a resume writes it in place of what the command brought.
fn cut(result: &Value) -> Value {
    json!({"type": "tool_result", "tool_use_id": result["tool_use_id"], "content": INTERRUPTED, "is_error": true})
}

#[test]
fn a_review_alone_is_the_same_whichever_of_its_commands_are_cut_off() {
    let tree = tree();
    let uncut = tree.play("review this directory");
    for most in [1, 3] {
        for place in 0..uncut.calls {
            let mut done = 0;
            let mut cuts = 0;
            let played = tree.play_with("review this directory", |_, result| {
                if done == place && cuts < most {
                    cuts += 1;
                    return cut(&result);
                }
                done += 1;
                result
            });
            assert_eq!(played.report(), uncut.report(), "cut {most} times at call {place}");
            let messages = played.request["messages"].as_array().unwrap();
            let calls = messages.iter().filter(|message| message["role"] == "assistant");
            let ids: Vec<&Value> = calls
                .flat_map(|message| message["content"].as_array().unwrap())
                .filter_map(|b| b.get("id"))
                .collect();
            let different: BTreeSet<&str> = ids.iter().map(|id| id.as_str().unwrap()).collect();
            assert_eq!(ids.len(), different.len(), "no id is used twice: {ids:?}");
        }
    }
}

#[test]
fn a_command_that_is_always_cut_off_is_given_up() {
    let tree = tree();
    let played = tree.play_with("review this directory", |_, result| cut(&result));
    assert!(played.refusal().contains("nothing to report"), "{}", played.refusal());
}

/// Whether the reply to a history that ends with a cut command runs it again.
#[track_caller]
fn check(behind: &[Value], expected: bool) {
    let first = answer(&request(json!([{"role": "user", "content": "review this directory"}])));
    let id = first.content.iter().find_map(|block| block.get("id")).unwrap().clone();
    let result = cut(&json!({"tool_use_id": id}));
    let mut messages = vec![
        json!({"role": "user", "content": "review this directory"}),
        json!({"role": "assistant", "content": first.content}),
        json!({"role": "user", "content": [result]}),
    ];
    messages.extend(behind.iter().cloned());
    let reply = answer(&request(Value::Array(messages)));
    let inputs =
        |content: &[Value]| content.iter().filter_map(|b| b.get("input").cloned()).collect::<Vec<_>>();
    assert_eq!(inputs(&reply.content) == inputs(&first.content), expected, "{behind:?}: {reply:?}");
}

#[test]
fn what_is_cut_off_is_run_again_behind_a_note_and_not_behind_other_words() {
    let user = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
    check(&[], true);
    check(&[user("[who you are]\nname: lead")], true);
    check(&[user("While this work was interrupted, files in the directory changed: a.rs.")], true);
    check(&[user("Stop. How many TODO comments are there?")], false);
    check(&[user("The budget for this work is used up: this is the last reply.")], false);
}
