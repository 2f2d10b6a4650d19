//! The shipped workflows as programs: what they make of answers that the offline model does not give, such as
//! agents that died. The interpreter runs in this process and everything it asks for is answered here, so
//! that no agent is started.

use convoke_script::{
    Call, CallOutcome, GuestMessage, HostMessage, Interpreter, Limits, ProgramRemark, Start, State, Want,
};
use serde_json::{Value, json};

const REVIEW: &str = include_str!("../../../convoke-runtime/workflows/review.js");
const AUDIT: &str = include_str!("../../../convoke-runtime/workflows/audit.js");
const MIGRATE: &str = include_str!("../../../convoke-runtime/workflows/migrate.js");

/// What a program came to, and what it asked for and said on the way.
struct Ran {
    value: Result<Value, String>,
    calls: Vec<Call>,
    logs: Vec<String>,
}

impl Ran {
    #[track_caller]
    fn summary(&self) -> &str {
        self.value.as_ref().unwrap()["summary"].as_str().unwrap()
    }

    fn agents(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call.want, Want::Agent(_))).count()
    }
}

fn run(source: &str, args: Value, mut answer: impl FnMut(&Call) -> CallOutcome) -> Ran {
    let mut interpreter = Interpreter::new();
    let start = Start {
        source: source.to_owned(),
        args: Some(args),
        budget_total: None,
        spent: 0,
        limits: Limits::default(),
    };
    let mut told = interpreter.hear(HostMessage::Start(Box::new(start)));
    let mut open = Vec::new();
    let mut calls = Vec::new();
    let mut logs = Vec::new();
    loop {
        let GuestMessage::Stepped(step) = told else { panic!("no step: {told:?}") };
        calls.extend(step.calls.iter().cloned());
        open.extend(step.calls);
        logs.extend(step.said.into_iter().filter_map(|said| match said {
            ProgramRemark::Log { text } => Some(text),
            ProgramRemark::Phase { .. } => None,
        }));
        let value = match step.state {
            State::Waiting => {
                let call: Call = open.remove(0);
                let answer = answer(&call);
                told = interpreter.hear(HostMessage::Answer { call: call.call, answer, spent: 0 });
                continue;
            }
            State::Returned { value, .. } => Ok(value.unwrap_or(Value::Null)),
            State::Failed { fault } => Err(fault.message),
        };
        return Ran { value, calls, logs };
    }
}

fn gives(value: Value) -> CallOutcome {
    CallOutcome::Value { value }
}

fn throws(message: &str) -> CallOutcome {
    CallOutcome::Throw { message: message.to_owned() }
}

fn confirmed() -> CallOutcome {
    gives(json!({"verdict": "confirmed", "evidence": "seen"}))
}

fn finding(path: &str, line: u32) -> Value {
    json!({"claim": format!("wrong in {path}"), "evidence": "seen", "severity": "low", "path": path, "first": line, "last": line, "quote": "x"})
}

fn found(findings: &[Value]) -> CallOutcome {
    gives(json!({"findings": findings, "summary": "looked"}))
}

/// Rounds of the audit, each with what its two finders bring; `None` for one that died. Rounds beyond find
/// nothing.
fn audit(rounds: &[[Option<&[Value]>; 2]]) -> Ran {
    let mut asked = 0;
    run(AUDIT, json!({"goal": "x"}), |call| match &call.want {
        Want::Agent(_) => {
            asked += 1;
            match rounds.get((asked - 1) / 2).map(|round| round[(asked - 1) % 2]) {
                Some(None) => gives(Value::Null),
                Some(Some(findings)) => found(findings),
                None => found(&[]),
            }
        }
        _ => confirmed(),
    })
}

#[track_caller]
fn check_audit(rounds: &[[Option<&[Value]>; 2]], expected: (u64, bool, u64), summary: &str) {
    let ran = audit(rounds);
    let value = ran.value.as_ref().unwrap();
    let came =
        (value["rounds"].as_u64().unwrap(), value["dry"].as_bool().unwrap(), value["dead"].as_u64().unwrap());
    assert_eq!(came, expected, "{:?}", ran.logs);
    assert!(ran.summary().contains(summary), "{}", ran.summary());
}

#[test]
fn a_round_of_the_audit_is_dry_only_if_every_finder_looked() {
    let one: &[Value] = &[finding("a.rs", 1)];
    let none: &[Value] = &[];
    let both = "two rounds in which every finder looked found nothing new";
    check_audit(&[], (2, true, 0), both);
    check_audit(&[[Some(one), Some(none)]], (3, true, 0), "1 confirmed, 0 refuted, 0 open after 3 rounds");
    // Half a round that brought nothing says nothing; what half a round brought counts.
    check_audit(&[[Some(none), None]], (3, true, 1), "1 finders died and did not look");
    check_audit(&[[Some(none), Some(none)], [None, Some(none)]], (3, true, 1), both);
    check_audit(&[[None, Some(one)]], (3, true, 1), "1 confirmed");
}

#[test]
fn an_audit_whose_finders_keep_dying_ends_without_a_conclusion() {
    let none: &[Value] = &[];
    check_audit(
        &[[None, None], [None, Some(none)], [None, None]],
        (3, false, 5),
        "so nobody knows what is left",
    );
    // Whole rounds in between are patience regained.
    let half = [None, Some(none)];
    check_audit(&[half, half, [Some(none), Some(none)], half, half], (6, true, 4), "every finder looked");
    let last = audit(&[[None, None]]);
    assert!(
        last.logs.iter().any(|line| line.contains("not everybody looked, so this says nothing")),
        "{:?}",
        last.logs
    );
}

/// The review of these paths, where `lib` is a folder, `a.rs` a file and nothing else is there.
fn review(args: Value, sh: CallOutcome) -> Ran {
    let mut reviewers = 0;
    run(REVIEW, args, |call| match &call.want {
        Want::Sh { .. } => sh.clone(),
        Want::Agent(agent) if agent.label.as_deref() == Some("scout") => {
            gives(json!({"areas": [{"path": "lib/x", "why": "large"}, {"path": "src", "why": "large"}]}))
        }
        Want::Agent(_) => {
            reviewers += 1;
            let places = [
                finding("./lib/x.rs", 1),
                finding("src/y.rs", 2),
                finding("library.rs", 3),
                finding("a.rs", 4),
            ];
            if reviewers == 1 { found(&places) } else { found(&[]) }
        }
        _ => confirmed(),
    })
}

fn printed(output: &str) -> CallOutcome {
    gives(json!({"ok": true, "code": 0, "output": output}))
}

#[test]
fn a_review_of_paths_leaves_out_what_lies_elsewhere_and_says_how_much() {
    let ran = review(json!({"paths": ["./lib//", "a.rs"]}), printed("folder 0\nfile 1\n"));
    let value = ran.value.as_ref().unwrap();
    let paths = |name: &str| -> Vec<String> {
        value[name].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(paths("confirmed"), ["./lib/x.rs", "a.rs"]);
    assert_eq!(paths("outside"), ["src/y.rs", "library.rs"]);
    assert!(
        ran.summary().contains("in `lib/`, `a.rs`. 2 findings elsewhere were left out"),
        "{}",
        ran.summary()
    );
    assert_eq!(ran.logs[0], "worth a look first: lib/x");
    let verified = ran.calls.iter().filter(|call| matches!(call.want, Want::Verify { .. })).count();
    assert_eq!(verified, 2, "nobody is paid for what was not asked about");
    let whole = review(json!("."), printed(""));
    assert_eq!(whole.value.as_ref().unwrap()["confirmed"].as_array().unwrap().len(), 4);
    assert!(
        !whole.calls.iter().any(|call| matches!(call.want, Want::Sh { .. })),
        "the directory itself is there"
    );
}

#[track_caller]
fn check_refused(args: Value, sh: CallOutcome, says: &str) {
    let ran = review(args, sh);
    let why = ran.value.as_ref().unwrap_err();
    assert!(why.contains(says), "{why}");
    assert_eq!(ran.agents(), 0, "nobody was paid");
}

#[test]
fn a_review_of_a_path_that_is_not_there_costs_nothing() {
    check_refused(
        json!({"paths": ["lib", "gone", "it's"]}),
        printed("folder 0\nmissing 1\nmissing 2\n"),
        "there is no gone, no it's here",
    );
    check_refused(json!("/etc"), printed(""), "below the working directory");
    check_refused(json!({"paths": "../x"}), printed(""), "below the working directory");
    check_refused(json!({"paths": [3]}), printed(""), "paths are texts");
    // Where it cannot be looked up, that is said, and the review is done.
    let ran = review(json!("lib"), throws("sh: no sandbox"));
    assert!(ran.summary().contains("could not be looked up: sh: no sandbox"), "{}", ran.summary());
    assert_eq!(ran.agents(), 6);
}

/// A migration of one file: what the test command and the second agent say of the patch, and what the agents
/// say they ran.
fn migrate(args: Value, sh: CallOutcome, check: CallOutcome, ran: &str) -> Ran {
    let patch = "--- a/it's\n+++ b/it's\n@@ -1 +1 @@\n-a\n+b";
    run(MIGRATE, args, |call| match &call.want {
        Want::Sh { .. } => sh.clone(),
        Want::Agent(agent) if agent.isolation.is_some() => {
            gives(json!({"changed": true, "summary": "done", "patch": patch, "ran": ran}))
        }
        Want::Agent(agent) => {
            assert!(agent.prompt.contains(patch), "whoever judges a change sees it: {}", agent.prompt);
            check.clone()
        }
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_migration_says_of_every_change_what_was_done_to_check_it() {
    let plain = json!({"goal": "a", "items": ["x"]});
    let test = json!({"goal": "a", "items": ["x"], "test": "make check"});
    let says = |ok: bool, ran: &str| gives(json!({"ok": ok, "why": "read it", "ran": ran}));
    let passed = printed("");
    let failed = gives(json!({"ok": false, "code": 1, "output": "2 failed"}));
    for (args, sh, check, author, state, words) in [
        (
            &plain,
            &passed,
            says(true, ""),
            "",
            "changed",
            "1 of 1 files are changed (1 looked at by a second agent, without a test)",
        ),
        (&plain, &passed, says(true, "make: ok"), "", "changed", "tested by the word of an agent"),
        (&plain, &passed, says(true, ""), "make: ok", "changed", "tested by the word of an agent"),
        (
            &plain,
            &passed,
            says(false, ""),
            "",
            "failed",
            "0 of 1 files are changed, 0 stayed as they are, 1 failed",
        ),
        (&plain, &passed, gives(Value::Null), "", "failed", "1 failed"),
        (&plain, &passed, throws("no value"), "", "failed", "1 failed"),
        (
            &test,
            &passed,
            says(true, ""),
            "",
            "changed",
            "1 tested with `make check` and looked at by a second agent",
        ),
        (&test, &failed, says(true, ""), "", "failed", "1 failed"),
        (&test, &throws("sh: no sandbox"), says(true, ""), "", "failed", "1 failed"),
    ] {
        let ran = migrate(args.clone(), sh.clone(), check, author);
        assert!(ran.summary().contains(words), "{}", ran.summary());
        let value = ran.value.as_ref().unwrap();
        let list = if state == "changed" { &value["apply"] } else { &value["failed"] };
        assert_eq!(list[0]["state"], state, "{value:#}");
        assert!(args["test"].is_string() || !ran.summary().contains("tested with"), "{}", ran.summary());
    }
    let ran = migrate(test, failed, says(true, ""), "");
    assert_eq!(ran.agents(), 1, "what fails its test is judged by nobody");
    assert!(
        ran.value.unwrap()["failed"][0]["why"]
            .as_str()
            .unwrap()
            .ends_with("`make check` failed on it: 2 failed")
    );
}
