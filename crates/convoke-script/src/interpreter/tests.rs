//! The engine's basics: steps, scopes, places, limits, ends.

use serde_json::{Value, json};

use super::*;
use crate::protocol::{Call, Want};

const META: &str = "export const meta = {name: 'n', description: 'd'}\n";

/// Limits that a test can run into quickly.
fn limits() -> Limits {
    Limits { heap_bytes: 32 << 20, stack_bytes: 256 << 10, ticks: 200, ..Limits::default() }
}

fn start(body: &str) -> (Interpreter, ProgramStep) {
    start_with(Start {
        source: format!("{META}{body}"),
        args: None,
        budget_total: None,
        spent: 0,
        limits: limits(),
    })
}

fn start_with(start: Start) -> (Interpreter, ProgramStep) {
    let mut interpreter = Interpreter::new();
    let told = interpreter.hear(HostMessage::Start(Box::new(start)));
    (interpreter, stepped(told))
}

fn stepped(told: GuestMessage) -> ProgramStep {
    match told {
        GuestMessage::Stepped(step) => *step,
        other => panic!("{other:#?}"),
    }
}

fn answer(interpreter: &mut Interpreter, call: u32, value: Value) -> ProgramStep {
    stepped(interpreter.hear(HostMessage::Answer { call, answer: CallOutcome::Value { value }, spent: 0 }))
}

fn throw(interpreter: &mut Interpreter, call: u32, message: &str) -> ProgramStep {
    stepped(interpreter.hear(HostMessage::Answer {
        call,
        answer: CallOutcome::Throw { message: message.to_owned() },
        spent: 0,
    }))
}

fn prompt(call: &Call) -> &str {
    match &call.want {
        Want::Agent(agent) => &agent.prompt,
        other => panic!("{other:?}"),
    }
}

/// Answers every agent with its prompt, the newest call first or the oldest, and gives all calls and the end.
fn run(body: &str, newest_first: bool) -> (Vec<Call>, State) {
    let (mut interpreter, mut step) = start(body);
    let mut calls = Vec::new();
    let mut open: Vec<Call> = Vec::new();
    loop {
        calls.extend(step.calls.iter().cloned());
        open.append(&mut step.calls);
        if step.state != State::Waiting {
            return (calls, step.state);
        }
        let call = open.remove(if newest_first { open.len() - 1 } else { 0 });
        step = answer(&mut interpreter, call.call, json!(prompt(&call)));
    }
}

fn returned(body: &str) -> Value {
    match start(body).1.state {
        State::Returned { value, .. } => value.unwrap_or_else(|| json!("undefined")),
        other => panic!("{body}: {other:#?}"),
    }
}

fn failed(body: &str) -> Fault {
    match start(body).1.state {
        State::Failed { fault } => fault,
        other => panic!("{body}: {other:#?}"),
    }
}

fn logs(step: &ProgramStep) -> Vec<&str> {
    let text = |said: &'_ ProgramRemark| match said {
        ProgramRemark::Log { .. } => true,
        ProgramRemark::Phase { .. } => false,
    };
    step.said
        .iter()
        .filter(|said| text(said))
        .map(|said| match said {
            ProgramRemark::Log { text } => text.as_str(),
            ProgramRemark::Phase { title, .. } => title,
        })
        .collect()
}

#[test]
fn a_program_runs_to_its_waits_and_to_its_end() {
    let (mut interpreter, step) =
        start("phase('A'); const x = await agent('one', {label: 'l'}); return x + await agent('two')");
    assert_eq!(step.state, State::Waiting);
    assert_eq!(
        (step.calls[0].call, prompt(&step.calls[0]), step.calls[0].phase.as_deref(), step.calls[0].line),
        (1, "one", Some("A"), Some(2))
    );
    let step = answer(&mut interpreter, 1, json!("a"));
    assert_eq!((step.calls.len(), step.calls[0].call), (1, 2));
    let step = answer(&mut interpreter, 2, json!("b"));
    assert_eq!(step.state, State::Returned { value: Some(json!("ab")), replaced: Vec::new() });
    assert!(matches!(
        interpreter.hear(HostMessage::Answer {
            call: 9,
            answer: CallOutcome::Value { value: json!(1) },
            spent: 0
        }),
        GuestMessage::Confused { .. }
    ));
}

#[test]
fn answers_after_the_end_change_nothing() {
    let (mut interpreter, step) = start("agent('left'); return 1");
    let end = State::Returned { value: Some(json!(1)), replaced: Vec::new() };
    assert_eq!((step.calls.len(), &step.state), (1, &end));
    let step = throw(&mut interpreter, 1, "late");
    assert_eq!((step.calls.len(), step.said.len(), step.state), (0, 0, end));
}

#[test]
fn no_return_is_undefined_and_a_trailing_expression_is_no_result() {
    assert_eq!(start("1 + 1").1.state, State::Returned { value: None, replaced: Vec::new() });
    assert_eq!(
        start("return null").1.state,
        State::Returned { value: Some(Value::Null), replaced: Vec::new() }
    );
}

#[test]
fn paths_do_not_depend_on_what_ends_first() {
    let body = "
        const deep = async (name) => { try { await agent(name + ' 1'); throw 1 } catch \
        { await agent(name + ' 2') } finally { await agent(name + ' 3') } return parallel([() => agent(name \
        + ' 4'), async () => { await null; return agent(name + ' 5') }]) };
        const p = pipeline(['x', 'y'], (v) => agent('s0 ' + v), async (prev, v) => \
        { await agent('s1 ' + v); return agent('s1b ' + v).then(() => agent('then ' + v)) });
        await parallel([() => deep('a'), async () => \
        { for await (const n of [agent('it 0'), agent('it 1')]) { await agent('in ' + n) } return deep('b') \
        }]);
        await p;
        await agent('last');
        await parallel([() => agent('end')]);";
    let paths = |newest_first| {
        let (calls, state) = run(body, newest_first);
        assert!(matches!(state, State::Returned { .. }), "{state:?}");
        let mut paths: Vec<(String, String)> =
            calls.iter().map(|call| (prompt(call).to_owned(), call.path.clone())).collect();
        paths.sort();
        paths
    };
    let oldest = paths(false);
    assert_eq!(oldest, paths(true));
    let expected = [
        ("a 1", "2[0]"),
        ("a 2", "2[0]"),
        ("a 3", "2[0]"),
        ("a 4", "2[0]/1[0]"),
        ("a 5", "2[0]/1[1]"),
        ("b 1", "2[1]"),
        ("b 2", "2[1]"),
        ("b 3", "2[1]"),
        ("b 4", "2[1]/1[0]"),
        ("b 5", "2[1]/1[1]"),
        ("end", "3[0]"),
        ("in it 0", "2[1]"),
        ("in it 1", "2[1]"),
        ("it 0", "2[1]"),
        ("it 1", "2[1]"),
        ("last", ""),
        ("s0 x", "1[0].0"),
        ("s0 y", "1[1].0"),
        ("s1 x", "1[0].1"),
        ("s1 y", "1[1].1"),
        ("s1b x", "1[0].1"),
        ("s1b y", "1[1].1"),
        ("then x", "1[0].1"),
        ("then y", "1[1].1"),
    ];
    let expected: Vec<(String, String)> =
        expected.map(|(prompt, path)| (prompt.to_owned(), path.to_owned())).to_vec();
    assert_eq!(oldest, expected);
}

#[test]
fn errors_carry_the_place_in_the_source() {
    let fault = failed("const é = 1;\nawait null; const f = async () => { await null; null.x }; await f();");
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (FaultKind::Thrown, "TypeError: cannot read property 'x' of null")
    );
    let place = fault.place.expect("a place");
    assert_eq!((place.line, place.column), (3, 49), "{place:?}");
    assert!(place.text.starts_with("await null; const f"));
    assert_eq!(failed("throw 'text'").message, "text");
    assert_eq!(failed("throw {a: 1}").message, "{\"a\":1}");
    let (mut interpreter, _) = start("const x = 1;\nawait agent('x')");
    let State::Failed { fault } = throw(&mut interpreter, 1, "the agent died").state else {
        panic!("it failed")
    };
    assert_eq!(
        (fault.message.as_str(), fault.place.map(|place| place.line)),
        ("Error: the agent died", Some(3))
    );
    assert_eq!(failed("null.x").place.map(|place| place.line), Some(2));
}

#[test]
fn limits_end_a_program_even_if_it_catches_everything() {
    for (body, kind) in [
        ("for (;;) {}", FaultKind::Ticks),
        ("for (;;) { try { for (;;) {} } catch {} finally { continue } }", FaultKind::Ticks),
        ("for (;;) await null", FaultKind::Ticks),
        ("const f = () => Promise.resolve().then(f); await f()", FaultKind::Ticks),
        ("const r = /(a*)*b/.test('a'.repeat(40))", FaultKind::Ticks),
        ("const a = []; for (;;) a.push(new Array(1000).fill(1))", FaultKind::Heap),
        (
            "let a = []; for (;;) { try { for (;;) a.push(new Array(1000).fill(1)) } catch { a = [] } }",
            FaultKind::Heap,
        ),
        ("let s = 'x'; for (;;) { try { s += s } catch (e) { s = 'x' } }", FaultKind::Thrown),
        (
            "const grow = async () => { const a = []; for (;;) a.push(new Array(1000).fill(1)) }; await \
                parallel([grow]); for (;;) {}",
            FaultKind::Heap,
        ),
        (
            "const grow = async () => { const a = []; for (;;) a.push(new Array(1000).fill(1)) }; await \
                grow().catch(() => 1); for (;;) {}",
            FaultKind::Heap,
        ),
        ("const f = () => f() + 1; f()", FaultKind::Stack),
        ("await new Promise(() => {})", FaultKind::Deadlock),
        ("for (let i = 0; i < 20000; i++) log(i)", FaultKind::Logs),
        ("for (let i = 0; i < 20000; i++) try { log(i) } catch {}", FaultKind::Logs),
        ("for (let i = 0; i < 20000; i++) sh('x')", FaultKind::Pending),
        ("return 'x'.repeat(17 << 20)", FaultKind::Value),
        ("let a = 'x'.repeat(1 << 16); for (let i = 0; i < 90; i++) a = [a, a]; return a", FaultKind::Value),
    ] {
        let fault = failed(body);
        if kind != FaultKind::Thrown {
            assert_eq!(fault.kind, kind, "{body}: {fault:?}");
        }
    }
}

#[test]
fn a_heap_that_filled_up_between_jobs_is_no_deadlock() {
    let source = format!("{META}const f = () => Promise.resolve().then(f); await f()");
    let limits = Limits { heap_bytes: 16 << 20, ticks: 100_000, ..limits() };
    let (_, step) = start_with(Start { source, args: None, budget_total: None, spent: 0, limits });
    let State::Failed { fault } = step.state else { panic!("{:#?}", step.state) };
    assert_eq!(fault.kind, FaultKind::Heap, "{fault:?}");
}

#[test]
fn a_program_may_throw_null_of_its_own() {
    assert_eq!(failed("throw null").kind, FaultKind::Thrown);
    assert_eq!(returned("try { throw null } catch (e) { return [e] }"), json!([null]));
    assert_eq!(returned("return await new Promise((_, no) => no(null)).catch((e) => [e])"), json!([null]));
    assert_eq!(returned("return await Promise.reject(null).catch((e) => [e])"), json!([null]));
}

#[test]
fn a_caught_recursion_is_an_ordinary_error() {
    assert_eq!(
        returned("const f = () => f() + 1; try { f() } catch (e) { return e.name }"),
        json!("RangeError")
    );
    assert_eq!(returned("try { JSON.parse('['.repeat(100000)) } catch (e) { return 'deep' }"), json!("deep"));
}

#[test]
fn what_json_cannot_say_is_replaced_and_listed() {
    let (_, step) = start(
        "const a = {}; a.self = a; return {a, f() {}, s: Symbol('x'), b: 10n, n: NaN, u: undefined, l: \
            [undefined, 1], m: new Map([['k', 1]]), t: new Set([1]), e: new Error('x'), z: -0, d: new \
            Date(0), get g() { throw new Error('no') }, p: Promise.resolve(1), w: '\\ud800', j: \
            {toJSON() { return 'json' }}}",
    );
    let State::Returned { value: Some(value), replaced } = step.state else { panic!("{:#?}", step.state) };
    assert_eq!(
        value,
        json!({"a": {"self": "[Circular]"}, "f": "[Function]", "s": "[Symbol]", "b": "10", "n": "NaN", "l": [null, 1], "m": [["k", 1]], "t": [1],
            "e": "Error: x", "z": 0, "d": "1970-01-01T00:00:00.000Z", "g": "[Threw Error: \
                no]", "p": "[Promise]", "w": "\u{fffd}", "j": "json"})
    );
    assert_eq!(replaced, ["a.self", "f", "s", "b", "n", "l[0]", "m", "t", "e", "g", "p"]);
}

#[test]
fn a_result_deeper_than_can_cross_is_cut_and_says_so() {
    let (_, step) = start("let a = 1; for (let i = 0; i < 5000; i++) a = [a]; return a");
    let State::Returned { value: Some(value), replaced } = step.state else { panic!("{:#?}", step.state) };
    assert_eq!((crate::crossing::depth(&value), replaced.len()), (crate::crossing::MAX_DEPTH, 1));
}

#[test]
fn prototypes_are_frozen_and_ordinary_assignments_still_work() {
    let body = "
        const thrown = [];
        for (const f of [() => { Object.prototype.x = 1 }, () => { Array.prototype.map = 1 }, () => \
        { Promise.prototype.then = 1 }, () => { JSON.parse = 1 },
            () => { globalThis.agent = 1 }, () => { Error.prototype.name = 1 }, () => \
            { Object.getPrototypeOf(function* () {}).x = 1 }, () => { budget.total = 1 },
            () => Object.defineProperty(Map.prototype, 'get', {value: 1}), () => \
            { Object.setPrototypeOf(Array.prototype, null) }]) {
            try { f(); thrown.push(false) } catch (e) { thrown.push(e instanceof TypeError) }
        }
        class Mine extends Error { constructor(m) { super(m); this.name = 'Mine'; this.message += '!' } }
        const o = {}; o.toString = () => 'o'; o.constructor = 'c'; o.hasOwnProperty = 1; o.valueOf = 2;
        const f = () => 1; f.call = 3; f.own = 4;
        function Old() {} Old.prototype.toString = () => 'old'; Old.prototype.constructor = Old;
        const e = new Error('m'); e.name = 'N'; e.stack = 's';
        const copy = Object.assign({}, {toString: 5});
        globalThis.fresh = 6;
        return {thrown, mine: String(new Mine('m')), o: `${o}`, keys: Object.keys(o), f: f.call + f.own, \
        old: `${new Old()}`, e: `${e}`, copy: copy.toString, fresh, inherited: ({}).toString(), inst: f \
        instanceof Function};";
    assert_eq!(
        returned(body),
        json!({"thrown": vec![true; 10], "mine": "Mine: m!", "o": "o", "keys": ["toString", "constructor", "hasOwnProperty", "valueOf"], "f": 7,
            "old": "old", "e": "N: m", "copy": 5, "fresh": 6, "inherited": "[object Object]", "inst": true})
    );
}

#[test]
fn there_is_no_way_to_the_clock_to_chance_or_to_code_from_text() {
    for body in [
        "const d = Date; return d['now']()",
        "return Reflect.construct(Date, [])",
        "return Reflect.apply(Date, null, [])",
        "return new (class extends Date {})()",
        "return new Date(0).constructor.now()",
        "const m = Math; return m.random()",
        "return (() => {}).constructor('return 1')()",
        "return (async () => {}).constructor('return 1')()",
        "return (function* () {}).constructor('yield 1')()",
        "return (async function* () {}).constructor('yield 1')()",
        "return Object.getPrototypeOf((async () => {}).constructor)('return 1')()",
        "return Reflect.construct((() => {}).constructor, ['return 1'])()",
        "return globalThis['ev' + 'al']('1')",
        "return new WeakRef({})",
        "return new SharedArrayBuffer(1)",
        "return Atomics.wait",
        "return require('fs')",
        "return process.env",
        "return fetch('x')",
    ] {
        assert_eq!(failed(body).kind, FaultKind::Thrown, "{body}");
    }
    assert_eq!(
        returned(
            "return [typeof WeakRef, typeof performance, typeof process, typeof globalThis.eval, typeof \
                setTimeout]"
        ),
        json!(["undefined", "undefined", "undefined", "undefined", "function"])
    );
}

#[test]
fn dates_are_utc_wherever_the_machine_stands() {
    let body = "
        const d = new Date(2024, 0, 2, 3, 4, 5, 6);
        d.setHours(d.getHours() + 1);
        return [d.toISOString(), d.toString(), d.getTimezoneOffset(), d.toLocaleString(), \
        d.toLocaleDateString(), new Date(NaN).toString(), Date.parse('2024-01-02T03:04:05'),
            Date.parse('2024-01-02'), Date.parse('Jan 2, 2024 10:00'), \
            Date.parse('2024-01-02T03:04:05+02:00'), Date.parse('Tue, 02 Jan 2024 10:00:00 GMT'), new \
            Date(new Date(5)).getTime(), Date.UTC(1970, 0), `${new Date(0)}`, new \
            Date('nonsense').getTime()]";
    assert_eq!(
        returned(body),
        json!([
            "2024-01-02T04:04:05.006Z",
            "Tue Jan 02 2024 04:04:05 GMT+0000 (UTC)",
            0,
            "1/2/2024, 4:04:05 AM",
            "1/2/2024",
            "Invalid Date",
            1_704_164_645_000_u64,
            1_704_153_600_000_u64,
            1_704_189_600_000_u64,
            1_704_157_445_000_u64,
            1_704_189_600_000_u64,
            5,
            0,
            "Thu Jan 01 1970 00:00:00 GMT+0000 (UTC)",
            "NaN"
        ])
    );
}

#[test]
fn addresses_are_taken_apart() {
    let body = "
        const u = new URL('../x?a=1&b=%20#h', 'https://user:pw@example.com:8443/p/q');
        u.hash = ''; u.searchParams.set('c', 'd e');
        const parts = ['href', 'protocol', 'host', 'hostname', 'port', 'pathname', 'search', 'hash', \
        'origin', 'username', 'password'].map((k) => u[k]);
        let bad; try { new URL('nonsense') } catch (e) { bad = e.name }
        return [parts, [...u.searchParams.entries()], u.searchParams.get('b'), u.searchParams.has('zz'), \
        JSON.stringify({u}), `${u}` === u.toString(), bad, URL.canParse('x:y'), new \
        URLSearchParams({q: 'ü'}).toString()]";
    let href = "https://user:pw@example.com:8443/x?a=1&b=+&c=d+e";
    assert_eq!(
        returned(body),
        json!([
            [
                href,
                "https:",
                "example.com:8443",
                "example.com",
                "8443",
                "/x",
                "?a=1&b=+&c=d+e",
                "",
                "https://example.com:8443",
                "user",
                "pw"
            ],
            [["a", "1"], ["b", " "], ["c", "d e"]],
            " ",
            false,
            format!("{{\"u\":\"{href}\"}}"),
            true,
            "TypeError",
            true,
            "q=%C3%BC"
        ])
    );
}

#[test]
fn rejections_that_nobody_looks_at_are_said_at_the_end() {
    let (mut interpreter, step) = start(
        "agent('x'); const kept = agent('y'); await agent('z'); try { await kept } catch (e) \
            { log('kept ' + e.message) }",
    );
    assert_eq!(step.calls.len(), 3);
    throw(&mut interpreter, 1, "one");
    throw(&mut interpreter, 2, "two");
    let step = answer(&mut interpreter, 3, json!(1));
    assert!(matches!(step.state, State::Returned { .. }), "{step:?}");
    assert_eq!(logs(&step), ["kept two", "a promise was rejected and its error not handled: Error: one"]);
}

#[test]
fn timers_are_calls_and_can_be_cleared() {
    let (mut interpreter, step) = start(
        "const id = setTimeout(() => log('never'), 5); clearTimeout(id); await new Promise((go) => \
            setTimeout(go, 7.9, 1)); setTimeout((a) => log(a), -1, 'fired'); return 1",
    );
    assert_eq!((step.calls.len(), step.cleared.as_slice()), (2, [1].as_slice()));
    assert_eq!(step.calls[1].want, Want::Timer { ms: 7 });
    let step = answer(&mut interpreter, 1, Value::Null);
    assert_eq!((step.calls.len(), step.state), (0, State::Waiting));
    let step = answer(&mut interpreter, 2, Value::Null);
    assert!(matches!(step.state, State::Returned { .. }));
}

#[test]
fn a_child_runs_inline_with_its_own_arguments_and_phase() {
    let (mut interpreter, step) = start(
        "phase('outer'); const r = await workflow('kid', {a: 1}); let e; try \
            { await workflow({scriptPath: 'x.js'}) } catch (x) { e = x.message } return [r, e]",
    );
    assert_eq!(step.calls[0].want, Want::Workflow { name: Some("kid".to_owned()), script_path: None });
    let source = format!(
        "{META}\nconst x = await agent('in', {{label: JSON.stringify(args)}}); let e; try {{ await \
            workflow('y') }} catch (x) {{ e = x.message }} return [x, e]"
    );
    let step = stepped(interpreter.hear(HostMessage::Answer {
        call: 1,
        answer: CallOutcome::Program { name: "kid".to_owned(), source },
        spent: 0,
    }));
    let call = &step.calls[0];
    assert_eq!((call.within.as_deref(), call.phase.as_deref(), call.line), (Some("kid"), None, Some(3)));
    let step = answer(&mut interpreter, 2, json!("done"));
    assert_eq!(step.calls[0].want, Want::Workflow { name: None, script_path: Some("x.js".to_owned()) });
    let source = format!("{META}return Date.now()");
    let step = stepped(interpreter.hear(HostMessage::Answer {
        call: 3,
        answer: CallOutcome::Program { name: "bad".to_owned(), source },
        spent: 0,
    }));
    let State::Returned { value: Some(value), .. } = step.state else { panic!("{step:#?}") };
    assert_eq!(
        value[0],
        json!(["done", "workflow() is not available inside a child workflow: they nest one level deep"])
    );
    assert!(
        value[1].as_str().is_some_and(|text| text.starts_with("workflow 'bad': line 2: `Date.now()`")),
        "{value}"
    );
}

#[test]
fn the_budget_is_what_the_host_says() {
    let source = format!(
        "{META}const before = budget.remaining(); await agent('x'); let e; try {{ await agent('y') }} catch \
            (x) {{ e = x.message }} return [budget.total, budget.spent(), before, budget.remaining(), e]"
    );
    let (mut interpreter, _) =
        start_with(Start { source, args: None, budget_total: Some(100), spent: 30, limits: limits() });
    let step = stepped(interpreter.hear(HostMessage::Answer {
        call: 1,
        answer: CallOutcome::Value { value: Value::Null },
        spent: 120,
    }));
    let State::Returned { value: Some(value), .. } = step.state else { panic!("{step:#?}") };
    assert_eq!(
        value,
        json!([100, 120, 70, 0, "this agent was not started: the budget of 100 tokens is spent (120)"])
    );
}
