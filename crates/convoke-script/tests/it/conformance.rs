//! The contract's sections 3 to 7 and 9, row by row: what `agent`, `parallel`, `pipeline`, `phase`, `log`,
//! `args`, `budget` and `workflow` promise to a script. Each test is named by the row it shows.

use convoke_script::{Call, CallOutcome, FaultKind, Limits, ProgramRemark, State, Want};
use serde_json::{Value, json};

use crate::drive::{End, Order, Ran, echo, program, run, run_body, run_echo, start};
use crate::stub::{self, Mode};

/// What a body returns when agents answer with what they were asked.
pub(crate) fn check(body: &str, expected: Value) {
    assert_eq!(run_echo(body).value(), expected, "{body}");
}

/// The agents that a body asked for.
fn agents(ran: &Ran) -> Vec<&convoke_script::AgentWant> {
    ran.calls
        .iter()
        .filter_map(|call| if let Want::Agent(agent) = &call.want { Some(agent) } else { None })
        .collect()
}

fn thrown(body: &str) -> String {
    match run_echo(body).end {
        End::State(State::Failed { fault }) if fault.kind == FaultKind::Thrown => fault.message,
        other => panic!("{body}: {other:?}"),
    }
}

fn values(of: Vec<Value>) -> impl FnMut(&Call) -> CallOutcome {
    let mut rest = of.into_iter();
    move |call| match &call.want {
        Want::Agent(_) => CallOutcome::Value { value: rest.next().unwrap() },
        _ => stub::answer(call, Mode::Ok),
    }
}

#[test]
fn every_option_of_agent_reaches_the_host() {
    let ran = run_body(
        "const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
         return await agent('do it', \
         { label: 'l', phase: 'p', schema, model: 'haiku', effort: 'xhigh', isolation: 'worktree', agentType: 'plugin:kind', tools: ['Read'] })",
    );
    assert_eq!(ran.calls[0].phase.as_deref(), Some("p"));
    let agent = agents(&ran)[0].clone();
    assert_eq!(agent.prompt, "do it");
    assert_eq!(agent.label.as_deref(), Some("l"));
    assert_eq!(
        agent.schema,
        Some(json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}))
    );
    assert_eq!(agent.model.as_deref(), Some("haiku"));
    assert_eq!(agent.effort.as_deref(), Some("xhigh"));
    assert_eq!(agent.isolation.as_deref(), Some("worktree"));
    assert_eq!(agent.agent_type.as_deref(), Some("plugin:kind"));
    assert_eq!(agent.tools, Some(vec!["Read".to_owned()]));
}

#[test]
fn an_option_that_is_undefined_is_absent() {
    let ran = run_echo(
        "await agent('x', \
            { label: undefined, phase: undefined, schema: undefined, model: undefined, \
              effort: undefined, isolation: undefined, agentType: undefined, tools: undefined })
         await agent('x', undefined)
         await agent('x')",
    );
    let bare = convoke_script::AgentWant { prompt: "x".to_owned(), ..Default::default() };
    assert_eq!(agents(&ran), [&bare, &bare, &bare]);
    assert_eq!(ran.calls[0].phase, None);
}

#[test]
fn an_unknown_option_is_ignored_and_mentioned_once() {
    let ran =
        run_echo("for (let i = 0; i < 3; i++) await agent('x', { _predispatch: i, adapter: 'a' })\nreturn 1");
    assert_eq!(ran.value(), json!(1));
    let logs = ran.logs();
    let naming = |name: &str| logs.iter().filter(|line| line.contains(name)).count();
    assert_eq!((naming("_predispatch"), naming("adapter")), (1, 1), "{logs:?}");
}

#[test]
fn every_effort_of_the_contract_is_accepted_and_no_other() {
    check(
        "for (const effort of ['low', 'medium', 'high', 'xhigh', 'max']) await agent('x', { effort })
         return 1",
        json!(1),
    );
    assert!(thrown("await agent('x', { effort: 'huge' })").contains("effort"));
}

#[test]
fn isolation_is_worktree_or_absent_and_remote_is_not_available() {
    assert!(thrown("await agent('x', { isolation: 'remote' })").contains("not available"));
    assert!(thrown("await agent('x', { isolation: 'container' })").contains("isolation"));
}

#[test]
fn without_a_schema_an_agent_resolves_to_its_text_as_it_was() {
    let text = " two lines\n\tand \u{1f600} \"quotes\" \\ ";
    let ran = run(start(&program("return await agent('x')")), Order::First, 10, values(vec![json!(text)]));
    assert_eq!(ran.value(), json!(text));
}

#[test]
fn with_a_schema_an_agent_resolves_to_the_object() {
    let object =
        json!({"list": [1, 2.5, null, true, "x"], "deep": {"er": {}}, "__proto__": {"polluted": true}});
    let ran = run(
        start(&program(
            "const got = await agent('x', { schema: { type: 'object', properties: {} } })
             return { got, polluted: ({}).polluted === undefined ? 'no' : 'yes', sum: got.list[0] + \
             got.list[1] }",
        )),
        Order::First,
        10,
        values(vec![object.clone()]),
    );
    assert_eq!(ran.value()["got"]["list"], object["list"]);
    assert_eq!(ran.value()["sum"], json!(3.5));
    assert_eq!(ran.value()["polluted"], json!("no"));
}

#[test]
fn an_agent_that_died_or_was_skipped_is_null() {
    let ran = run(
        start(&program("return (await agent('x')) === null")),
        Order::First,
        10,
        values(vec![Value::Null]),
    );
    assert_eq!(ran.value(), json!(true));
}

#[test]
fn an_agent_that_fails_for_good_rejects_with_an_error_that_can_be_caught() {
    let ran = run(
        start(&program("try { await agent('x') } catch (e) { return [e instanceof Error, e.message] }")),
        Order::First,
        10,
        |_| CallOutcome::Throw { message: "its output never fitted the schema".to_owned() },
    );
    assert_eq!(ran.value(), json!([true, "its output never fitted the schema"]));
}

#[test]
fn a_malformed_call_rejects_and_starts_nothing() {
    for call in [
        "agent()",
        "agent('')",
        "agent(5)",
        "agent(null)",
        "agent(['x'])",
        "agent('x', 'label')",
        "agent('x', { label: 5 })",
        "agent('x', { phase: {} })",
        "agent('x', { model: 1 })",
        "agent('x', { schema: 'object' })",
        "agent('x', { schema: [] })",
        "agent('x', { schema: { type: 'array' } })",
        "agent('x', { schema: { type: 'string' } })",
        "agent('x', { tools: 'Read' })",
        "agent('x', { tools: [1] })",
        "agent('x', { agentType: 1 })",
        "verify()",
        "sh()",
        "sh(5)",
        "checkpoint()",
        "checkpoint({})",
        "workflow()",
        "workflow(5)",
        "workflow({})",
    ] {
        // Like any async function: the call itself does not throw, its promise rejects.
        let ran = run_echo(&format!(
            "const p = {call}\ntry {{ await p }} catch (e) {{ return e instanceof TypeError }}\nreturn \
                'accepted'"
        ));
        assert_eq!(ran.value(), json!(true), "{call}");
        assert_eq!(ran.calls, [], "{call}");
    }
}

#[test]
fn the_phase_of_a_call_wins_over_the_current_one_and_does_not_stick() {
    let ran = run_echo(
        "await agent('a')\nphase('One')\nawait agent('b')\nawait agent('c', { phase: 'Two' })\nawait \
            agent('d')",
    );
    let phases: Vec<_> = ran.calls.iter().map(|call| call.phase.as_deref()).collect();
    assert_eq!(phases, [None, Some("One"), Some("Two"), Some("One")]);
    assert_eq!(ran.said, [ProgramRemark::Phase { title: "One".to_owned(), within: None }]);
}

#[test]
fn a_schema_crosses_with_every_keyword_that_scripts_use() {
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["a"], "description": "d",
        "properties": {
            "a": {"type": ["string", "null"], "minLength": 1, "maxLength": 5, "pattern": "^a$"},
            "b": {"enum": ["x", 1, null]},
            "c": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer", "minimum": -1, "maximum": 1}},
            "d": {"type": "object", "additionalProperties": {"type": "number"}},
            "e": {"type": "object", "additionalProperties": true},
        },
    });
    let ran = run_body(&format!(
        "await agent('x', {{ schema: {schema} }})\nawait agent('y', {{ schema: {{ properties: {{}} }} }})"
    ));
    assert_eq!(agents(&ran)[0].schema, Some(schema));
    assert_eq!(agents(&ran)[1].schema, Some(json!({"properties": {}})), "an object by its properties");
}

#[test]
fn the_agent_after_the_last_one_rejects_and_children_count() {
    let mut start = start(&program(
        "const texts = []
         for (let i = 0; i < 4; i++) texts.push(await agent(`n${i}`))
         const child = await workflow('child_brief')
         try { await agent('one too many') } catch (e) \
         { return [texts.length, child.text, e instanceof Error, e.message] }",
    ));
    start.limits.agents = 5;
    let ran = run(start, Order::First, 50, echo);
    assert_eq!(agents(&ran).len(), 5);
    assert_eq!(ran.value()[2], json!(true));
    assert!(ran.value()[3].as_str().unwrap().contains('5'), "{}", ran.value());
    assert_eq!(Limits::default().agents, 1_000);
}

#[test]
fn a_spent_budget_refuses_agents_and_keeps_those_in_flight() {
    let mut start = start(&program(
        "const early = [agent('a'), agent('b'), agent('c')]
         const first = await early[0]
         const before = budget.spent()
         const rest = await Promise.all(early)
         let refused
         try { await agent('d') } catch (e) { refused = e.message }
         return { rest, before, total: budget.total, spent: budget.spent(), left: budget.remaining(), refused: typeof refused, again: await agent('e').catch(() => 'again') }",
    ));
    start.budget_total = Some(2_500);
    let ran = run(start, Order::First, 50, echo);
    assert_eq!(
        ran.value(),
        json!({"rest": ["a", "b", "c"], "before": 1000, "total": 2500, "spent": 3000, "left": 0, "refused": "string", "again": "again"})
    );
    assert_eq!(agents(&ran).len(), 3, "nothing was asked after the budget was gone");
}

#[test]
fn without_a_budget_total_is_null_and_the_rest_is_infinite() {
    check(
        "return [budget.total, budget.remaining() === Infinity, budget.spent(), Object.isFrozen(budget)]",
        json!([null, true, 0, true]),
    );
    let mut start = start(&program("return [budget.total, budget.spent(), budget.remaining()]"));
    start.budget_total = Some(100);
    start.spent = 30;
    assert_eq!(run(start, Order::First, 5, echo).value(), json!([100, 30, 70]));
}

#[test]
fn parallel_wants_an_array_of_functions() {
    assert!(thrown("await parallel('x')").starts_with("TypeError"));
    assert!(thrown("await parallel()").starts_with("TypeError"));
    assert!(thrown("await parallel({ length: 0 })").starts_with("TypeError"));
    let message = thrown("await parallel([agent('x')])");
    assert!(message.starts_with("TypeError") && message.contains("() =>"), "{message}");
    check("return await parallel([5]).catch(e => e instanceof TypeError)", json!(true));
}

#[test]
fn parallel_takes_4096_items_and_refuses_one_more_without_starting_any() {
    check("return (await parallel(Array.from({ length: 4096 }, (_, i) => () => i)))[4095]", json!(4095));
    check(
        "let ran = 0
         try { await parallel(Array.from({ length: 4097 }, () => () => { ran++ })) } catch (e) \
         { return [ran, e.message.includes('4096')] }",
        json!([0, true]),
    );
    check("return await parallel([])", json!([]));
}

#[test]
fn parallel_starts_everything_at_once_and_waits_for_all() {
    let mut open = 0;
    let ran = run(
        start(&program(
            "const r = await parallel([1, 2, 3].map(n => () => agent(`n${n}`)))\nlog('after')\nreturn r",
        )),
        Order::Last,
        10,
        |call| {
            open += 1;
            assert!(call.call <= 3);
            echo(call)
        },
    );
    assert_eq!(open, 3);
    assert_eq!(ran.value(), json!(["n1", "n2", "n3"]), "aligned by position, whatever ended first");
    assert_eq!(
        ran.calls.iter().map(|call| call.call).collect::<Vec<_>>(),
        [1, 2, 3],
        "asked in the order of the calls"
    );
}

#[test]
fn a_thunk_that_throws_is_null_in_its_place_and_is_mentioned() {
    let ran = run_echo(
        "return await parallel([
           () => agent('a'),
           () => { throw new Error('sync') },
           async () => { await agent('b'); return undefined.x },
           () => Promise.reject('text'),
           () => 5,
         ])",
    );
    assert_eq!(ran.value(), json!(["a", null, null, null, 5]));
    let logs = ran.logs().join("\n");
    assert!(logs.contains("parallel[1] failed") && logs.contains("sync"), "{logs}");
    assert!(logs.contains("parallel[2] failed") && logs.contains("parallel[3] failed"), "{logs}");
}

#[test]
fn the_agent_cap_and_the_budget_are_null_inside_parallel() {
    let mut start = start(&program("return await parallel([1, 2, 3].map(n => () => agent(`n${n}`)))"));
    start.limits.agents = 2;
    let ran = run(start, Order::First, 10, echo);
    assert_eq!(ran.value(), json!(["n1", "n2", null]));
    assert_eq!(ran.logs().len(), 1, "{:?}", ran.logs());
}

#[test]
fn nesting_never_blocks() {
    check(
        "return await pipeline([1, 2], n => parallel([1, 2].map(m => () => parallel([1, 2].map(k => () => \
            agent(`${n}${m}${k}`))))))",
        json!([[["111", "112"], ["121", "122"]], [["211", "212"], ["221", "222"]]]),
    );
}

#[test]
fn pipeline_wants_an_array_and_functions_and_has_the_same_cap() {
    assert!(thrown("await pipeline('x', x => x)").starts_with("TypeError"));
    assert!(thrown("await pipeline(undefined, x => x)").starts_with("TypeError"));
    assert!(thrown("await pipeline([1], 5)").starts_with("TypeError"));
    check(
        "return (await pipeline(Array.from({ length: 4096 }, (_, i) => i), x => x + 1))[4095]",
        json!(4096),
    );
    assert!(thrown("await pipeline(Array.from({ length: 4097 }, (_, i) => i), x => x)").contains("4096"));
}

#[test]
fn every_stage_is_given_what_came_before_the_item_and_its_index() {
    check(
        "return await pipeline(['a', 'b'],
           (prev, item, index) => [prev === item, index, prev],
           (prev, item, index) => ({ prev, item, index }))",
        json!([{"prev": [true, 0, "a"], "item": "a", "index": 0}, {"prev": [true, 1, "b"], "item": "b", "index": 1}]),
    );
    check(
        "return await pipeline([1, 2], x => x * 2, async x => x + 1, x => [x], ([x]) => `${x}`)",
        json!(["3", "5"]),
    );
}

#[test]
fn there_is_no_barrier_between_stages() {
    // The first item's second stage is asked for before the second item's first stage has ended.
    let mut answered = Vec::new();
    let ran = run(
        start(&program("return await pipeline(['a', 'b'], x => agent(`1${x}`), x => agent(`2${x}`))")),
        Order::Last,
        10,
        |call| {
            let answer = echo(call);
            answered.push(if let Want::Agent(agent) = &call.want {
                agent.prompt.clone()
            } else {
                String::new()
            });
            answer
        },
    );
    assert_eq!(answered, ["1b", "21b", "1a", "21a"]);
    assert_eq!(ran.value(), json!(["21a", "21b"]), "in the order of the items");
}

#[test]
fn a_stage_that_throws_drops_its_item_and_skips_the_rest() {
    let ran = run_echo(
        "const seen = []
         const r = await pipeline([1, 2, 3], x => { if (x === 2) throw new Error('two'); return x }, x => \
         { seen.push(x); return agent(`n${x}`) })
         return { r, seen }",
    );
    assert_eq!(ran.value(), json!({"r": ["n1", null, "n3"], "seen": [1, 3]}));
    let logs = ran.logs().join("\n");
    assert!(logs.contains("pipeline[1]") && logs.contains("two"), "{logs}");
}

#[test]
fn a_stage_that_returns_null_does_not_stop_its_item() {
    check(
        "return await pipeline([1, 2], () => null, (prev, item) => prev === null ? \
            { item, status: 'skipped' } : 'lost')",
        json!([{"item": 1, "status": "skipped"}, {"item": 2, "status": "skipped"}]),
    );
}

#[test]
fn stages_share_what_they_change() {
    check(
        "const seen = new Set()
         let slots = 2
         return await pipeline(['a', 'A', 'b', 'c'], x => x.toLowerCase(), x => \
         { if (seen.has(x) || slots <= 0) return null; seen.add(x); slots--; return x })",
        json!(["a", null, "b", null]),
    );
}

#[test]
fn phase_and_log_are_synchronous_and_return_nothing() {
    let ran = run_echo(
        "const r = [phase('p'), log('l'), console.log('a', 1, { b: 2 }), console.warn('w')]\nreturn \
            r.every(x => x === undefined)",
    );
    assert_eq!(ran.value(), json!(true));
    assert_eq!(ran.said[0], ProgramRemark::Phase { title: "p".to_owned(), within: None });
    assert_eq!(ran.said[1], ProgramRemark::Log { text: "l".to_owned() });
    assert_eq!(ran.said.len(), 4);
    let said = ran.logs().join("\n");
    assert!(said.contains('a') && said.contains('1') && said.contains('b') && said.contains('w'), "{said}");
}

#[test]
fn log_lines_are_cut_cleaned_and_counted() {
    let mut start =
        start(&program("log('x'.repeat(500))\nlog('a\\u001b[31mred\\u001b[0m\\nb')\nfor (;;) log('more')"));
    start.limits.log_chars = 100;
    start.limits.log_lines = 50;
    let ran = run(start, Order::First, 5, echo);
    let logs = ran.logs();
    assert!(logs[0].starts_with(&"x".repeat(80)) && logs[0].chars().count() < 200, "{}", logs[0]);
    assert!(!logs[1].contains('\u{1b}') && !logs[1].contains('\n') && logs[1].contains("red"), "{}", logs[1]);
    let End::State(State::Failed { fault }) = ran.end else { panic!("{:?}", ran.end) };
    assert_eq!(fault.kind, FaultKind::Logs);
}

#[test]
fn args_are_what_was_given_by_value() {
    for given in [
        json!("text"),
        json!("{\"a\":1}"),
        json!(5),
        json!(null),
        json!([1, {"a": []}]),
        json!({"a": {"b": [null, false]}}),
    ] {
        let mut start = start(&program("return [typeof args, args]"));
        start.args = Some(given.clone());
        let kind = match &given {
            Value::String(_) => "string",
            Value::Number(_) => "number",
            _ => "object",
        };
        assert_eq!(
            run(start, Order::First, 5, echo).value(),
            json!([kind, given]),
            "a string stays a string"
        );
    }
    check("return typeof args", json!("undefined"));
    let mut start = start(&program("args.list.push(2)\nargs.more = 1\nreturn args"));
    start.args = Some(json!({"list": [1]}));
    assert_eq!(
        run(start, Order::First, 5, echo).value(),
        json!({"list": [1, 2], "more": 1}),
        "it is the script's own copy"
    );
}

#[test]
fn a_child_runs_inline_with_its_own_args_and_resolves_to_what_it_returns() {
    let ran = run_echo(
        "phase('Mine')\nconst r = await workflow('child_count', { package: 'p', parts: ['a'] }).catch(e => \
            e.message)\nawait agent('after')\nreturn r",
    );
    assert_eq!(ran.calls[0].want, Want::Workflow { name: Some("child_count".to_owned()), script_path: None });
    let inside = &ran.calls[1];
    assert_eq!(inside.within.as_deref(), Some("child_count"));
    assert_eq!(inside.phase.as_deref(), Some("Count"), "a child has phases of its own");
    let after = ran.calls.last().unwrap();
    assert_eq!((after.within.as_deref(), after.phase.as_deref()), (None, Some("Mine")));
    assert!(
        ran.said.contains(&ProgramRemark::Phase {
            title: "Count".to_owned(),
            within: Some("child_count".to_owned())
        }),
        "{:?}",
        ran.said
    );
}

#[test]
fn a_child_is_found_by_name_or_by_path_and_null_args_stay_null() {
    check(
        "const kinds = []
         for (const r of [await workflow('child_brief'), await workflow('child_brief', undefined), await \
         workflow('child_brief', null), await workflow({ scriptPath: 'children/child_brief.js' }, 'text')]) \
         kinds.push(r.kind)
         return kinds",
        json!(["undefined", "undefined", "null", "string"]),
    );
}

#[test]
fn a_child_that_cannot_run_is_an_error_that_can_be_caught() {
    let ran = run_echo(
        "const errors = []
         for (const name of ['no_such_child', 'child_broken', 'child_nested']) {
           try { await workflow(name); errors.push('ran') } catch (e) \
           { errors.push([e instanceof Error, e.message]) }
         }
         return errors",
    );
    let errors = ran.value();
    for (n, hint) in [(0, "no_such_child"), (1, "3"), (2, "workflow")] {
        assert_eq!(errors[n][0], json!(true), "{errors}");
        assert!(errors[n][1].as_str().unwrap().contains(hint), "{errors}");
    }
}

#[test]
fn a_child_that_throws_rejects_and_its_parent_goes_on() {
    let ran = run(
        start(&program(
            "return await workflow('child_count', { package: 'p', parts: ['a'] }).catch(e => [e.message])",
        )),
        Order::First,
        50,
        |call| stub::answer(call, Mode::Null),
    );
    assert_eq!(ran.value(), json!(["nobody could count in p"]));
}

#[test]
fn children_in_parallel_do_not_see_each_other() {
    let ran = run(
        start(&program(
            "return await parallel(['p', 'q', 'r'].map(p => () => workflow('child_count', \
                { package: p, parts: ['a', 'b'] })))",
        )),
        Order::Shuffled(5),
        200,
        |call| match &call.want {
            Want::Agent(agent) => {
                let count = u64::from(agent.prompt.as_bytes()[agent.prompt.find('/').unwrap() - 1]);
                CallOutcome::Value { value: json!({"count": count}) }
            }
            _ => stub::answer(call, Mode::Ok),
        },
    );
    let expected: Vec<Value> =
        [b'p', b'q', b'r'].iter().map(|c| json!({"total": u64::from(*c) * 2, "parts": 2})).collect();
    assert_eq!(ran.value(), json!(expected));
}

#[test]
fn our_own_calls_reach_the_host_as_they_were_made() {
    let ran = run_body(
        "const a = await verify({ claim: 'c', evidence: 'e', severity: 'high' }, { voters: 3, label: 'v' })
         const b = await verify('a claim alone')
         const c = await sh('ls')
         const d = await checkpoint('go on?')
         return [a.verdict, b.verdict, typeof c, d]",
    );
    assert_eq!(ran.value(), json!(["confirmed", "confirmed", "object", "yes"]));
    assert_eq!(
        ran.calls[0].want,
        Want::Verify {
            finding: json!({"claim": "c", "evidence": "e", "severity": "high"}),
            voters: Some(3),
            label: Some("v".to_owned())
        }
    );
    assert_eq!(ran.calls[2].want, Want::Sh { command: "ls".to_owned() });
    assert_eq!(ran.calls[3].want, Want::Checkpoint { question: "go on?".to_owned() });
}

#[test]
fn calls_are_numbered_from_one_in_the_order_they_are_made() {
    let ran = run_echo("await Promise.all([agent('a'), sh('b'), agent('c')])\nawait agent('d')");
    assert_eq!(ran.calls.iter().map(|call| call.call).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn promises_may_be_kept_and_awaited_later() {
    check(
        "const a = agent('a'), b = agent('b')\nconst c = await agent('c')\nreturn [await b, await a, c]",
        json!(["b", "a", "c"]),
    );
}

#[test]
fn an_agent_that_nobody_awaits_is_asked_for_and_does_not_hold_the_end() {
    let ran = run_echo("agent('left behind')\nreturn 'done'");
    assert_eq!(ran.value(), json!("done"));
    assert_eq!(agents(&ran).len(), 1);
}

#[test]
fn a_rejection_that_nobody_hears_is_mentioned_and_ends_nothing() {
    let ran = run(
        start(&program("agent('left behind')\nawait agent('other')\nreturn 'done'")),
        Order::First,
        5,
        |call| {
            if call.call == 1 {
                CallOutcome::Throw { message: "nobody hears this".to_owned() }
            } else {
                echo(call)
            }
        },
    );
    assert_eq!(ran.value(), json!("done"));
    assert!(ran.logs().join("\n").contains("nobody hears this"), "{:?}", ran.logs());
}
