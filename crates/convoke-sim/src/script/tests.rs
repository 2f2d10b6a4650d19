//! How a script chooses its reply.

use super::*;

fn request(results: &[(&str, &str)], max_tokens: u64) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "Go.\n[conversation: a]"})];
    for (id, output) in results {
        messages.push(
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "bash", "input": {}}]}),
        );
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": output});
        messages.push(json!({"role": "user", "content": [result]}));
    }
    json!({"max_tokens": max_tokens, "messages": messages})
}

fn reply(script: &Script, request: &Value) -> Scripted {
    script.reply(request, &ConversationNames::of(request).context)
}

fn text(scripted: &Scripted) -> &str {
    scripted.content[0]["text"].as_str().unwrap_or_default()
}

#[test]
fn the_position_chooses_the_reply_and_a_repeated_request_gets_the_same() {
    let script = Script::new().conversation("a", [calls("bash", json!({"command": "ls"})), says("done")]);
    let first = request(&[], 100);
    let second = request(&[("t1", "file")], 100);
    assert_eq!(reply(&script, &first), reply(&script, &first));
    assert_eq!(reply(&script, &first).stop_reason, "tool_use");
    assert_eq!(text(&reply(&script, &second)), "done");
}

#[test]
fn a_conversation_is_found_by_its_marker_its_first_line_or_the_star() {
    for name in ["a", "Go.", "*"] {
        let script = Script::new().conversation(name, [says(name)]).conversation("other", [says("other")]);
        assert_eq!(text(&reply(&script, &request(&[], 100))), name);
    }
}

#[test]
fn what_the_script_does_not_know_is_a_problem_and_not_a_reply() {
    let script = Script::new().conversation("a", [says("only")]);
    let problem = reply(&script, &request(&[("t1", "x")], 100)).problem.unwrap_or_default();
    assert!(problem.contains("`a` has 1 replies, none for position 1"), "{problem}");
    let problem = reply(&Script::new(), &request(&[], 100)).problem.unwrap_or_default();
    assert!(problem.contains("no conversation `a`"), "{problem}");
}

#[test]
fn an_alternative_is_taken_when_the_last_tool_result_says_so() {
    let step = says("fine").when_last_contains("interrupted", says("again"));
    let script = Script::new().conversation("a", [calls("bash", json!({})), step]);
    assert_eq!(text(&reply(&script, &request(&[("t1", "all good")], 100))), "fine");
    assert_eq!(text(&reply(&script, &request(&[("t1", "it was interrupted")], 100))), "again");
}

#[test]
fn tool_ids_differ_by_position_index_and_alternative() {
    let both = || calls_many([("bash", json!({})), ("bash", json!({}))]);
    let script = Script::new().conversation("a", [both(), both().when_last_contains("bad", both())]);
    let requests = [request(&[], 9), request(&[("t1", "ok")], 9), request(&[("t1", "bad")], 9)];
    let ids: std::collections::BTreeSet<String> = requests
        .iter()
        .flat_map(|request| reply(&script, request).content)
        .map(|block| block["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 6, "{ids:?}");
}

#[test]
fn a_reply_is_cut_only_below_the_stated_room() {
    let script = Script::new().conversation("a", [says("the whole answer").cut_below(1_000, "the who")]);
    let cut = reply(&script, &request(&[], 999));
    assert_eq!((text(&cut), cut.stop_reason.as_str()), ("the who", "max_tokens"));
    assert_eq!(text(&reply(&script, &request(&[], 1_000))), "the whole answer");
}

fn check_mistake(json: &str, line: usize, problem: &str) {
    let error = Script::from_json(json).expect_err("the script is wrong");
    assert_eq!(error.line, line, "{error}");
    assert!(error.to_string().contains(problem), "{error}");
}

#[test]
fn mistakes_in_a_script_file_are_reported_with_their_line() {
    check_mistake(
        "{\n  \"conversations\": {\n    \"*\": [{\"sais\": \"x\"}]\n  }\n}",
        3,
        "unknown field `sais`",
    );
    check_mistake(
        "{\"conversations\": {\"*\": [\n{\"says\": \"x\"},\n{\"thinking\": \"y\"}\n]}}",
        3,
        "exactly one of",
    );
    check_mistake(
        "{\"conversations\": {\"*\": [\n{\"says\": \"x\", \"when\": [{\"says\": \"y\"}]}]}}",
        2,
        "needs `last_contains`",
    );
    check_mistake("{\n\"conversations\": {,}}", 2, "key must be a string");
}

#[test]
fn a_script_file_says_what_the_builder_says() {
    let json = r#"{"conversations": {"a": [
        {"thinking": "hm", "says": "Looking.", "calls": [{"tool": "bash", "input": {"command": "ls"}}]},
        {"says": "all", "cut_below": {"max_tokens": 50, "text": "a"}, "when": [{"last_contains": "x", "empty": true}]},
        {"refuses": "no"},
        {"says": "much thought", "fills_max_tokens": true}
    ]}}"#;
    let read = Script::from_json(json).expect("a good script");
    let built = [
        calls("bash", json!({"command": "ls"})).saying("Looking.").thinking("hm"),
        says("all").cut_below(50, "a").when_last_contains("x", empty()),
        refuses("no"),
        says("much thought").fills_max_tokens(),
    ];
    assert_eq!(read.conversations["a"], built);
}
