//! `convoke workflow plan`: a program against stub answers. No model, no journal, and the same plan every
//! time.

use serde_json::{Value, json};

use crate::support::{Finished, TestHome, ran};

fn script(body: &str) -> String {
    format!(
        "export const meta = {{ name: 'probe', description: 'Tries something.', phases: [{{ title: 'Find' \
            }}, {{ title: 'Mend' }}] }}\n{body}\n"
    )
}

const ITEMS: &str = "{ schema: { type: 'object', required: ['items'], properties: { items: { type: 'array', maxItems: 9, items: { type: 'string' } } } } }";

fn plan(body: &str, args: &[&str]) -> Finished {
    let place = TestHome::new();
    place.write(&place.path("work/flow.js"), &script(body));
    let got = place.convoke(&[&["workflow", "plan", "flow.js"], args].concat());
    assert!(!place.journal_file().exists(), "a plan is written down nowhere");
    got
}

#[track_caller]
fn object(body: &str, args: &[&str]) -> Value {
    let got = plan(body, &[args, &["-o", "json"]].concat());
    serde_json::from_str(&got.out).unwrap_or_else(|error| panic!("{error}: {}{}", got.out, got.err))
}

#[test]
fn a_plan_counts_the_agents_of_every_phase_at_least_and_at_most() {
    let body = format!(
        "phase('Find')\nconst found = await agent('find', {ITEMS})\nphase('Mend')\n\
         await pipeline(found.items, item => agent(`mend ${{item}}`, {{ model: 'haiku', isolation: \
         'worktree', phase: 'Mend' }}),\n\
         async (_, item) => verify({{ claim: item, evidence: 'e' }}, {{ voters: 2 }}))\nreturn \
         found.items.length"
    );
    let told = object(&body, &[]);
    let rows: Vec<Value> =
        told["phases"].as_array().unwrap().iter().map(|row| json!([row["phase"], row["agents"]])).collect();
    assert_eq!(rows, [json!(["Find", {"low": 1, "high": 1}]), json!(["Mend", {"low": 0, "high": 27}])]);
    let mend = &told["phases"][1];
    assert_eq!(mend["calls"], json!({"agent": {"low": 0, "high": 9}, "verify": {"low": 0, "high": 9}}));
    assert_eq!(mend["worktrees"], json!({"low": 0, "high": 9}));
    assert!(mend["models"].to_string().contains("haiku"), "{mend}");
    assert_eq!(
        (&told["low"]["agents"], &told["high"]["agents"], &told["cap_agents"]),
        (&json!(1), &json!(28), &json!(500))
    );
    let cost = |way: &str| told[way]["cost_nano"].as_u64().unwrap();
    assert!(0 < cost("low") && cost("low") < cost("high"), "{told}");
    assert_eq!(told, object(&body, &[]), "the same program comes to the same plan");
}

#[test]
fn a_plan_is_read_in_a_small_terminal_and_says_what_it_assumes() {
    let body = format!("phase('Find')\nconst found = await agent('find', {ITEMS})\nreturn found");
    let place = TestHome::new();
    place.write(&place.path("work/flow.js"), &script(&body));
    for columns in ["40", "80", "120"] {
        let got = ran(place.command(&["workflow", "plan", "flow.js"]).env("COLUMNS", columns));
        assert_eq!(got.code, 0, "{}", got.err);
        let widest = got.out.lines().skip(1).map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.parse::<usize>().unwrap(), "{}", got.out);
        let joined = got.out.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in ["PHASE", "Find", "in all: 1 agent; the budget has 500", "assumed: low", "cost: $"] {
            assert!(joined.contains(words), "{words:?} is missing:\n{}", got.out);
        }
        assert!(!got.out.contains('\u{1b}'));
    }
}

/// An agent that finds things of a severity, without a limit to how many.
const FOUND: &str = "{ schema: { type: 'object', properties: { ok: { type: 'boolean' }, found: { type: \
    'array', items: { type: 'object', properties: { severity: { enum: ['high', 'middle', 'low'] } } } } } } \
    }";

#[test]
fn every_branch_that_an_answer_opens_is_tried_and_what_is_no_bound_is_said() {
    // Only what is neither first nor last is looked into, so both of the old ways saw no agent there.
    let body = format!(
        "const told = await agent('find', {FOUND})\nconst some = told.found.filter(one => one.severity === \
            'middle')\n\
         await parallel(some.map((_, i) => () => agent(`mend ${{i}}`)))\nreturn 1"
    );
    let told = object(&body, &[]);
    assert_eq!((&told["low"]["agents"], &told["high"]["agents"]), (&json!(1), &json!(4)), "{told:#}");
    assert_eq!(told["is_bound"], false);
    let got = plan(&body, &[]);
    let joined = got.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        joined.contains("in all: 1 to at least 4 agents") && joined.contains("at least, because lists"),
        "{}",
        got.out
    );
    let body =
        format!("const told = await agent('find', {FOUND})\nif (!told.ok) await agent('again')\nreturn 1");
    let told = object(&body, &[]);
    let figures = (&told["low"]["agents"], &told["high"]["agents"], &told["is_bound"]);
    assert_eq!(figures, (&json!(1), &json!(2), &json!(true)), "{told:#}");
    // A text that is read as a list, and a number that nothing limits.
    for body in [
        "const all = (await agent('list')).split('\\n')\nawait parallel(all.map(x => () => agent(x)))",
        "const { n } = await agent('count', { schema: { type: 'object', properties: { n: { type: 'integer' } \
            } } })\n\
         for (let i = 0; i < n; i++) await agent(`round ${i}`)",
    ] {
        assert_eq!(object(body, &[])["is_bound"], false, "{body}");
    }
    assert!(plan("await agent('a')\nreturn agent('b')", &[]).out.contains("in all: 2 agents"));
}

#[test]
fn a_program_without_an_end_is_said_to_go_on_and_the_plan_ends() {
    let told = object("while (true) await agent('again')", &[]);
    assert_eq!(
        (&told["low"]["ended"]["end"], &told["high"]["ended"]["end"]),
        (&json!("may_go_on"), &json!("may_go_on"))
    );
    let got = plan("while (true) await new Promise(done => setTimeout(done, 5))", &[]);
    assert_eq!(got.code, 0);
    assert!(got.err.contains("it may go on"), "{}", got.err);
    // A loop that minds its budget ends by it.
    let minds = "let n = 0\nwhile (budget.total && budget.remaining() > 20000) { await agent(`round ${n++}`) \
        }\nreturn n";
    let told = object(minds, &["--budget-tokens", "100000"]);
    assert_eq!(
        (&told["low"]["ended"]["end"], &told["high"]["ended"]["end"]),
        (&json!("returned"), &json!("returned"))
    );
    assert!(
        told["high"]["agents"].as_u64().unwrap() > told["low"]["agents"].as_u64().unwrap(),
        "dear agents are fewer: {told}"
    );
    assert_eq!(told["is_bound"], false, "what agents use decides: {told}");
}

#[test]
fn an_error_of_the_program_is_shown_with_its_line() {
    let got = plan("const found = await agent('find')\nreturn found.items.length", &[]);
    assert_eq!(got.code, 1);
    assert!(got.err.contains("flow.js:3:") && got.err.contains("return found.items.length"), "{}", got.err);
    let got = plan(
        &format!(
            "const f = await agent('x', {ITEMS})\nif (f.items.length === 0) throw new \
                Error('nothing')\nreturn 1"
        ),
        &[],
    );
    assert_eq!(got.code, 0, "one of two ways is well");
    assert!(got.err.contains("with short answers the program fails: Error: nothing"), "{}", got.err);
    let got = plan("return await agent('x', { agentType: 'nobody' })", &[]);
    assert!(got.err.contains("agentType 'nobody' is not known"), "{}", got.err);
}

#[test]
fn arguments_children_commands_and_questions_have_their_part_in_a_plan() {
    let place = TestHome::new();
    let child = "export const meta = { name: 'child', description: 'Below.' }\nphase('Deep')\nawait \
        agent('deep')\nreturn 1\n";
    place.write(&place.path("home/.config/convoke/workflows/child.js"), child);
    let body = "const said = await checkpoint('go on?')\nconst { output } = await sh('git ls-files')\n\
                const files = output.split('\\n').filter(Boolean)\nawait parallel([...args, ...files].map(x \
                => () => agent(x)))\n\
                await workflow('child')\nif (said !== 'yes') throw new Error('no')\nreturn 1";
    place.write(&place.path("work/flow.js"), &script(body));
    let got = place.convoke(&["workflow", "plan", "flow.js", "--args", "[\"a\", \"b\"]", "-o", "json"]);
    let told: Value = serde_json::from_str(&got.out).unwrap_or_else(|error| panic!("{error}: {}", got.err));
    assert_eq!((&told["low"]["agents"], &told["high"]["agents"]), (&json!(3), &json!(6)), "{told:#}");
    let rows = told["phases"].as_array().unwrap();
    let deep = rows.iter().find(|row| row["within"] == "child").unwrap();
    assert_eq!((&deep["phase"], &deep["agents"]), (&json!("Deep"), &json!({"low": 1, "high": 1})));
    let own = rows.iter().find(|row| row["phase"].is_null()).unwrap();
    assert_eq!(
        (&own["calls"]["checkpoint"]["low"], &own["calls"]["sh"]["low"]),
        (&json!(1), &json!(1)),
        "{own}"
    );
}

#[test]
fn a_plan_says_when_even_its_least_does_not_fit_the_budget() {
    let body = "return await parallel([1, 2, 3, 4].map(x => () => agent(`look ${x}`)))";
    let got = plan(body, &["--budget-agents", "3"]);
    let joined = got.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "will be refused: it starts at least 4 agents and the budget has 3";
    assert!(joined.contains(expected) && joined.contains("--budget-agents 4 grants them"), "{}", got.out);
    let told = object(body, &["--budget-agents", "3"]);
    assert!(told["refused"].as_str().unwrap().contains("at least 4 agents"), "{told:#}");
    assert_eq!(object(body, &["--budget-agents", "4"])["refused"], Value::Null);
    assert!(!plan(body, &["--budget-agents", "4"]).out.contains("refused"));
}

#[test]
fn what_is_shipped_can_be_planned() {
    let place = TestHome::new();
    let check = |args: &[&str], low: u64, high: u64| {
        let got = place.convoke(&[&["workflow", "plan", "-o", "json"], args].concat());
        let told: Value =
            serde_json::from_str(&got.out).unwrap_or_else(|error| panic!("{error}: {}", got.err));
        assert_eq!(
            (told["low"]["agents"].as_u64(), told["high"]["agents"].as_u64()),
            (Some(low), Some(high)),
            "{args:?}"
        );
    };
    check(&["review"], 6, 46);
    check(&["audit"], 4, 144);
    check(&["migrate", "--arg-text", "replace a by b"], 1, 7);
}
