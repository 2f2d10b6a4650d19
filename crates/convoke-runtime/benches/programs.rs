//! What programs cost beside their agents: an interpreter process and a check, a thousand stub agents through
//! it, and the plans of the shipped workflows. Prints one line each, as a ratio where there is something to
//! compare with; nothing is asserted.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is for reading")]

use std::time::{Duration, Instant};

use convoke_claude::Models;
use convoke_runtime::{HelperPath, Plan, PlanFor, Programs, check_program, plan};

const SMALL: &str = "export const meta = {name: 'small', description: 'small'}\nreturn 1";
const WIDE: &str = "export const meta = {name: 'wide', description: 'wide'}\n\
    return (await parallel(Array.from({length: 1000}, (_, i) => () => agent(`item ${i}`)))).length";
const SHIPPED: [(&str, &str); 3] = [
    ("review", include_str!("../workflows/review.js")),
    ("audit", include_str!("../workflows/audit.js")),
    ("migrate", include_str!("../workflows/migrate.js")),
];

fn main() {
    // This executable is also the interpreter's process.
    convoke_runtime::helper_entry();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(run());
}

async fn run() {
    let helper = HelperPath::new(std::env::current_exe().unwrap());
    let spawn = best(20, || async {
        tokio::process::Command::new("/bin/true").status().await.unwrap();
    })
    .await;
    let check = best(20, || async { drop(check_program(&helper, SMALL).await.unwrap()) }).await;
    println!(
        "start-up: a locked process, the engine and a check of a small program: {check:?}, {:.1} of a plain \
            spawn ({spawn:?})",
        ratio(check, spawn)
    );
    let small = best(10, || async { drop(planned(&helper, SMALL).await) }).await;
    let wide = best(5, || async { assert_eq!(planned(&helper, WIDE).await.high.agents, 1_000) }).await;
    let each = (wide.saturating_sub(small)) / 2_000;
    println!(
        "parallel over 1,000 stub agents through the process: {each:?} for each ({wide:?} for two passes, \
            {:.1} of an empty program)",
        ratio(wide, small)
    );
    for (name, source) in SHIPPED {
        let lines = source.lines().count();
        let took = best(10, || async { drop(planned(&helper, source).await) }).await;
        println!("plan of {name} ({lines} lines): {took:?}, {:.1} of an empty program's", ratio(took, small));
    }
}

async fn planned(helper: &HelperPath, source: &str) -> Plan {
    let programs = Programs::without_library(helper);
    let args = serde_json::json!({"goal": "rename a to b", "items": ["x.rs", "y.rs", "z.rs"]});
    let asked = PlanFor {
        helper,
        programs: &programs,
        models: &Models::builtin(),
        seen: &[],
        model: "claude-opus-4-8",
        dir: std::path::Path::new("/"),
        source,
        args: Some(&args),
        budget_total: None,
        voters: 1,
        callee_turns: 50,
        verifier_turns: 15,
    };
    plan(&asked).await.unwrap()
}

async fn best<F: Future<Output = ()>>(times: u32, mut work: impl FnMut() -> F) -> Duration {
    let mut least = Duration::MAX;
    for _ in 0..times {
        let begun = Instant::now();
        work().await;
        least = least.min(begun.elapsed());
    }
    least
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
