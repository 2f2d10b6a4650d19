//! What an agent reads last when it was taken up in the middle of its work.

use serde_json::json;

use super::tests::Bench;
use super::tests_lasting::facts;
use super::tests_mail::{LONG, alice, last_texts, leader};
use super::tests_roles::{call, of, tool_calls};
use super::*;

fn resumes(bench: &mut Bench, changed: &[&str]) {
    let changed = changed.iter().map(|file| (*file).to_owned()).collect();
    bench.feed(Input::ResumeAs { changed, facts: Box::new(facts()) });
}

/// The part of the last message that says how far the work is.
fn told(bench: &Bench) -> String {
    let text = last_texts(bench);
    let at = text.find("[work under way]").unwrap_or_else(|| panic!("it is not told: {text}"));
    text[at..].to_owned()
}

#[test]
fn one_that_is_taken_up_reads_last_what_it_has_called_and_that_nothing_new_is_asked() {
    let mut bench = of(alice(false, LONG), "build the\ntower");
    for id in ["t1", "t2"] {
        bench.replies(tool_calls(vec![call(id, "grep", json!({"pattern": id}))]));
        bench.runs(id, "one");
    }
    bench.replies(tool_calls(vec![call("t3", "bash", json!({"command": "make"}))]));
    let before = bench.agent.history().to_vec();
    resumes(&mut bench, &["a.rs"]);
    assert_eq!(bench.agent.history()[..before.len()], before[..], "what was sent stays as it was");
    assert_eq!(told(&bench) + "\n", include_str!("../../tests/it/snapshots/under_way.txt"));
    // It is told once.
    bench.replies(tool_calls(vec![call("t4", "grep", json!({"pattern": "x"}))]));
    bench.runs("t4", "one");
    assert!(!last_texts(&bench).contains("[work under way]"));
}

#[test]
fn a_fan_out_that_ended_after_the_resume_is_told_as_done() {
    let mut bench = of(leader(), "Use a workflow to review everything");
    let three = json!({"subtasks": ["one", "two", "three"]});
    bench.replies(tool_calls(vec![call("w1", "Workflow", three)]));
    resumes(&mut bench, &[]);
    bench.runs("w1", "## item 1: one");
    let told = told(&bench);
    assert!(
        told.contains(
            "\ndone: Workflow (3 subtasks); its result has been given to you, do not start it again"
        ),
        "{told}"
    );
    assert!(told.contains("\nrequest: Use a workflow to review everything\n"), "{told}");
}
