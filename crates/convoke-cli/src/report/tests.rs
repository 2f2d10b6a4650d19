//! Reports for tests: one of a lead alone, one with everything in it, and text that tries to be more than
//! text; and what each form makes of them.

use super::file::Form;
use super::model::{Citation, Reused, Verdict, Waits};
use super::program::{Declined, Loss, Note};
use super::*;
use convoke_kernel::{FailureKind, ProgramCounts};

use crate::render::{Look, Talk, text_columns};
use crate::settings::OutputFormat;

/// A claim that tries to be a heading, a link, a picture, a tag, an escape sequence and a placeholder.
pub(crate) const WILD: &str =
    "`rm` is *called* with {0} in [a](b)\u{1b}[2J <b>bold</b> | ![x](http://e/)\n## Findings\n\u{202e}end";

const LEAD_ID: &str = "a_aaaaaaaaaaaaaaaa";
const TASK_ID: &str = "a_gggggggggggggggg";

/// A finding with nothing but the least.
pub(crate) fn finding(claim: &str, severity: Severity, verdict: Verdict) -> Finding {
    Finding {
        severity,
        verdict,
        claim: claim.into(),
        evidence: "it says so".into(),
        reason: "the line is there".into(),
        citations: Vec::new(),
        run: None,
        item: None,
        is_call: false,
        label: String::new(),
        agent: None,
    }
}

fn agent(role: &'static str, label: &str, id: &str, status: AgentStatus) -> Agent {
    Agent {
        role,
        label: label.into(),
        agent: Some(id.into()),
        run: (role != "lead").then(|| "wf_aaaaaaaaaaaaaaaa".into()),
        item: None,
        status,
        failure: None,
        turns: 3,
        commands: 2,
        tokens: 12_345,
        cost_nano: Some(41_200_000),
        changed: Vec::new(),
        reused: None,
    }
}

/// What was said to a lead, and what it answered.
fn answered(text: &str, answer: &str) -> FollowUp {
    FollowUp { text: text.into(), mode: Some("on"), status: "done", answer: answer.into() }
}

/// A lead that did everything by itself.
pub(crate) fn solo() -> SessionReport {
    SessionReport {
        schema_version: SCHEMA_VERSION,
        run: Some("s_aaaaaaaaaaaaaaaa".into()),
        agent: "a_aaaaaaaaaaaaaaaa".into(),
        model: "claude-opus-4-8".into(),
        effort: Some("xhigh".into()),
        mode: Some("on"),
        dir: "/work/project".into(),
        confinement: Some(Confined {
            sandbox: "workspace",
            network: "hosts",
            hosts: vec!["crates.io".into()],
            held_by: vec!["bubblewrap".into(), "landlock 7".into(), "seccomp".into()],
            weaker: vec!["disk: many files can fill it".into()],
        }),
        task: "What is it?".into(),
        status: "done",
        exit_code: 0,
        exit_reason: "done".into(),
        gate: None,
        answer: "Forty-two.".into(),
        answers: vec![answered("What is it?", "Forty-two.")],
        value: None,
        failure: None,
        programs: Vec::new(),
        follow_ups: Vec::new(),
        findings: Vec::new(),
        agents: vec![agent("lead", "", "a_aaaaaaaaaaaaaaaa", AgentStatus::Ok)],
        skipped: Vec::new(),
        lost: Vec::new(),
        changed: Vec::new(),
        runs_later: Vec::new(),
        worktrees: Vec::new(),
        undo: None,
        apply: None,
        notes: Vec::new(),
        usage: Tokens {
            input_tokens: 2_000,
            cache_read_tokens: 10_000,
            output_tokens: 345,
            ..Tokens::default()
        },
        cost_usd: Some(0.0412),
        cost_nano: Some(41_200_000),
        turns: 3,
        commands: 2,
        spend: Spend {
            nano: Some(41_200_000),
            tokens: 12_345,
            cap_nano: Some(10_000_000_000),
            cap_agents: Some(500),
            ms: 12_000,
            cap_ms: Some(7_200_000),
            ..Spend::default()
        },
        cache: Cache { read: 10_000, written: 0, fresh: 2_000, saved_nano: Some(45_000_000) },
        started_at: 1_794_776_640_000,
        ended_at: 1_794_776_652_000,
        resume: None,
        questions: Vec::new(),
        warnings: Vec::new(),
    }
}

/// A person's program of which something was lost, something was not awaited, and something is asked.
pub(crate) fn program() -> SessionReport {
    let counts =
        ProgramCounts { calls: 4, agent_calls: 3, ok: 1, failed: 1, skipped: 1, ..ProgramCounts::default() };
    let lost = Loss {
        call: 2,
        kind: "agent",
        label: WILD.into(),
        phase: Some("Look".into()),
        within: Some("child".into()),
        why: "api: overloaded".into(),
        agents: vec!["a_bbbbbbbbbbbbbbbb".into()],
        failure: Some(FailureKind::Api),
    };
    let value = serde_json::json!({"found": ["one", WILD], "none": null});
    let report = ProgramReport {
        run: "wf_aaaaaaaaaaaaaaaa".into(),
        name: "review".into(),
        digest: "0".repeat(64),
        by_person: true,
        status: "partial",
        pass: 2,
        value: Some(value.clone()),
        replaced: vec!["found[3]".into()],
        failure: None,
        counts,
        losses: vec![lost],
        unawaited: vec![3],
        declined: Some(Declined { agents: 547, reason: "needs 547 agents, 50 of 50 are left".into() }),
        questions: vec![Checkpoint {
            id: "wf_aaaaaaaaaaaaaaaa:4".into(),
            call: 4,
            workflow: "review".into(),
            question: "Go on?".into(),
            answer: Some("convoke resume s_aaaaaaaaaaaaaaaa --answer wf_aaaaaaaaaaaaaaaa:4=TEXT".into()),
        }],
        notes: vec![Note { call: 1, label: "a.rs".into(), note: "its worktree is kept".into() }],
        log: vec!["1 of 3".into()],
        usage: Tokens { input_tokens: 7, ..Tokens::default() },
        cost_nano: None,
    };
    SessionReport {
        status: "partial",
        exit_code: 3,
        exit_reason: "program_partial".into(),
        answer: report.value_text(),
        value: Some(value),
        failure: Some(Failed {
            kind: "program_partial".into(),
            message: "2 of 3 agent calls did not end well".into(),
        }),
        programs: vec![report],
        ..solo()
    }
}

#[test]
fn what_a_program_lost_is_told_in_every_form_and_its_value_is_whole() {
    let report = program();
    let page = Form::Markdown.render(&report);
    assert!(page.contains("workflow review wf\\_aaaaaaaaaaaaaaaa: partial"), "{page}");
    assert!(
        page.contains("lost: call 2") && page.contains("api: overloaded") && page.contains("--answer"),
        "{page}"
    );
    let look = Look {
        output: OutputFormat::Text,
        talk: Talk::Sparse,
        answer_on_terminal: false,
        talk_on_terminal: false,
        colour: true,
        verbose: true,
    };
    for width in [40, 80, 120] {
        let told = text(&report, look, width, None);
        let joined = told.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = [
            "workflow review wf_aaaaaaaaaaaaaaaa: partial · 3 agent calls: 1 ok, 1 failed, 1 skipped · pass \
                2",
            "(▸ child, Look): api: overloaded",
            "did not wait for the agents of these calls: 3",
            "placeholders in the value: found[3]",
            "call 1 a.rs: its worktree is kept",
        ];
        for words in expected {
            assert!(joined.contains(words), "{words:?} is missing at {width}:\n{told}");
        }
        assert!(told.lines().all(|line| text_columns(line) <= width), "{told}");
        assert!(!told.contains('\u{1b}'), "{told:?}");
    }
    assert_eq!(json(&report)["value"], report.programs[0].value.clone().unwrap());
}

#[test]
fn a_file_that_many_agents_changed_is_told_once_with_their_number() {
    let callee = |n: u32| Agent {
        changed: vec!["src/a.rs".into(), "log.txt".into()],
        ..agent("callee", "tidy", &format!("a_{n}"), AgentStatus::Ok)
    };
    let agents: Vec<Agent> = (0..14).map(callee).collect();
    let ids = agents.iter().filter_map(|agent| agent.agent.clone()).collect();
    let file = Changed { path: "src/a.rs".into(), how: "modified", agents: ids, mixed: false };
    let told = text(&SessionReport { agents, changed: vec![file], ..solo() }, piped(), 120, None);
    assert!(told.contains("M src/a.rs (14 agents)"), "{told}");
    assert_eq!(told.matches("log.txt").count(), 1, "{told}");
    assert!(told.contains("changed while 14 agents worked: log.txt") && !told.contains("a_3"), "{told}");
}

/// A session with everything that can be in one.
pub(crate) fn fan_out() -> SessionReport {
    let with = |finding: Finding, item: u32, label: &str, citations: Vec<Citation>| Finding {
        run: Some("wf_aaaaaaaaaaaaaaaa".into()),
        item: Some(item),
        label: label.into(),
        agent: Some(format!("a_{}", "b".repeat(16))),
        citations,
        ..finding
    };
    let lines = |path: &str, first, last| Citation {
        path: Some(path.into()),
        first: Some(first),
        last: Some(last),
        command: None,
        quote: Some("let x = y.unwrap();".into()),
    };
    let command = Citation {
        command: Some("cargo test".into()),
        quote: Some("1 failed".into()),
        ..Citation::default()
    };
    let mut failed = agent("worker", "tests of the parser", "a_cccccccccccccccc", AgentStatus::Failed);
    failed.failure =
        Some(Failed { kind: "turn_limit".into(), message: "it took all of its 15 turns".into() });
    failed.item = Some(3);
    let mut worker = agent("worker", "error handling in src", "a_bbbbbbbbbbbbbbbb", AgentStatus::Ok);
    worker.changed = vec!["src/a.rs".into(), "src/b|c.rs".into()];
    worker.item = Some(1);
    let mut verifier = agent("verifier", "error handling in src", "a_dddddddddddddddd", AgentStatus::Ok);
    verifier.reused = Some(Reused { run: "s_bbbbbbbbbbbbbbbb".into(), at: 1_794_770_000_000 });
    verifier.item = Some(1);
    let degraded = Agent {
        failure: Some(Failed {
            kind: "degraded".into(),
            message: "it reported without a single tool call".into(),
        }),
        item: Some(2),
        ..agent("worker", "naming", "a_eeeeeeeeeeeeeeee", AgentStatus::Degraded)
    };
    let plain = finding("an index may be out of range", Severity::Low, Verdict::Unverified);
    let unverified = Finding { reason: "rate limited: nobody could look".into(), ..plain };
    SessionReport {
        status: "partial",
        exit_code: 6,
        exit_reason: "finding".into(),
        answers: vec![answered("Review", "# Summary"), answered("Summarise it.", "Two faults.")],
        answer: "# Summary\n\nTwo faults, <script>alert(1)</script> ![p](http://e/p.png)\n\n```rust\nlet v: \
            Vec<u8>;\n```\n## Findings"
            .into(),
        task: "Review this repository | fully".into(),
        failure: Some(Failed { kind: "turn_limit".into(), message: "the turn limit was reached".into() }),
        follow_ups: vec![FollowUp {
            text: "Summarise it.".into(),
            mode: Some("off"),
            status: "done",
            answer: "Two faults.".into(),
        }],
        findings: vec![
            with(unverified, 2, "naming", vec![lines("src/my file#1.rs", 7, 7)]),
            with(
                finding(WILD, Severity::High, Verdict::Confirmed),
                1,
                "error handling in src",
                vec![lines("src/a.rs", 3, 5)],
            ),
            with(
                finding("it never frees", Severity::High, Verdict::Refuted),
                1,
                "error handling in src",
                vec![],
            ),
            with(
                finding("a test fails", Severity::Medium, Verdict::Uncertain),
                1,
                "error handling in src",
                vec![command],
            ),
            finding("it is written in Rust", Severity::Info, Verdict::Confirmed),
        ],
        agents: vec![
            agent("lead", "", "a_aaaaaaaaaaaaaaaa", AgentStatus::Ok),
            worker,
            verifier,
            degraded,
            failed,
            agent("worker", "docs", "a_ffffffffffffffff", AgentStatus::Open),
            agent("task", "rename it", TASK_ID, AgentStatus::Ok),
        ],
        skipped: vec![Skipped {
            run: Some("wf_aaaaaaaaaaaaaaaa".into()),
            item: Some(6),
            label: "benches".into(),
            reason: "budget: $0.04 left, the next request may cost up to $0.51".into(),
        }],
        changed: vec![
            Changed {
                path: "src/a.rs".into(),
                how: "modified",
                agents: vec![LEAD_ID.into(), TASK_ID.into()],
                mixed: false,
            },
            Changed {
                path: "src/\u{1b}[2Jold.rs".into(),
                how: "deleted",
                agents: vec![TASK_ID.into()],
                mixed: true,
            },
        ],
        worktrees: vec![Tree {
            agent: TASK_ID.into(),
            base: "HEAD (0123456789ab)".into(),
            state: "kept".into(),
            applied: false,
            files: vec!["src/c.rs".into()],
            ignored: vec!["target/".into()],
            path: Some("/state/worktrees/a/b/tree".into()),
        }],
        undo: Some("convoke sessions undo s_aaaaaaaaaaaaaaaa".into()),
        apply: Some(format!("convoke worktrees apply s_aaaaaaaaaaaaaaaa {TASK_ID}")),
        notes: vec![
            "subtasks 2 and 5 are equal: run once".into(),
            "3 of 12 results are from s_b, 2 h old".into(),
        ],
        spend: Spend {
            nano: Some(9_960_000_000),
            unconfirmed_nano: 120_000_000,
            tokens: 1_234_567,
            unconfirmed_tokens: 4_000,
            agents: 5,
            ms: 185_000,
            ..solo().spend
        },
        cache: Cache { read: 1_100_000, written: 80_000, fresh: 20_000, saved_nano: Some(3_210_000_000) },
        resume: Some("convoke resume s_aaaaaaaaaaaaaaaa".into()),
        questions: vec![Waits {
            id: "q_abcd2345".into(),
            agent: "a_bbbbbbbbbbbbbbbb".into(),
            label: "tidy up".into(),
            wanted: "run: rm -r x\u{1b}[2J".into(),
            why: "a rule asks for it".into(),
            since: Some(1),
            allow: Some("convoke resume s_aaaaaaaaaaaaaaaa --allow q_abcd2345".into()),
            deny: None,
            answer: None,
        }],
        warnings: vec!["the price table is of 2026-01-01".into()],
        ..solo()
    }
}

fn piped() -> Look {
    let output = OutputFormat::Text;
    Look {
        output,
        talk: Talk::Sparse,
        answer_on_terminal: false,
        talk_on_terminal: false,
        colour: true,
        verbose: false,
    }
}

/// Everything on stderr, as with `--verbose`.
fn verbose() -> Look {
    Look { verbose: true, ..piped() }
}

const WHOLE: Option<&str> = Some("convoke sessions show s_aaaaaaaaaaaaaaaa --report");

#[test]
fn the_text_fits_its_width_and_holds_nothing_a_terminal_would_obey() {
    for (look, name) in [(piped(), "summary"), (verbose(), "text")] {
        for width in [40, 80, 120] {
            let shown = text(&fan_out(), look, width, WHOLE);
            let longest = shown.lines().map(text_columns).max().unwrap();
            assert!(longest <= width, "a line of {longest} at {width}:\n{shown}");
            assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
            assert!(!shown.contains('\u{202e}'), "{shown:?}");
            insta::assert_snapshot!(format!("{name}_at_{width}_columns"), shown);
        }
    }
}

#[test]
fn a_summary_of_sixty_findings_is_a_few_lines_and_breaks_no_word() {
    let many = |n: usize| {
        let claim = if n.is_multiple_of(2) {
            "it panics".to_owned()
        } else {
            format!("{} {n}", "supercalifragilistic words ".repeat(9))
        };
        let place = Citation { path: Some(format!("src/part{n}.rs")), first: Some(4), ..Citation::default() };
        Finding { citations: vec![place], ..finding(&claim, Severity::High, Verdict::Confirmed) }
    };
    let report = SessionReport { findings: (0..60).map(many).collect(), ..solo() };
    let shown = text(&report, piped(), 80, WHOLE);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.len() <= 8, "{shown}");
    assert_eq!(lines[0], "findings: 60 confirmed");
    assert_eq!(lines[1], "  high src/part0.rs:4 (and 29 like it): it panics");
    assert!(lines[lines.len() - 1].starts_with("the whole report: convoke sessions show s_"), "{shown}");
    assert!(shown.contains("  and 28 more\n"), "{shown}");
    let whole = shown.split(|c: char| !c.is_alphabetic()).filter(|word| word.starts_with("super"));
    assert!(whole.clone().count() > 0 && whole.clone().all(|word| word == "supercalifragilistic"), "{shown}");
}

#[test]
fn colours_are_for_terminals_alone() {
    assert!(!text(&fan_out(), piped(), 80, WHOLE).contains('\u{1b}'));
    let terminal = Look { talk_on_terminal: true, ..piped() };
    assert!(text(&fan_out(), terminal, 80, WHOLE).contains("\u{1b}[1mfindings"));
}

#[test]
fn of_a_lead_alone_there_is_nothing_more_to_tell() {
    assert_eq!(text(&solo(), piped(), 80, WHOLE), "");
}

#[test]
fn what_is_shortened_is_said() {
    let long = finding(&"word ".repeat(300), Severity::High, Verdict::Confirmed);
    let report = SessionReport { findings: vec![long; 60], ..solo() };
    let shown = text(&report, verbose(), 80, None);
    assert!(shown.contains("characters more)") && shown.contains("and 10 more"), "{shown}");
    assert!(shown.contains("some of this is shortened"), "{shown}");
    assert_eq!(Form::Markdown.render(&report).matches("### high, confirmed").count(), 60);
}

#[test]
fn a_cache_that_cost_more_than_it_saved_says_so() {
    let cache = Cache { saved_nano: Some(-20_000_000), ..fan_out().cache };
    let shown = text(&SessionReport { cache, ..fan_out() }, verbose(), 120, WHOLE);
    assert!(shown.contains("$0.02 more than without it"), "{shown}");
}

#[test]
fn no_form_holds_anything_a_terminal_would_obey() {
    let mut report = fan_out();
    report.answer.push_str("\u{9b}2J\u{1b}[2J\u{202e}");
    report.findings[1].citations[0].quote = Some("\u{9b}2J\u{202e}".into());
    for form in [Form::Markdown, Form::Json, Form::Sarif] {
        let shown = form.render(&report);
        assert!(
            !shown.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{form:?}: {shown:?}"
        );
    }
}

/// What a Markdown reader makes of the report: its text, and what it would do beside showing it.
fn read_markdown(page: &str) -> (String, Vec<String>) {
    use pulldown_cmark::{Event, Options, Parser, Tag};
    let mut text = String::new();
    let mut acts = Vec::new();
    for event in Parser::new_ext(page, Options::all() - Options::ENABLE_SMART_PUNCTUATION) {
        match event {
            Event::Text(said) | Event::Code(said) => text.push_str(&said),
            Event::SoftBreak | Event::HardBreak | Event::End(_) => text.push('\n'),
            Event::Html(tag) | Event::InlineHtml(tag) => acts.push(tag.to_string()),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                acts.push(dest_url.to_string())
            }
            _ => {}
        }
    }
    (text, acts)
}

#[test]
fn a_markdown_reader_sees_the_words_of_a_claim_a_path_and_a_quote_and_obeys_none() {
    let claim = "1. a|b `c` <b>d</b> [e](http://x) ![f](y) &lt; *g* _h_ ~~i~~ # j $k$ \\";
    let path = "src/a|b `c` [d](e) <i>.rs";
    let mut report = fan_out();
    report.answer = "It is a `Vec<u8>`, <b>so</b> there ![p](http://e/p.png).".into();
    report.findings[1].claim = claim.into();
    report.findings[1].citations[0].path = Some(path.into());
    report.findings[1].citations[0].quote = Some("let x = `<y>` | z;".into());
    report.agents[1].changed = vec![path.into()];
    report.agents[1].label = claim.into();
    report.changed[0].path = path.into();
    report.notes = vec![claim.into(), "- a".into()];
    let page = Form::Markdown.render(&report);
    let (text, acts) = read_markdown(&page);
    assert_eq!(acts, Vec::<String>::new(), "{page}");
    for said in [claim, path, "let x = `<y>` | z;", "It is a Vec<u8>, <b>so</b> there ![p](http://e/p.png)."]
    {
        assert!(text.contains(said), "{said:?} is not shown as it is:\n{text}\n{page}");
    }
    let rows = |table: &str| table.lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(rows(&page), rows(&Form::Markdown.render(&fan_out())), "no row breaks:\n{page}");
    assert!(text.contains("\n- a\n"), "a note that begins like a list is none:\n{page}");
}

#[test]
fn every_form_is_as_it_was() {
    insta::assert_snapshot!("markdown", Form::Markdown.render(&fan_out()));
    insta::assert_snapshot!("markdown_of_a_lead_alone", Form::Markdown.render(&solo()));
    insta::assert_snapshot!("json", Form::Json.render(&fan_out()));
    let version = format!("\"semanticVersion\": \"{}\"", env!("CARGO_PKG_VERSION"));
    insta::assert_snapshot!(
        "sarif",
        Form::Sarif.render(&fan_out()).replace(&version, "\"semanticVersion\": \"VERSION\"")
    );
}
