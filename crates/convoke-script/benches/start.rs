//! What a program costs beside what it does: start-up, the overhead of one agent, the memory of one that
//! waits, and what the freezing of the built-ins takes from ordinary code. Prints one line each; nothing is
//! asserted.

#![expect(clippy::print_stdout, reason = "a bench is for reading")]

use std::time::{Duration, Instant};

use convoke_script::{CallOutcome, GuestMessage, HostMessage, Interpreter, Limits, Start, State};
use serde_json::Value;

const META: &str = "export const meta = {name: 'bench', description: 'a bench'}\n";

fn start(body: &str) -> (Interpreter, GuestMessage) {
    let mut interpreter = Interpreter::new();
    let limits = Limits { ticks: u64::MAX, ..Limits::default() };
    let start = Start { source: format!("{META}{body}"), args: None, budget_total: None, spent: 0, limits };
    let told = interpreter.hear(HostMessage::Start(Box::new(start)));
    (interpreter, told)
}

fn median(mut f: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..9).map(|_| f()).collect();
    times.sort();
    times[4]
}

fn timed(f: impl FnOnce()) -> Duration {
    let before = Instant::now();
    f();
    before.elapsed()
}

fn main() {
    let bare = median(|| bare("1"));
    let small = median(|| timed(|| drop(start("return 1"))));
    println!(
        "start-up: {} µs, {:.1} times a bare engine",
        small.as_micros(),
        small.as_secs_f64() / bare.as_secs_f64()
    );

    const AGENTS: u32 = 1_000;
    let body = "return (await parallel(Array.from({length: 1000}, (_, i) => async () => \
        { const r = await agent('prompt ' + i); return r.length }))).length";
    let mut memory = 0;
    let whole = median(|| {
        let idle = start("await agent('x')").0.heap_used();
        timed(|| {
            let (mut interpreter, mut told) = start(body);
            memory = interpreter.heap_used().saturating_sub(idle);
            for call in 1..=AGENTS {
                let answer = CallOutcome::Value { value: Value::from("done") };
                told = interpreter.hear(HostMessage::Answer { call, answer, spent: 0 });
            }
            assert!(
                matches!(told, GuestMessage::Stepped(step) if matches!(step.state, State::Returned { .. }))
            );
        })
    });
    println!(
        "parallel over {AGENTS} stub agents: {:.1} µs an agent",
        whole.as_secs_f64() * 1e6 / f64::from(AGENTS)
    );
    println!("memory of a waiting agent: {} bytes", memory / u64::from(AGENTS));

    for (name, code) in [
        ("20M-iteration loop", "let x = 0; for (let i = 0; i < 20000000; i++) x = (x + i) | 0"),
        ("1M array pushes", "const a = []; for (let i = 0; i < 1000000; i++) a.push(i)"),
        ("300k map sets", "const m = new Map(); for (let i = 0; i < 300000; i++) m.set(i, i)"),
        (
            "300k objects and calls",
            "const f = (o) => o.a + 1; let s = 0; for (let i = 0; i < 300000; i++) s += f({a: i})",
        ),
    ] {
        let idle = median(|| timed(|| drop(start("1"))));
        let frozen = median(|| timed(|| drop(start(code)))).saturating_sub(idle);
        let plain = median(|| self::bare(code));
        println!(
            "{name}: {:.2} times as long as with nothing frozen",
            frozen.as_secs_f64() / plain.as_secs_f64()
        );
    }
}

/// The same code in an engine of which nothing was changed.
fn bare(code: &str) -> Duration {
    let before = Instant::now();
    let Ok(runtime) = rquickjs::Runtime::new() else { return Duration::ZERO };
    let Ok(context) = rquickjs::Context::full(&runtime) else { return Duration::ZERO };
    context.with(|ctx| {
        let ran: rquickjs::Result<()> = ctx.eval(format!("(() => {{ 'use strict'; {code} }})()"));
        assert!(ran.is_ok());
    });
    before.elapsed()
}
