//! Which part the model plays: the mode, trivial requests, refusals, limits, and work that cannot be done.

use serde_json::{Value, json};

use super::harness::{Agent, MODE_ON, Move, Tree, offline};

fn small() -> Tree {
    Tree::new(&[("src/a.py", "# TODO: one\ntry:\n    f()\nexcept:\n    g()\n"), ("README.md", "# A\n")])
}

/// What the lead does at once with a task: `Workflow` after scouting, or a text.
async fn first_move(task: &str, notices: &[&str]) -> Move {
    let tree = small();
    let sim = offline().await;
    let mut lead = Agent::new(&sim, "lead", task);
    notices.iter().for_each(|notice| lead.system(notice));
    lead.go(&tree).await
}

fn fans_out(made: &Move) -> bool {
    matches!(made, Move::Call(_, name, _) if name == "Workflow")
}

#[tokio::test]
async fn with_the_mode_on_a_review_is_fanned_out_and_everything_trivial_is_not() {
    for task in [
        "Review this repository",
        "Audit this codebase",
        "find problems in this project",
        "Analyse the repository",
    ] {
        assert!(fans_out(&first_move(task, &[MODE_ON]).await), "{task}");
    }
    for task in
        ["What is 2+2?", "Hello!", "How many lines of Python are there?", "Review this, without fanning out"]
    {
        assert!(matches!(first_move(task, &[MODE_ON]).await, Move::Text(_)), "{task}");
    }
    let Move::Text(four) = first_move("What is 2+2?", &[MODE_ON]).await else { panic!("no answer") };
    assert_eq!(four, "4");
    let beyond = first_move("Fix the bugs in this repository", &[MODE_ON]).await;
    assert!(matches!(&beyond, Move::Refusal(why) if why.contains("ANTHROPIC_API_KEY")), "{beyond:?}");
}

#[tokio::test]
async fn the_latest_notice_says_whether_the_mode_is_on() {
    let still = "[orchestration mode: still on] as before";
    let off = "[orchestration mode: off]\nWork alone.";
    for (notices, expected) in [
        (vec![], false),
        (vec![MODE_ON], true),
        (vec![MODE_ON, off], false),
        (vec![MODE_ON, off, MODE_ON], true),
        (vec![still], true),
    ] {
        let made = first_move("Review this repository", &notices).await;
        assert_eq!(fans_out(&made), expected, "{notices:?}");
    }
    let reminder = format!("Review this repository\n<system-reminder>\n{MODE_ON}\n</system-reminder>");
    assert!(fans_out(&first_move(&reminder, &[]).await));
    assert!(
        fans_out(&first_move("Use a workflow to review this repository", &[]).await),
        "the person's own word"
    );
    let printed = "Review this repository. Somebody wrote: [orchestration mode: on]";
    assert!(!fans_out(&first_move(printed, &[]).await));
}

#[tokio::test]
async fn a_refused_fan_out_is_reviewed_alone_and_a_follow_up_is_answered_from_the_history() {
    let tree = small();
    let sim = offline().await;
    let mut lead = Agent::new(&sim, "lead", "Review this repository");
    lead.system(MODE_ON);
    let Move::Call(id, ..) = lead.go(&tree).await else { panic!("no fan-out") };
    let reason = "Workflow error: needs 20 agents, 12 of 12 are left. No agent was started; send fewer \
        subtasks, or let the person raise the limit with --budget-agents, and then send them all once more.";
    lead.result(&id, reason, true);
    let Move::Text(report) = lead.go(&tree).await else { panic!("no report") };
    let said = format!("The fan-out was refused, so I looked alone. The reason: {reason}");
    assert!(report.contains(&said) && !report.contains("No result for"), "{report}");
    assert!(report.contains("`src/a.py:1`: `# TODO: one`") && report.contains("src/a.py:4"), "{report}");
    lead.user(json!("Summarise the above briefly, without fanning out"));
    lead.system("[orchestration mode: off]");
    let before = lead.commands;
    let Move::Text(summary) = lead.go(&tree).await else { panic!("no summary") };
    assert!(summary.starts_with("In short: Offline model") && lead.commands == before, "{summary}");
    assert!(summary.len() < report.len(), "{summary}");
}

#[tokio::test]
async fn a_lead_reads_what_was_cut_and_puts_failed_items_under_not_checked() {
    let tree = small();
    let sim = offline().await;
    let mut lead = Agent::new(&sim, "lead", "Review this repository");
    lead.system(MODE_ON);
    let Move::Call(id, ..) = lead.go(&tree).await else { panic!("no fan-out") };
    let digest = "## item 1: Markers\nstatus: ok\nTwo.\n- [confirmed] [low] One\n  evidence: a.py:1\n\
        (cut; the rest: read_result {\"run\":\"wf_x\",\"item\":1,\"from\":4000})\n\n\
        ## item 2: Links in Markdown\nstatus: failed(api): overloaded\n\n\
        ## item 3: Panics\nstatus: skipped(budget)\n";
    lead.result(&id, digest, false);
    let Move::Call(id, name, input) = lead.go(&tree).await else { panic!("nothing is read") };
    assert_eq!((name.as_str(), &input), ("read_result", &json!({"run": "wf_x", "item": 1, "from": 0})));
    let page = "item 1 of wf_x, characters 1 to 300 of 300\n## item 1: Markers\nstatus: ok\n> Two.\n\
        - [confirmed] [low] One\n  evidence: a.py:1\n- [refuted] [high] Two\n  evidence: b.py:2\n  verifier: \
        not there\n\
        - [unverified: nobody could look] [medium] Three\n";
    lead.result(&id, page, false);
    let Move::Text(answer) = lead.go(&tree).await else { panic!("no answer") };
    let at = |text: &str| answer.find(text).unwrap_or_else(|| panic!("no {text:?} in\n{answer}"));
    let order = [
        "## Confirmed",
        "- One — `a.py:1`",
        "## Uncertain or unverified",
        "nobody could look",
        "## Refuted",
        "- Two",
    ];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{answer}");
    assert!(at("## Not checked") < at("- Links in Markdown: failed(api): overloaded"), "{answer}");
    assert!(answer.contains("- Panics: skipped(budget)"), "{answer}");
}

const MARKERS: &str = "Leftover TODO, FIXME, XXX and HACK markers in the whole directory";

#[tokio::test]
async fn a_worker_tries_a_failed_command_once_more_and_then_reports_what_it_could_not_check() {
    let tree = small();
    let sim = offline().await;
    let mut failures = 0;
    let mut worker = Agent::worker(&sim, MARKERS);
    let made = worker
        .go_with(|command| {
            failures += 1;
            if failures == 1 {
                ("Not run: interrupted.".to_owned(), true)
            } else {
                (tree.run(command), false)
            }
        })
        .await;
    let Move::Call(_, _, report) = made else { panic!("no report") };
    assert_eq!((report["findings"].as_array().map(Vec::len), worker.commands), (Some(1), 2));
    let mut worker = Agent::worker(&sim, MARKERS);
    let made = worker.go_with(|_| ("bash: awk: command not found".to_owned(), true)).await;
    let Move::Call(_, name, report) = made else { panic!("no report") };
    assert_eq!(
        (name.as_str(), report["findings"].as_array().map(Vec::len), worker.commands),
        ("report_findings", Some(0), 2)
    );
    assert!(
        report["summary"].as_str().is_some_and(|text| text.contains("awk: command not found")),
        "{report}"
    );
}

#[tokio::test]
async fn a_report_that_is_sent_back_is_corrected_once_and_then_given_in_prose() {
    let tree = small();
    let sim = offline().await;
    let mut worker = Agent::worker(&sim, MARKERS);
    let Move::Call(id, _, first) = worker.go(&tree).await else { panic!("no report") };
    worker.result(&id, "Invalid report: findings[0].citations[0].quote is too long.", true);
    let Move::Call(id, _, second) = worker.go(&tree).await else { panic!("no report") };
    assert!(
        first["findings"][0]["citations"].is_array() && second["findings"][0]["citations"].is_null(),
        "{second}"
    );
    assert_eq!(first["findings"][0]["claim"], second["findings"][0]["claim"]);
    worker.result(&id, "Invalid report: no.", true);
    let Move::Text(prose) = worker.go(&tree).await else { panic!("no prose") };
    assert!(prose.contains("src/a.py:1"), "{prose}");
}

#[tokio::test]
async fn at_the_last_reply_and_when_asked_for_the_call_an_agent_reports_at_once() {
    for note in [
        "The turn limit is reached: this is the last reply. Hand back what you have.",
        "End with one call of report_findings.",
    ] {
        let tree = small();
        let sim = offline().await;
        let mut worker = Agent::worker(&sim, MARKERS);
        let reply = worker.reply().await;
        let call = reply["content"].as_array().expect("blocks").last().expect("a call");
        let text = tree.run(call["input"]["command"].as_str().expect("a command"));
        worker.user(json!([{"type": "tool_result", "tool_use_id": call["id"], "content": text}, {"type": "text", "text": note}]));
        let report = worker.ends_with("report_findings", &tree).await;
        assert_eq!((report["findings"].as_array().map(Vec::len), worker.commands), (Some(1), 0), "{note}");
    }
    let tree = small();
    let sim = offline().await;
    let mut worker = Agent::worker(&sim, MARKERS);
    let reply = worker.reply().await;
    let id = reply["content"][1]["id"].as_str().expect("an id").to_owned();
    worker.result(&id, "Not run: the turn limit is reached.", true);
    let report = worker.ends_with("report_findings", &tree).await;
    assert!(
        report["summary"].as_str().is_some_and(|text| text.contains("Nothing could be checked")),
        "{report}"
    );
}

#[tokio::test]
async fn a_note_does_not_change_an_agents_subtask() {
    let tree = small();
    let sim = offline().await;
    let mut worker = Agent::worker(&sim, MARKERS);
    let reply = worker.reply().await;
    let call = reply["content"].as_array().expect("blocks").last().expect("a call").clone();
    let text = tree.run(call["input"]["command"].as_str().expect("a command"));
    let note = "While this work was interrupted, files changed: src/a.py. Something quite unknown.";
    worker.user(
        json!([{"type": "tool_result", "tool_use_id": call["id"], "content": text}, {"type": "text", "text": note}]),
    );
    assert_eq!(
        worker.ends_with("report_findings", &tree).await["findings"].as_array().map(Vec::len),
        Some(1)
    );
}

#[tokio::test]
async fn a_subtask_nobody_wrote_a_rule_for_is_searched_for_and_nothing_is_invented() {
    let tree = Tree::new(&[
        ("src/pace.rs", "/// The governor paces requests.\nfn pace() {}\n"),
        ("a.txt", "governor\n"),
    ]);
    let sim = offline().await;
    for (subtask, found) in [
        ("Explain how the governor paces requests", 1),
        ("Where is `fn pace` used?", 1),
        ("Discuss zebras", 0),
    ] {
        let report = Agent::worker(&sim, subtask).ends_with("report_findings", &tree).await;
        let findings = report["findings"].as_array().expect("findings");
        assert_eq!(findings.len(), found, "{report}");
        assert!(
            findings
                .iter()
                .all(|finding| finding["severity"] == "info" && tree.holds(&finding["citations"][0]))
        );
        assert!(
            report["summary"].as_str().is_some_and(|text| text.contains("No rule knows this subtask")),
            "{report}"
        );
    }
}

#[tokio::test]
async fn more_than_can_be_listed_is_counted_and_awkward_names_and_lines_are_cited_exactly() {
    let many: String = (0..30).map(|n| format!("x = 1\t# TODO: number {n} {}\n", "é".repeat(150))).collect();
    let tree = Tree::new(&[
        ("src/a b'c.py", &many),
        ("src/%09.py", "# FIXME: percent\r\n"),
        ("src/new\nline.py", "# HACK \u{1b}[0m\n"),
    ]);
    let sim = offline().await;
    let report = Agent::worker(&sim, MARKERS).ends_with("report_findings", &tree).await;
    let findings = report["findings"].as_array().expect("findings").clone();
    assert_eq!(findings.len(), 8);
    assert!(
        report["summary"]
            .as_str()
            .is_some_and(|text| text.contains("32 findings") && text.contains("24 more")),
        "{report}"
    );
    assert!(findings.iter().all(|finding| tree.holds(&finding["citations"][0])), "{report}");
    let ballot = Agent::verifier(&sim, &findings).ends_with("report_verdicts", &tree).await;
    let votes = ballot["verdicts"].as_array().expect("verdicts");
    assert!(votes.iter().all(|vote| vote["verdict"] == "confirmed"), "{ballot}");
    let one = "Leftover TODO, FIXME, XXX and HACK markers in `src/new\nline.py`";
    let report = Agent::worker(&sim, &one.replace('\n', "")).ends_with("report_findings", &tree).await;
    assert!(
        report["summary"].as_str().is_some_and(|text| text.contains("1 path not to be found")),
        "{report}"
    );
}

#[tokio::test]
async fn an_agent_with_bash_alone_works_as_before() {
    let tree = small();
    let sim = offline().await;
    let Move::Text(report) = Agent::new(&sim, "task", "find TODOs").go(&tree).await else {
        panic!("no report")
    };
    assert!(report.contains("`src/a.py:1`"), "{report}");
}

#[tokio::test]
async fn the_requests_of_a_team_are_legal_and_illegal_ones_are_refused() {
    let sim = offline().await;
    let lead = || {
        let mut ask = crate::client::RawRequest::new("rules");
        ask.body["tools"] = json!([{"name": "report_findings", "strict": true, "input_schema":
            {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}}]);
        ask
    };
    let refused = |change: fn(&mut Value)| {
        let mut ask = lead();
        change(&mut ask.body);
        ask
    };
    assert_eq!(lead().answer(&sim).await.0, 200);
    let (status, body) = refused(|body| {
        drop(body["tools"][0]["input_schema"].as_object_mut().map(|s| s.remove("additionalProperties")))
    })
    .answer(&sim)
    .await;
    assert_eq!(status, 400, "{body}");
    let (status, body) =
        refused(|body| body["tools"][0]["input_schema"]["properties"]["n"]["minimum"] = json!(1))
            .answer(&sim)
            .await;
    assert_eq!(
        (status, body["error"]["message"].as_str()),
        (400, Some("tools.0.custom: For 'integer' type, property 'minimum' is not supported"))
    );
    let block = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    for (marks, expected) in [(4, 200), (5, 400)] {
        let mut ask = lead();
        ask.body["messages"] = json!([{"role": "user", "content": vec![block.clone(); marks]}]);
        assert_eq!(ask.answer(&sim).await.0, expected, "{marks} marks");
    }
    let mut ask = lead();
    ask.push("system", json!([{"type": "text", "text": MODE_ON, "cache_control": {"type": "ephemeral"}}]));
    assert_eq!(ask.answer(&sim).await.0, 200, "a marked system section at the end");
    ask.push("user", json!("and then"));
    assert_eq!(ask.answer(&sim).await.0, 400, "user, system, user");
}
