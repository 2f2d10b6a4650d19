//! Refusals, broken results, follow-ups and awkward trees.

use serde_json::{Value, json};

use super::harness::{Played, Tree, request, rust_function};
use crate::Offline;
use crate::policy::answer;
use crate::probes::{Probe, View, quoted};
use convoke_sim::Brain;
use convoke_sim::Context;

const TODOS: &str = "TODO, FIXME, XXX, HACK";

fn small() -> Tree {
    Tree::new(&[("a.py", "# TODO one\ntry:\n    f()\nexcept:\n    g()\n")])
}

fn with_text(id: &Value, text: &str, is_error: bool) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}], "is_error": is_error})
}

#[test]
fn what_it_cannot_do_is_refused_at_once_without_content() {
    let reply =
        answer(&request(json!([{"role": "user", "content": "Review this repository and fix the bugs"}])));
    assert_eq!((reply.stop_reason, reply.content.len()), ("refusal", 0));
    let details = reply.stop_details.unwrap();
    assert_eq!((details["type"].as_str(), &details["category"]), (Some("refusal"), &Value::Null));
    let why = details["explanation"].as_str().unwrap();
    assert!(why.starts_with("The offline model only explores and reports"), "{why}");
    assert!(why.contains("\"fix the bugs\"") && why.contains("ANTHROPIC_API_KEY"), "{why}");
}

#[test]
fn as_a_brain_it_replies_what_it_answers() {
    let context = Context { conversation: "c".to_owned(), position: 0 };
    for task in ["Review this", "Fix this"] {
        let request = request(json!([{"role": "user", "content": task}]));
        let reply = Offline.reply(&request, &context);
        let expected = answer(&request);
        assert_eq!((reply.content, reply.stop_details), (expected.content, expected.stop_details));
        assert_eq!((reply.stop_reason.as_str(), reply.problem), (expected.stop_reason, None));
    }
}

#[test]
fn without_a_bash_tool_it_says_that_it_cannot_look() {
    for tools in [json!(null), json!([]), json!([{"name": "Workflow"}])] {
        let mut request = request(json!([{"role": "user", "content": "Review this"}]));
        request["tools"] = tools;
        let reply = answer(&request);
        assert_eq!(reply.stop_reason, "refusal");
        assert!(reply.stop_details.unwrap()["explanation"].as_str().unwrap().contains("bash tool"));
    }
}

#[test]
fn every_broken_result_is_named_and_the_rest_still_reported() {
    let interrupted = "Interrupted: Convoke was stopped while this command was under way";
    for text in [
        interrupted,
        "",
        "bash: awk: command not found\n(exit code 127)",
        "\u{0}\u{fffd}garbage\tN\t",
        "end?",
    ] {
        let uncut = small().play("Review this");
        for broken in 0..if text == interrupted { uncut.calls } else { 0 } {
            let played = small().play_with("Review this", |call, result| {
                if call == broken { with_text(&result["tool_use_id"], text, true) } else { result }
            });
            assert_eq!(played.report(), uncut.report(), "what was cut off once is run again: call {broken}");
        }
        for broken in if text == interrupted { 0..0 } else { 3..4 } {
            let played = small().play_with("Review this", |call, result| {
                if call == broken { with_text(&result["tool_use_id"], text, true) } else { result }
            });
            let report = played.report();
            let expected = text.lines().next().unwrap_or("nothing came back").replace(['\u{0}', '\t'], " ");
            assert!(report.contains("No result for “"), "call {broken}, {text:?}: {report}");
            assert!(report.contains(expected.trim()), "call {broken}, {text:?}: {report}");
            let found = report.contains("`a.py:1`: `# TODO one`");
            let todos = played.request["messages"].to_string().matches("HACK in comments").count();
            assert!(found || todos > 0, "call {broken}: {report}");
        }
        let nothing =
            small().play_with("Review this", |_, result| with_text(&result["tool_use_id"], text, true));
        let expected = text.lines().next().unwrap_or("nothing came back").replace(['\u{0}', '\t'], " ");
        let why = nothing.refusal();
        assert!(why.contains("nothing to report") && why.contains(expected.trim()), "{text:?}: {why}");
    }
}

#[test]
fn a_result_cut_in_the_middle_is_not_taken_for_a_whole_one() {
    let played = small().play_with("find TODOs", |call, result| {
        let text = result["content"].as_str().unwrap();
        if call == 1 { with_text(&result["tool_use_id"], &text[..text.len() - 8], false) } else { result }
    });
    assert!(played.refusal().contains("none of the commands it needed"), "{}", played.refusal());
    let review = small().play_with("Review this", |call, result| {
        let text = result["content"].as_str().unwrap();
        if call == 3 { with_text(&result["tool_use_id"], &text[..text.len() - 8], false) } else { result }
    });
    assert!(review.section(TODOS).contains("Not known"), "{}", review.report());
}

#[test]
fn a_line_that_changed_before_the_second_reading_is_left_out() {
    let tree = Tree::new(&[("a.py", "# TODO one\n# TODO two\n")]);
    let played = tree.play_with("find TODOs", |call, result| {
        if call == 1 {
            tree.put("a.py", "# TODO one\n# changed\n");
        }
        result
    });
    assert_eq!(played.places(TODOS), ["a.py:1"]);
    assert!(played.report().contains("1 quote did not stand there any more"), "{}", played.report());
}

#[test]
fn at_the_turn_limit_it_hands_back_what_it_has() {
    let tree = small();
    let first = answer(&request(json!([{"role": "user", "content": "Review this"}])));
    let call = &first.content[1];
    let output = tree.run(call["input"]["command"].as_str().unwrap());
    let limit = "The turn limit is reached: this is the last reply, and no tool will be run any more. Hand \
        back what you have.";
    let history = request(json!([
        {"role": "user", "content": "Review this"},
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call["id"], "content": output}, {"type": "text", "text": limit}]},
    ]));
    let reply = answer(&history);
    let played = Played { request: history, reply, calls: 1 };
    assert!(played.report().contains("- Python: 1 file, 5 lines"), "{}", played.report());
    assert!(played.section(TODOS).contains("Not looked at: the turns ended before that."));
}

#[test]
fn a_refused_call_ends_the_exploration() {
    let played = small().play_with("Review this", |call, result| {
        if call >= 1 {
            with_text(&result["tool_use_id"], "Not run: the turn limit is reached.", true)
        } else {
            result
        }
    });
    assert_eq!(played.replies(), 3);
    assert!(played.report().contains("Not run: the turn limit is reached."), "{}", played.report());
}

#[test]
fn when_the_turns_end_before_what_was_asked_there_is_no_report() {
    let played = small().play_with("find TODOs", |call, result| {
        if call >= 1 {
            with_text(&result["tool_use_id"], "Not run: the turn limit is reached.", true)
        } else {
            result
        }
    });
    assert!(played.refusal().contains("the turn limit is reached"), "{}", played.refusal());
}

#[test]
fn the_first_line_of_every_result_says_to_people_what_was_found() {
    let tree = Tree::new(&[("a.py", "# TODO one\nx = 1\n"), ("b.py", "# TODO two\n")]);
    tree.put("long.rs", &rust_function("f", 1_200));
    let played = tree.play("Review this, list the files and find \"TODO\"");
    let results =
        played.request["messages"].as_array().unwrap().iter().filter_map(|m| m["content"].as_array());
    let texts = results.flatten().filter_map(|block| block["content"].as_str());
    let first: Vec<&str> = texts.map(|text| text.lines().next().unwrap()).collect();
    assert_eq!(
        first,
        [
            "# 3 files, 1,203 lines",
            "# the largest file has 1,200 lines",
            "# 1 function of more than 80 lines in 1 file",
            "# 2 TODO, FIXME, XXX or HACK comments in 2 files",
            "# 0 errors that nobody handles",
            "# 2 source files that no test mentions",
            "# 2 lines with it in 2 files",
            "# 3 files",
            "# 7 lines read again",
        ]
    );
}

#[test]
fn a_follow_up_is_answered_from_a_fresh_look() {
    let tree = small();
    let first = tree.play("Review this");
    let mut messages = first.request["messages"].as_array().unwrap().clone();
    messages.push(json!({"role": "assistant", "content": first.reply.content}));
    messages.push(
        json!({"role": "user", "content": [{"type": "text", "text": "How many lines of Python are there?"}]}),
    );
    let reply = answer(&request(json!(messages)));
    let used: Vec<&Value> =
        messages.iter().filter_map(|m| m["content"].as_array()).flatten().map(|b| &b["id"]).collect();
    let call = reply.content.iter().find(|block| block["type"] == "tool_use").unwrap();
    assert!(!used.contains(&&call["id"]), "ids do not repeat in a conversation");
    assert!(call["input"]["command"].as_str().unwrap().starts_with(Probe::Inventory.title()));
    messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": "No."}]}));
    messages.push(json!({"role": "user", "content": "Now fix it."}));
    assert_eq!(answer(&request(json!(messages))).stop_reason, "refusal");
}

#[test]
fn reminders_and_system_messages_are_no_task() {
    let text = "List the files\n<system-reminder>Fix everything. Run the tests.</system-reminder>";
    let reply =
        answer(&request(json!([{"role": "user", "content": text}, {"role": "system", "content": "Edit."}])));
    assert_eq!(reply.stop_reason, "tool_use");
}

#[test]
fn requests_of_any_shape_get_an_answer() {
    for request in [json!(null), json!([]), json!({"messages": 3}), json!({"messages": [{"role": "user"}]})] {
        assert_eq!(answer(&request).stop_reason, "refusal", "{request}");
    }
    let odd =
        json!([{"role": "user", "content": "Review this"}, {"role": "assistant", "content": "Hm."}, 7, null]);
    assert_eq!(answer(&request(odd)).stop_reason, "tool_use");
}

#[test]
fn a_large_tree_of_long_lines_and_names_stays_within_the_limits() {
    let tree = Tree::new(&[]);
    let deep = "a-rather-long-directory-name/".repeat(6);
    for n in 0..60 {
        let line = format!("# TODO {n} {}\ntry:\n    f()\nexcept:\n    g()\n", "é".repeat(300));
        tree.put(&format!("{deep}file {n}.py"), &line);
        tree.put(
            &format!("{deep}x{n}.rs"),
            &format!("fn f() {{ x.unwrap(); panic!(\"{}\"); }}\n", "ü".repeat(90)),
        );
    }
    tree.put("long.js", &format!("// TODO {}\n", "x".repeat(9_000)));
    let played = tree.play("Review this");
    assert!(tree.check_evidence(played.report()) > 10);
    assert!(played.section(TODOS).contains("60 in 60 files:"), "{}", played.section(TODOS));
    assert!(played.section(TODOS).contains("left out: 1 line of more than 4,000 bytes"));
    assert!(played.report().chars().count() < 12_000, "{}", played.report().chars().count());
}

#[test]
fn beyond_five_thousand_source_files_it_says_so_and_does_not_judge_tests() {
    let tree = Tree::new(&[("zz.py", "# TODO beyond\n")]);
    tree.run("mkdir d && cd d && for n in $(seq 5004); do echo x = 1 > f$n.py; done");
    tree.run("git init -q && rm d/f1.py && ln -s f2.py d/f1.py");
    let played = tree.play("review this");
    assert!(played.report().contains("- Python: 5004 files, 5004 lines"), "{}", played.report());
    assert!(played.section(TODOS).contains("at most 5,000 are"), "{}", played.section(TODOS));
    assert!(
        played.section("Source files that no test mentions").contains("Not judged: a file"),
        "{}",
        played.report()
    );
}

#[test]
fn commands_write_nothing_and_leave_the_shell_as_it_was() {
    let tree = small();
    tree.git();
    let listing = || tree.run("find . -print | sort | xargs ls -ld --time-style=full-iso");
    let before = listing();
    tree.play("Review this, list the files and find \"TODO\"");
    assert_eq!(listing(), before);
    let probe = Probe::Errors.command(&View::default());
    let state = "set | grep -c -E '^(S|P|T|TOP|ONLY|LC_ALL)=|^(files|top) '; pwd; echo $-";
    let plain = tree.run(state);
    assert_eq!(tree.run(&format!("{probe} > /dev/null\n{state}")), plain);
}

#[test]
fn awk_programs_hold_no_single_quote_and_texts_are_quoted_for_the_shell() {
    let programs = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/shell")).unwrap();
    let programs =
        programs.map(|entry| entry.unwrap().path()).filter(|path| path.extension().unwrap() == "awk");
    let quotes: Vec<_> =
        programs.filter(|path| std::fs::read_to_string(path).unwrap().contains('\'')).collect();
    assert_eq!(quotes, Vec::<std::path::PathBuf>::new());
    let tree = Tree::new(&[]);
    for text in ["it's", "$(id) `id` \"x\" \\", "a\nb", "-n", "*", "é ü"] {
        assert_eq!(tree.run(&format!("printf '%s' {}", quoted(text))), text);
    }
}
