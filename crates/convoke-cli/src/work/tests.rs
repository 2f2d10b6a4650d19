//! What is gathered from sessions, agents and the ledger, without a journal.

use convoke_claude::Models;
use convoke_kernel::{
    AgentId, Ballot, BudgetGranted, Caps, FailureKind, ItemResult, Judgement, LedgerEvent, LostWork, Report,
    Role, RunId, RunInput, RunSpec, SessionId, Status, Summary, Usage, Vote,
};

use super::*;
use crate::report::AgentStatus;

const NOW: u64 = 10_000_000;

fn id(number: u8) -> AgentId {
    AgentId::from_bits([number; 10])
}

fn entry(number: u8, role: Role, status: Status) -> Entry {
    let usage = Usage { input_tokens: 100, cache_read_tokens: 1_000, output_tokens: 10, ..Usage::default() };
    let summary = Summary {
        session: SessionId::from_bits([1; 10]),
        role,
        label: String::new(),
        dir: "/d".into(),
        task: "look".into(),
        forked_from: None,
        refused: None,
        model: "claude-opus-4-8".into(),
        effort: None,
        status,
        failure: None,
        can_go_on: false,
        started_at: 0,
        turns: 2,
        calls: 2,
        commands: 1,
        usage,
        cost_nano: Some(5),
    };
    Entry { agent: id(number), summary, updated_at: 0, owner: None }
}

/// How many subtasks and verifications were lost, each for want of room and for other reasons.
fn number(work: &Work) -> (u32, u32, u32, u32) {
    let of = |what, short| work.losses.number(what, short);
    let subtask = LostWork::Subtask;
    let verification = LostWork::Verification;
    (of(subtask, true), of(subtask, false), of(verification, true), of(verification, false))
}

fn session(agents: Vec<Entry>) -> ListedSession {
    ListedSession::of_agents(SessionId::from_bits([1; 10]), agents)
}

/// A workflow of these subtasks to which these inputs happened.
fn flow(subtasks: &[&str], voters: u32, inputs: Vec<RunInput>) -> kernel::Run {
    let spec = RunSpec {
        run: RunId::derived(&["x"]).to_string(),
        session: SessionId::from_bits([1; 10]),
        lead: id(1),
        call: "c".into(),
        dir: "/d".into(),
        base: String::new(),
        voters,
        subtasks: subtasks.iter().map(|text| (*text).to_owned()).collect(),
        keys: subtasks.iter().map(|text| (*text).to_owned()).collect(),
        notes: vec!["(note: 1 subtasks beyond MAX_TOTAL_SUBTASKS=5 were not run)\n- 6: \"late\"".into()],
        dropped: vec!["late".into()],
        consent: "orchestration mode".into(),
    };
    let mut run = kernel::Run::new();
    for input in std::iter::once(RunInput::Start(Box::new(spec))).chain(inputs) {
        for event in run.decide(input).unwrap() {
            run.apply(&event, 1).unwrap();
        }
    }
    run
}

fn found(agent: u8, severity: kernel::Severity) -> ItemResult {
    let citations =
        vec![kernel::Citation { path: Some("a.rs".into()), first: Some(3), ..Default::default() }];
    let finding = kernel::Finding { claim: "it breaks".into(), evidence: "seen".into(), severity, citations };
    let report = Report { summary: "s".into(), findings: vec![finding] };
    ItemResult { report: Some(report), agent: Some(id(agent)), ..ItemResult::bare(ItemStatus::Ok) }
}

fn ended(item: u32, result: ItemResult) -> RunInput {
    RunInput::Ended { item, result: Box::new(result) }
}

fn vote(item: u32, agent: u8, verdict: Vote) -> RunInput {
    let judgement = Judgement { finding: 1, verdict, evidence: "looked".into() };
    let ballot = Some(Ballot { summary: "b".into(), verdicts: vec![judgement] });
    let result = VoterResult { ballot, agent: Some(id(agent)), ..VoterResult::default() };
    RunInput::VoterEnded { item, voter: 1, result: Box::new(result) }
}

fn checked(item: u32) -> RunInput {
    RunInput::Checked { item, checks: vec![vec![kernel::Checked::Holds]] }
}

fn gathered(run: &ListedSession, flows: &[kernel::Run]) -> Work {
    Work::new(run, flows, &[], None, &Models::builtin(), NOW)
}

#[test]
fn a_finding_comes_with_its_verdict_and_where_it_is_from() {
    let inputs = vec![
        RunInput::Began { item: 1, agent: id(2) },
        ended(1, found(2, kernel::Severity::High)),
        checked(1),
        RunInput::VoterBegan { item: 1, voter: 1, agent: id(3) },
        vote(1, 3, Vote::Refuted),
        RunInput::Began { item: 2, agent: id(4) },
        ended(2, found(4, kernel::Severity::Low)),
    ];
    let flows = [flow(&["first", "second"], 1, inputs)];
    let agents = vec![
        entry(1, Role::Lead, Status::Done),
        entry(2, Role::Worker, Status::Done),
        entry(3, Role::Verifier, Status::Done),
        entry(4, Role::Worker, Status::Done),
        entry(5, Role::Task, Status::Failed),
    ];
    let work = gathered(&session(agents), &flows);
    let [first, second] = work.findings.as_slice() else { panic!("{:?}", work.findings) };
    assert_eq!(
        (first.severity, first.verdict, first.reason.as_str()),
        (Severity::High, Verdict::Refuted, "looked")
    );
    assert_eq!((first.item, first.label.as_str()), (Some(1), "first"));
    assert_eq!(first.agent, Some(id(2).to_string()));
    assert_eq!(first.citations[0].place().as_deref(), Some("a.rs:3"));
    assert_eq!(
        (second.verdict, second.reason.as_str()),
        (Verdict::Unverified, "the run stopped before it was judged")
    );
    let rows: Vec<(&str, Option<u32>, AgentStatus, u64)> =
        work.agents.iter().map(|agent| (agent.role, agent.item, agent.status, agent.tokens)).collect();
    let expected = [
        ("worker", Some(1), AgentStatus::Ok, 1_110),
        ("verifier", Some(1), AgentStatus::Ok, 1_110),
        ("worker", Some(2), AgentStatus::Ok, 1_110),
        ("task", None, AgentStatus::Failed, 1_110),
    ];
    assert_eq!(rows, expected);
    assert_eq!((work.below.turns, work.below.commands, work.below.cost_nano), (8, 4, Some(20)));
}

#[test]
fn what_was_not_run_is_listed_with_its_reason() {
    let skipped = |reason: &str| ItemResult::bare(ItemStatus::Skipped { reason: reason.to_owned() });
    let failed = ItemStatus::Failed { kind: FailureKind::TurnLimit, message: "15 turns".into() };
    let inputs = vec![
        ended(1, skipped("budget: $0.10 are left")),
        RunInput::Began { item: 2, agent: id(2) },
        ended(2, ItemResult { agent: Some(id(2)), ..ItemResult::bare(failed) }),
        RunInput::Began { item: 3, agent: id(3) },
    ];
    let flows = [flow(&["a", "b", "c", "d"], 0, inputs)];
    let work = gathered(&session(vec![entry(1, Role::Lead, Status::Done)]), &flows);
    let listed: Vec<(&str, &str)> =
        work.skipped.iter().map(|skipped| (skipped.label.as_str(), skipped.reason.as_str())).collect();
    let expected = [
        ("a", "budget: $0.10 are left"),
        ("d", "the run stopped before it began"),
        ("late", "beyond the most subtasks of one workflow"),
    ];
    assert_eq!(listed, expected);
    assert_eq!(work.notes, ["1 subtasks beyond MAX_TOTAL_SUBTASKS=5 were not run"]);
    let statuses: Vec<AgentStatus> = work.agents.iter().map(|agent| agent.status).collect();
    assert_eq!(statuses, [AgentStatus::Failed, AgentStatus::Open]);
    assert_eq!(work.agents[0].failure.as_ref().map(|failure| failure.kind.as_str()), Some("turn_limit"));
    assert_eq!(number(&work), (1, 1, 0, 0));
    let lost: Vec<(&str, &str)> =
        work.losses.lost.iter().map(|lost| (lost.label.as_str(), lost.kind.word())).collect();
    assert_eq!(lost, [("a", "budget"), ("b", "turn_limit")]);
    let again = flow(&["a"], 0, vec![ended(1, ItemResult::bare(ItemStatus::Ok))]);
    let both = [flows[0].clone(), again];
    assert_eq!(
        number(&gathered(&session(vec![entry(1, Role::Lead, Status::Done)]), &both)),
        (0, 1, 0, 0),
        "done later"
    );
}

#[test]
fn a_result_whose_verifier_was_refused_for_want_of_money_is_left_undone() {
    let refused =
        VoterResult { failure: Some("$0.10 left".into()), agent: Some(id(3)), ..VoterResult::default() };
    let inputs = vec![
        RunInput::Began { item: 1, agent: id(2) },
        ended(1, found(2, kernel::Severity::Low)),
        checked(1),
        RunInput::VoterBegan { item: 1, voter: 1, agent: id(3) },
        RunInput::VoterEnded { item: 1, voter: 1, result: Box::new(refused) },
    ];
    let flows = [flow(&["a"], 1, inputs)];
    let check = |failure: FailureKind, expected: (u32, u32, u32, u32)| {
        let mut verifier = entry(3, Role::Verifier, Status::Failed);
        verifier.summary.failure = Some(failure);
        let agents = vec![entry(1, Role::Lead, Status::Done), entry(2, Role::Worker, Status::Done), verifier];
        let work = gathered(&session(agents), &flows);
        assert_eq!(number(&work), expected, "{failure:?}");
        assert_eq!(
            (work.findings[0].verdict, work.findings[0].reason.as_str()),
            (Verdict::Unverified, "$0.10 left")
        );
    };
    check(FailureKind::Budget, (0, 0, 1, 0));
    // No verifier looked, for whatever reason: what was found is not verified, and the answer is not whole.
    check(FailureKind::Api, (0, 0, 0, 1));
}

#[test]
fn what_was_taken_from_elsewhere_is_said_and_costs_nothing_here() {
    let reused = Some(Reused { session: "s_before".into(), at: NOW - 7_200_000 });
    let old = ItemResult { reused, changed: vec!["x".into()], ..found(9, kernel::Severity::Low) };
    let flows = [flow(&["a"], 0, vec![ended(1, old), checked(1)])];
    let work = gathered(&session(vec![entry(1, Role::Lead, Status::Done)]), &flows);
    let [agent] = work.agents.as_slice() else { panic!("{:?}", work.agents) };
    assert_eq!((agent.tokens, agent.cost_nano, agent.changed.len()), (0, Some(0), 0));
    assert_eq!(agent.reused.as_ref().map(|from| from.run.as_str()), Some("s_before"));
    assert!(work.notes.contains(&"1 of 1 results is from s_before, 2 h old".to_owned()), "{:?}", work.notes);
    assert_eq!(work.below, Used::default());
}

#[test]
fn the_cache_figures_are_those_of_all_agents_by_the_price_table() {
    let agents = || vec![entry(1, Role::Lead, Status::Done), entry(2, Role::Worker, Status::Done)];
    let work = gathered(&session(agents()), &[]);
    let rates = Models::builtin().get("claude-opus-4-8").prices.unwrap().rates(0).unwrap();
    let saved = i64::try_from(2_000 * (rates.input - rates.cache_read)).unwrap();
    assert_eq!(work.cache, Some(Cache { read: 2_000, written: 0, fresh: 200, saved_nano: Some(saved) }));
    let mut written = agents();
    written[1].summary.usage = Usage { cache_write_5m_tokens: 500, ..Usage::default() };
    let less = 1_000 * (rates.input - rates.cache_read) - 500 * (rates.cache_write_5m - rates.input);
    let cache = gathered(&session(written), &[]).cache.unwrap();
    assert_eq!((cache.written, cache.saved_nano), (500, i64::try_from(less).ok()), "writing is paid for");
    let mut unknown = agents();
    unknown[1].summary.model = "nobody-knows".into();
    assert_eq!(gathered(&session(unknown), &[]).cache.unwrap().saved_nano, None);
}

#[test]
fn spend_is_what_replies_cost_under_the_ledgers_caps_and_a_price_nobody_knows_stays_unknown() {
    let caps = Caps { agents: Some(7), tokens: None, nano: Some(9), ms: Some(60_000) };
    let mut ledger = Ledger::default();
    ledger.apply(&LedgerEvent::BudgetGranted(BudgetGranted { caps, by: "start".into() }), 0);
    let spend = |cost: Option<u64>| {
        let mut lead = entry(1, Role::Lead, Status::Done);
        lead.summary.cost_nano = cost;
        Work::new(&session(vec![lead]), &[], &[], Some(&ledger), &Models::builtin(), NOW).spend.unwrap()
    };
    assert_eq!(
        (spend(Some(5)).nano, spend(Some(5)).cap_agents, spend(Some(5)).cap_ms),
        (Some(5), Some(7), Some(60_000))
    );
    assert_eq!(spend(None).nano, None);
    let without = Work::new(
        &session(vec![entry(1, Role::Lead, Status::Done)]),
        &[],
        &[],
        None,
        &Models::builtin(),
        NOW,
    );
    assert_eq!(without.spend, None, "a session from before there was a ledger");
}
