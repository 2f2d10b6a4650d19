//! What a program may have over its whole life and between two waits, and what it is told when that is used
//! up.

use std::time::Instant;

use convoke_script::{
    CallOutcome, Fault, FaultKind, GuestMessage, HostMessage, Interpreter, Limits, Start, State,
};
use serde_json::{Value, json};

use crate::drive::{End, Order, Ran, program, run, start};
use crate::stub::{self, Mode};

fn held_to(body: &str, limits: Limits) -> Ran {
    let start = Start { limits, ..start(&program(body)) };
    run(start, Order::First, 5_000, |call| stub::answer(call, Mode::Ok))
}

fn fault(ran: &Ran) -> &Fault {
    match &ran.end {
        End::State(State::Failed { fault }) => fault,
        other => panic!("it did not fail: {other:?}"),
    }
}

/// A program that makes calls of some kind without end has made exactly as many as it may.
fn check_calls(body: &str) {
    let ran = held_to(body, Limits { calls: 40, ..Limits::default() });
    let fault = fault(&ran);
    assert_eq!(fault.kind, FaultKind::Pending, "{body}: {fault:?}");
    assert!(fault.message.contains("more than 40 calls in one run"), "{body}: {fault:?}");
    assert_eq!(ran.calls.len(), 40, "{body}");
}

#[test]
fn calls_of_every_kind_are_counted_over_the_whole_run() {
    assert_eq!(Limits::default().calls, 100_000);
    for body in [
        "while (true) await new Promise(r => setTimeout(r, 1))",
        "while (true) await agent('x')",
        "while (true) await sh('ls')",
        "while (true) { try { await checkpoint('more?') } catch {} }",
        "while (true) await verify('it holds')",
        "while (true) await workflow('nobody').catch(() => null)",
        "while (true) await parallel([() => agent('x'), () => sh('y'), () => verify('z')])",
        "for (;;) { clearTimeout(setTimeout(() => {}, 1)); await sh('x') }",
        "for (;;) clearTimeout(setTimeout(() => {}, 1))",
        "const again = () => setTimeout(again, 1)\nagain()\nawait new Promise(() => {})",
    ] {
        check_calls(body);
    }
}

#[test]
fn as_many_calls_as_are_allowed_do_no_harm() {
    let ran = held_to(
        "let n = 0\nwhile (n < 40) { await sh('x'); n++ }\nreturn n",
        Limits { calls: 40, ..Limits::default() },
    );
    assert_eq!(ran.value(), json!(40));
}

#[test]
fn too_many_calls_at_once_are_told_from_too_many_in_all() {
    let ran = held_to("for (;;) sh('x')", Limits { pending: 30, calls: 40, ..Limits::default() });
    assert_eq!(fault(&ran).kind, FaultKind::Pending);
    assert!(fault(&ran).message.contains("more than 30 calls waited at once"), "{:?}", fault(&ran));
}

#[test]
fn the_voters_of_a_verification_are_agents_of_the_run() {
    let body = "
        const tried = []
        const attempt = async (f) => { try { await f(); tried.push('ok') } catch (e) \
        { tried.push(e.message) } }
        await attempt(() => agent('one'))
        await attempt(() => verify('c', { voters: 6 }))
        await attempt(() => verify('c', { voters: 3 }))
        await attempt(() => verify('c'))
        await attempt(() => verify('c', { voters: 2 }))
        await attempt(() => verify('c'))
        await attempt(() => agent('two'))
        return tried";
    let ran = held_to(body, Limits { agents: 10, ..Limits::default() });
    assert_eq!(
        ran.value(),
        json!([
            "ok",
            "ok",
            "ok",
            "this verification was not started: a run may have 10 agents, and this one has had them",
            "this verification was not started: a run may have 10 agents, and this one has had them",
            "this verification was not started: a run may have 10 agents, and this one has had them",
            "this agent was not started: a run may have 10 agents, and this one has had them",
        ])
    );
    let ran = held_to(
        "try { await verify('c', { voters: 4 }) } catch (e) { return [e.message, await verify('c', { \
         voters: 3 }).then(v => v.verdict)] }",
        Limits { agents: 3, ..Limits::default() },
    );
    assert_eq!(
        ran.value(),
        json!([
            "this verification was not started: a run may have 3 agents, and this one has had 0 and would \
                need 4 more",
            "confirmed"
        ])
    );
    assert_eq!(ran.calls.len(), 1, "what is refused is not asked for");
}

/// Awaits that wait for nothing are work: a program logs how far it comes, and it does not come far.
fn check_awaits(body: &str, most: u64) {
    let began = Instant::now();
    let ran = held_to(body, Limits::default());
    let took = began.elapsed();
    assert_eq!(fault(&ran).kind, FaultKind::Ticks, "{body}: {:?}", fault(&ran));
    let rounds: u64 = ran.logs().last().map_or(0, |line| line.parse().unwrap());
    println!("{} ms for {rounds} rounds of {body}", took.as_millis());
    assert!(rounds > 10_000 && rounds <= most, "{body}: {rounds}");
}

#[test]
fn awaits_that_wait_for_nothing_are_charged() {
    check_awaits("for (let i = 1; ; i++) { await null; if (i % 1000 === 0) log(i) }", 400_000);
    check_awaits(
        "await pipeline([1, 2], async (x) => { for (let i = 1; ; i++) { await null; if (i % 1000 === 0) \
         log(i) } })",
        200_000,
    );
    check_awaits(
        "let i = 0\nconst again = () => { i += 1; if (i % 1000 === 0) log(i); return \
         Promise.resolve().then(() => { again() }) }\nagain()\nawait new Promise(() => {})",
        400_000,
    );
}

#[test]
fn a_loop_whose_every_round_makes_promises_is_ended_wherever_the_interrupt_comes() {
    let limits = Limits { ticks: 20, calls: 30, ..Limits::default() };
    // The engine asks every ten thousand steps whether to go on, so loops of many lengths are tried.
    for more in 0..12 {
        let steps = "f();".repeat(more);
        for round in [
            "sh('x')",
            "agent('x')",
            "parallel([])",
            "new Promise(() => { f() })",
            "new Promise(r => r(f()))",
        ] {
            let ran = held_to(&format!("const f = () => 1\nfor (;;) {{ {steps}{round} }}"), limits);
            assert!(
                matches!(fault(&ran).kind, FaultKind::Ticks | FaultKind::Pending),
                "{more} {round}: {:?}",
                fault(&ran)
            );
        }
    }
}

#[test]
fn a_wide_program_does_not_run_out_of_work() {
    let body = "
        const wide = await parallel(Array.from({ length: 4096 }, (_, i) => async () => \
        { await null; await null; return i }))
        const long = await pipeline(wide, async x => x + 1, async x => x * 2, x => x - 1, async x => \
        { await null; return x })
        return long.reduce((a, b) => a + b, 0)";
    let quarter = Limits { ticks: Limits::default().ticks / 4, ..Limits::default() };
    assert_eq!(held_to(body, quarter).value(), json!(4096 * 4096));
}

#[test]
fn a_heap_that_is_full_is_told_in_words() {
    let limits = Limits { heap_bytes: 8 << 20, ..Limits::default() };
    for body in [
        "const a = []\nwhile (true) a.push({ n: a.length })",
        "const m = new Map()\nfor (let i = 0; ; i++) m.set(i, [i])",
        "const all = []\nfor (;;) all.push(new Promise(() => {}))",
        "const all = []\nfor (;;) all.push(() => all)",
        "const all = []\nfor (;;) all.push(new Error('x'))",
        "return await parallel([() => { const a = []; for (;;) a.push(new Array(100).fill(1)) }])",
        "let s = 'x'\nconst all = []\nfor (;;) { s += 'y'; all.push(s + s) }",
        "const f = async () => { const a = []; for (;;) { a.push(new Array(100).fill(1)); await null } \
            }\nawait f()",
    ] {
        let ran = held_to(body, limits);
        let Fault { kind, message, .. } = fault(&ran);
        assert_eq!(*kind, FaultKind::Heap, "{body}: {message}");
        assert!(message.contains("8388608 bytes of memory"), "{body}: {message}");
    }
}

#[test]
fn arguments_that_do_not_fit_are_told_in_words() {
    let limits = Limits { heap_bytes: 1 << 20, ..Limits::default() };
    for args in [json!("x".repeat(20 << 20)), (0..300_000).map(|n| json!({"n": n})).collect::<Value>()] {
        let begin = Start { args: Some(args), limits, ..start(&program("return 1")) };
        match Interpreter::new().hear(HostMessage::Start(Box::new(begin))) {
            GuestMessage::Stepped(step) => match step.state {
                State::Failed { fault } => {
                    assert_eq!(fault.kind, FaultKind::Heap, "{fault:?}");
                    assert!(
                        fault.message.contains("smaller arguments") && !fault.message.contains("null"),
                        "{fault:?}"
                    );
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_uncaught_answer_says_the_line_of_its_call() {
    for (body, line) in [
        ("const x = 1\nawait agent('x')", 3),
        ("const p = agent('x')\nawait null\nreturn await p", 2),
        ("const f = async () => {\n  await null\n  return sh('x')\n}\nawait f()", 4),
        ("await Promise.all([\n  checkpoint('x'),\n])", 3),
        ("try {\n  await verify('x')\n} catch (e) { throw e }", 3),
        ("\nawait workflow('x')", 3),
    ] {
        let throw = |_: &_| CallOutcome::Throw { message: "the host says no".to_owned() };
        let ran = run(start(&program(body)), Order::First, 5, throw);
        assert_eq!(fault(&ran).message, "Error: the host says no", "{body}");
        let place = fault(&ran).place.clone().unwrap_or_else(|| panic!("{body}: it has a place"));
        assert_eq!((place.line, ran.calls[0].line), (line, Some(line)), "{body}: {place:?}");
    }
}

#[test]
fn the_kinds_of_faults_that_only_a_host_knows_have_words() {
    for (kind, word) in
        [(FaultKind::Deadline, "deadline"), (FaultKind::Died, "died"), (FaultKind::Unsound, "unsound")]
    {
        assert_eq!(serde_json::to_value(kind).unwrap(), json!(word));
        assert_eq!(serde_json::from_value::<FaultKind>(json!(word)).unwrap(), kind);
    }
}
