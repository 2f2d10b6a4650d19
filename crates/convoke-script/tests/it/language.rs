//! The contract's sections 2, 8 and 9, row by row: what a source may be, what `meta` may hold, and what the
//! language has.

use convoke_script::{
    CallOutcome, FaultKind, GuestMessage, HostMessage, Interpreter, Limits, Meta, Phase, Problem, State, Want,
};
use serde_json::{Value, json};

use crate::conformance::check;
use crate::drive::{End, Order, echo, program, run, run_echo, start};

fn told(source: &str) -> GuestMessage {
    Interpreter::new().hear(HostMessage::Check { source: source.to_owned(), limits: Limits::default() })
}

fn meta_of(literal: &str) -> Meta {
    match told(&format!("export const meta = {literal}\nreturn 1\n")) {
        GuestMessage::Sound { meta, .. } => meta,
        other => panic!("{literal}: {other:?}"),
    }
}

fn problems(source: &str) -> Vec<Problem> {
    match told(source) {
        GuestMessage::Unsound { problems } => problems,
        other => panic!("{source}: {other:?}"),
    }
}

#[test]
fn top_level_await_and_return_are_legal() {
    check("const x = await agent('a')\nif (x) return [x]\nreturn 'never'", json!(["a"]));
}

#[test]
fn a_trailing_expression_is_no_result() {
    for body in ["const x = 1\nx", "await agent('a')", ";({ a: 1 })", ""] {
        let End::State(State::Returned { value, .. }) = run_echo(body).end else { panic!("{body}") };
        assert_eq!(value, None, "{body}");
    }
}

#[test]
fn undefined_and_null_are_told_apart() {
    for (body, expected) in [("return undefined", None), ("return null", Some(Value::Null)), ("return", None)]
    {
        let End::State(State::Returned { value, .. }) = run_echo(body).end else { panic!("{body}") };
        assert_eq!(value, expected, "{body}");
    }
}

#[test]
fn comments_before_meta_are_fine() {
    let source = "// one\n/* two\n three */\n\nexport const meta = { name: 'a', description: 'b' }\nreturn 1";
    assert!(matches!(told(source), GuestMessage::Sound { .. }));
}

#[test]
fn an_import_before_meta_is_named() {
    let found =
        problems("import { x } from './x.js'\nexport const meta = { name: 'a', description: 'b' }\nreturn x");
    assert!(
        found.iter().any(|p| p.message.contains("import") && p.place.as_ref().is_some_and(|at| at.line == 1)),
        "{found:?}"
    );
}

#[test]
fn a_parse_error_shows_its_line() {
    let found = problems(&program("const a = 1\nconst b = [1, 2\nconst c = 3\nreturn a"));
    let place = found[0].place.clone().unwrap();
    assert!((3..=4).contains(&place.line), "{found:?}");
    assert!(place.column >= 1 && place.text.contains("const"), "{found:?}");
}

#[test]
fn typescript_is_a_parse_error_that_shows_its_line() {
    let found = problems(&program("const a = 1\nconst b: number = 2\nreturn b"));
    let place = found[0].place.clone().unwrap();
    assert_eq!((place.line, place.text.trim()), (3, "const b: number = 2"), "{found:?}");
}

#[test]
fn every_problem_is_reported_not_only_the_first() {
    let found = problems(
        "export const meta = { name: '', description: 'b', x: f() }\nconst t = Date.now()\nconst m = \
            import('fs')\nreturn Math.random()",
    );
    assert!(found.len() >= 4, "{found:?}");
    let lines: Vec<u32> = found.iter().filter_map(|p| p.place.as_ref()).map(|place| place.line).collect();
    assert!(lines.is_sorted(), "in the order they stand there: {lines:?}");
    assert!([1, 2, 3, 4].iter().all(|line| lines.contains(line)), "{lines:?}");
}

#[test]
fn the_body_does_not_need_meta_and_may_declare_it_again() {
    check("return typeof meta", json!("undefined"));
}

#[test]
fn a_top_level_name_may_hide_any_global_of_the_dialect() {
    for name in [
        "agent",
        "parallel",
        "pipeline",
        "phase",
        "log",
        "args",
        "budget",
        "workflow",
        "verify",
        "sh",
        "checkpoint",
        "URL",
        "console",
        "setTimeout",
    ] {
        check(&format!("const {name} = 'mine'\nreturn {name}"), json!("mine"));
        check(&format!("let {name} = 'mine'\nreturn {name}"), json!("mine"));
        check(&format!("function {name}() {{ return 'mine' }}\nreturn {name}()"), json!("mine"));
    }
    check("const budget = { total: 5 }\nreturn [budget.total, await agent('x')]", json!([5, "x"]));
}

#[test]
fn the_globals_are_on_the_global_object_too() {
    check(
        "return ['agent', 'parallel', 'pipeline', 'phase', 'log', 'budget', 'workflow', 'verify', 'sh', \
            'checkpoint', 'setTimeout', 'clearTimeout', 'URL', 'console'].filter(n => globalThis[n] === \
            undefined)",
        json!([]),
    );
}

#[test]
fn meta_is_read_with_all_its_parts() {
    let meta = meta_of(
        "{ name: 'n', description: 'd', whenToUse: 'w', phases: [{ title: 'One', detail: 'first', model: 'opus' }, { title: 'Two' }], title: 't', examples: ['e'], version: 2 }",
    );
    assert_eq!(
        (meta.name.as_str(), meta.description.as_str(), meta.when_to_use.as_deref()),
        ("n", "d", Some("w"))
    );
    let one =
        Phase { title: "One".to_owned(), detail: Some("first".to_owned()), model: Some("opus".to_owned()) };
    let two = Phase { title: "Two".to_owned(), ..Phase::default() };
    assert_eq!(meta.phases, [one, two]);
}

#[test]
fn meta_may_be_any_literal() {
    let meta = meta_of(
        "{ 'name': `tick`, \"description\": 'one ' + 'two' + \" three\", n: -1.5, b: true, z: null, l: [1, [2, { a: {} }]], 5: 'x', phases: ['A', 'B'] }",
    );
    assert_eq!((meta.name.as_str(), meta.description.as_str()), ("tick", "one two three"));
    assert_eq!(meta.phases.iter().map(|p| p.title.as_str()).collect::<Vec<_>>(), ["A", "B"]);
}

#[test]
fn escapes_in_the_strings_of_meta_survive() {
    let meta = meta_of(
        r#"{ name: 'a\u201cb\u201d\'\x41', description: "line\n\tnext \u{1f600}\
go on" }"#,
    );
    assert_eq!(meta.name, "a\u{201c}b\u{201d}'A");
    assert_eq!(meta.description, "line\n\tnext \u{1f600}go on");
    check(r#"return '\u201cx\u201d \u2019'"#, json!("\u{201c}x\u{201d} \u{2019}"));
}

#[test]
fn a_phase_that_meta_does_not_declare_is_used_as_it_is() {
    let ran = run_echo("phase('Never declared')\nawait agent('x')");
    assert_eq!(ran.calls[0].phase.as_deref(), Some("Never declared"));
}

#[test]
fn what_is_not_deterministic_is_refused_on_the_tree() {
    for code in ["Date.now()", "Math.random()", "new Date()", "new Date", "Date()"] {
        let found = problems(&program(&format!("const a = 1\nreturn {code}")));
        let place = found[0].place.clone().unwrap();
        assert_eq!(place.line, 3, "{code}: {found:?}");
        assert!(
            found[0].message.contains("args") || found[0].message.contains("index"),
            "says what to do: {found:?}"
        );
    }
}

#[test]
fn text_that_only_mentions_it_passes() {
    for body in [
        "// Date.now() and Math.random()\nreturn 1",
        "/* new Date() */ return 'Date.now()' && `Math.random()` && \"new Date()\" && 1",
        "return /Date\\.now\\(\\)/.test('x') ? 2 : 1",
        "const o = { 'Math.random()': 1 }\nreturn o['Math.random()']",
    ] {
        check(body, json!(1));
    }
}

#[test]
fn by_any_other_way_it_throws_and_says_what_to_do() {
    for way in [
        "const { now } = Date\nnow()",
        "Math['ran' + 'dom']()",
        "Reflect.construct(Date, [])",
        "const D = Date\nnew D()",
    ] {
        let ran = run_echo(&format!("try {{ {way} }} catch (e) {{ return e.message }}\nreturn 'it worked'"));
        let message = ran.value().as_str().unwrap().to_owned();
        assert!(message.contains("args") || message.contains("index"), "{way}: {message}");
    }
}

#[test]
fn dates_of_given_values_work_and_are_in_utc() {
    check(
        "const d = new Date('2026-03-01T10:20:30Z')
         return [d.getTime(), new Date(0).toISOString(), new Date(2026, 0, 2).toISOString(), Date.UTC(2026, \
         1, 3), Date.parse('2026-01-01'), d.getHours(), d.getTimezoneOffset(), new Date(NaN).getTime() !== \
         0, d instanceof Date]",
        json!([
            1772360430000_i64,
            "1970-01-01T00:00:00.000Z",
            "2026-01-02T00:00:00.000Z",
            1770076800000_i64,
            1767225600000_i64,
            10,
            0,
            true,
            true
        ]),
    );
}

#[test]
fn every_built_in_of_the_language_is_there() {
    check(
        "const names = ['Array', 'ArrayBuffer', 'BigInt', 'Boolean', 'DataView', 'Date', 'Error', \
            'AggregateError', 'EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', \
            'URIError', 'Float64Array', 'Int8Array', 'Uint8Array', 'Infinity', 'JSON', 'Map', 'Math', 'NaN', \
            'Number', 'Object', 'Promise', 'Proxy', 'Reflect', 'RegExp', 'Set', 'String', 'Symbol', \
            'WeakMap', 'WeakSet', 'decodeURIComponent', 'encodeURIComponent', 'isFinite', 'isNaN', \
            'parseFloat', 'parseInt', 'globalThis']
         return names.filter(n => globalThis[n] === undefined)",
        json!([]),
    );
    check(
        "const g = function* () { yield* [1, 2] }
         class A { #x = 1; static s = 2; get x() { return this.#x } }
         label: for (const i of [1]) { for (;;) continue label }
         return [[...g()], new A().x, A.s, 2 ** 3, null ?? 1, ({ a: { b: 1 } })?.a?.b, [3, 1, 2].toSorted(), \
         Object.groupBy([1, 2], x => x % 2 ? 'odd' : 'even'), 'a-b'.replaceAll('-', '+'), [1, [2, \
         [3]]].flat(Infinity), 'x'.at(-1), Object.fromEntries([['k', 1]]), (10n ** 20n).toString(), \
         /(?<y>\\d{4})/u.exec('in 2026').groups.y, [1, 2, 3].findLast(x => x < 3), \
         structuredCloneOr({ a: [1] })]
         function structuredCloneOr(x) \
         { return typeof structuredClone === 'function' ? structuredClone(x) : x }",
        json!([[1, 2], 1, 2, 8, 1, 1, [1, 2, 3], {"odd": [1], "even": [2]}, "a+b", [1, 2, 3], "x", {"k": 1}, "100000000000000000000", "2026", 2, {"a": [1]}]),
    );
}

#[test]
fn names_of_other_hosts_are_absent() {
    check(
        "return [typeof require, typeof process, typeof fs, typeof Buffer, typeof fetch, typeof module, \
            typeof __dirname, typeof WebAssembly, typeof performance, typeof setInterval]",
        json!(vec!["undefined"; 10]),
    );
    let ran = run_echo("process.exit(1)");
    let End::State(State::Failed { fault }) = ran.end else { panic!("{:?}", ran.end) };
    assert_eq!(fault.kind, FaultKind::Thrown);
    assert!(
        fault.message.contains("ReferenceError") && fault.message.contains("process"),
        "{}",
        fault.message
    );
}

#[test]
fn imports_are_refused_before_anything_runs() {
    for code in [
        "const m = await import('fs')",
        "const f = () => import('fs')",
        "import fs from 'fs'",
        "import 'fs'",
        "export { x } from 'y'",
        "import.meta.url",
    ] {
        assert!(!problems(&program(code)).is_empty(), "{code}");
    }
}

#[test]
fn timers_are_calls_that_the_host_answers() {
    let ran = run_echo(
        "const order = []
         setTimeout((a, b) => order.push(a + b), 50, 'x', 'y')
         const gone = setTimeout(() => order.push('never'), 10)
         clearTimeout(gone)
         await new Promise(r => setTimeout(r, 1000))
         return order",
    );
    assert_eq!(ran.value(), json!(["xy"]));
    let waits: Vec<u64> = ran
        .calls
        .iter()
        .filter_map(|c| if let Want::Timer { ms } = c.want { Some(ms) } else { None })
        .collect();
    // A timer that is cleared in the step that set it may never have been told of.
    assert!(waits == [50, 1000] || waits == [50, 10, 1000], "{waits:?}");
}

#[test]
fn a_timer_that_is_cleared_after_the_host_heard_of_it_is_given_back() {
    let ran = run(
        start(&program(
            "const t = setTimeout(() => { throw new Error('fired') }, 60000)\nawait \
                agent('x')\nclearTimeout(t)\nawait agent('y')\nreturn 'done'",
        )),
        Order::Last,
        10,
        echo,
    );
    assert_eq!(ran.value(), json!("done"));
    let timer = ran.calls.iter().find(|c| matches!(c.want, Want::Timer { .. })).unwrap();
    assert_eq!(ran.cleared, [timer.call]);
}

#[test]
fn a_timer_that_throws_is_mentioned_and_ends_nothing() {
    let ran = run_echo(
        "setTimeout(() => { throw new Error('in a timer') }, 1)\nawait new Promise(r => setTimeout(r, \
            5))\nreturn 'done'",
    );
    assert_eq!(ran.value(), json!("done"));
    assert!(ran.logs().join("\n").contains("in a timer"), "{:?}", ran.logs());
}

#[test]
fn addresses_can_be_taken_apart() {
    check(
        "const u = new URL('https://User:pw@WWW.Example.org:8443/a/../b%20c?x=1&y=2&x=3#frag')
         const rel = new URL('../up?q=%C3%A9', 'https://example.org/one/two/three')
         return [u.protocol, u.hostname, u.port, u.pathname, u.search, u.hash, u.origin, u.username, \
         u.searchParams.get('x'), u.searchParams.getAll('x'), u.searchParams.has('z'), u.host, rel.href, \
         `${rel}`, JSON.stringify({ rel }), rel.searchParams.get('q')]",
        json!([
            "https:",
            "www.example.org",
            "8443",
            "/b%20c",
            "?x=1&y=2&x=3",
            "#frag",
            "https://www.example.org:8443",
            "User",
            "1",
            ["1", "3"],
            false,
            "www.example.org:8443",
            "https://example.org/one/up?q=%C3%A9",
            "https://example.org/one/up?q=%C3%A9",
            "{\"rel\":\"https://example.org/one/up?q=%C3%A9\"}",
            "\u{e9}"
        ]),
    );
    check(
        "try { new URL('not an address') } catch (e) { return [e instanceof TypeError, e instanceof Error] }",
        json!([true, true]),
    );
}

#[test]
fn frozen_intrinsics_do_not_stand_in_the_way_of_ordinary_code() {
    check(
        "class Mine extends Error { constructor(m) { super(m); this.name = 'Mine'; this.extra = 1 } \
            toString() { return 'own' } }
         const e = new Mine('m')
         const plain = new Error('p'); plain.name = 'Renamed'; plain.message = 'other'
         const o = {}; o.toString = () => 'o'; o.constructor = 'c'; o.valueOf = () => 7; o.hasOwnProperty = 1
         function f() {} f.extra = 1; f.toString = () => 'f'
         const a = [1]; a.extra = 2
         return [e.name, e instanceof Mine, e instanceof Error, `${e}`, e.extra, String(plain), `${o}`, \
         o.constructor, o.hasOwnProperty, `${f}`, f.extra, a.extra, Object.keys(o)]",
        json!([
            "Mine",
            true,
            true,
            "own",
            1,
            "Renamed: other",
            "o",
            "c",
            1,
            "f",
            1,
            2,
            ["toString", "constructor", "valueOf", "hasOwnProperty"]
        ]),
    );
}

#[test]
fn an_object_used_as_a_table_may_have_any_key() {
    check(
        "const counts = {}
         for (const word of ['toString', 'constructor', 'valueOf', 'x', 'x', 'hasOwnProperty', 'name']) \
         counts[word] = (typeof counts[word] === 'number' ? counts[word] : 0) + 1
         return counts",
        json!({"toString": 1, "constructor": 1, "valueOf": 1, "x": 2, "hasOwnProperty": 1, "name": 1}),
    );
}

#[test]
fn functions_know_that_they_are_functions() {
    check(
        "const f = () => {}
         return [typeof f, f instanceof Object, Object.prototype.toString.call(f), f.call(), (async () => \
         {})() instanceof Promise, f.name, (function (a, b) {}).length]",
        json!(["function", true, "[object Function]", null, true, "f", 2]),
    );
}

#[test]
fn an_uncaught_error_says_what_and_where() {
    let ran = run_echo("const a = 1\nconst b = null\nreturn b.field");
    let End::State(State::Failed { fault }) = ran.end else { panic!("{:?}", ran.end) };
    assert_eq!(fault.kind, FaultKind::Thrown);
    assert!(fault.message.starts_with("TypeError"), "{}", fault.message);
    let place = fault.place.unwrap();
    assert_eq!((place.line, place.text.trim()), (4, "return b.field"));
    let ran = run_echo("await agent('x')\nawait null\nthrow new RangeError('mine')");
    let End::State(State::Failed { fault }) = ran.end else { panic!("{:?}", ran.end) };
    assert_eq!(fault.message, "RangeError: mine");
    assert_eq!(fault.place.unwrap().line, 4);
}

#[test]
fn a_call_says_the_line_it_was_made_in() {
    let ran = run_echo(
        "await agent('a')\n\nconst f = () => agent('b')\nawait parallel([f])\nawait pipeline([1], () => \
            agent('c'))",
    );
    let lines: Vec<_> = ran.calls.iter().filter_map(|call| call.line).collect();
    assert!(lines.is_empty() || lines == [2, 4, 6], "the right lines, or none: {lines:?}");
}

#[test]
fn a_source_may_have_524288_characters_and_not_one_more() {
    let limit = Limits::default().source_chars;
    assert_eq!(limit, 524_288);
    let head = program("return 1");
    // Characters, not bytes.
    let fill = "\u{e9}".repeat(limit - head.chars().count() - 2);
    let most = format!("{head}//{fill}");
    assert!(matches!(told(&most), GuestMessage::Sound { .. }));
    let found = problems(&format!("{most}\u{e9}"));
    assert!(
        found[0].message.contains("524288")
            || found[0].message.contains("524,288")
            || found[0].message.contains("524 288"),
        "{found:?}"
    );
}

#[test]
fn a_program_that_waits_for_nothing_is_a_deadlock_at_once() {
    let ran = run_echo("await agent('x')\nawait new Promise(() => {})");
    let End::State(State::Failed { fault }) = ran.end else { panic!("{:?}", ran.end) };
    assert_eq!(fault.kind, FaultKind::Deadlock);
}

#[test]
fn work_is_counted_between_waits_and_not_over_the_whole_run() {
    // Each of forty steps does a tenth of what one step may do.
    let body = "for (let n = 0; n < 40; n++) { await agent(`n${n}`); let x = 0; for (let i = 0; i < 60000; \
        i++) x += i }\nreturn 'done'";
    let mut start = start(&program(body));
    start.limits.ticks = 100;
    assert_eq!(run(start, Order::First, 100, echo).value(), json!("done"));
}

#[test]
fn an_answer_that_is_not_json_shaped_like_a_promise_is_only_data() {
    let ran = run(
        start(&program(
            "const a = await agent('x')\nreturn [typeof a.then, a.toJSON, a.constructor === Object]",
        )),
        Order::First,
        5,
        |_| CallOutcome::Value { value: json!({"then": "text", "toJSON": 1}) },
    );
    assert_eq!(ran.value(), json!(["string", 1, true]));
}
