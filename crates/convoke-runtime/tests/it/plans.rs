//! The scripts in `convoke-script/tests/scripts`, planned and then run: the agents of a run lie inside the
//! plan's bracket, or the plan has said *at least*. Agents answer with lists of 0, 1, 2 and 10 items and with
//! every option of a choice. CI takes a few of the answers per script, chosen by its name;
//! `CONVOKE_SOAK_PLANS=1` takes all of them.

use convoke_claude::Models;
use convoke_kernel::{FanOut, Program};
use convoke_runtime::{HelperPath, Plan, PlanFor, plan};
use convoke_sim::{Brain, Context, Script, Scripted, SimConfig, calls, says};
use serde_json::{Map, Value, json};

use crate::dialect::{header, rig_of, run, sources};
use crate::support::{MODEL, Rig};
use crate::team::{between, looks_and_judges, role};

/// How long lists are.
const SIZES: [u64; 4] = [0, 1, 2, 10];

/// How agents answer: with so many items, and with this option of every choice.
#[derive(Debug, Clone, Copy)]
struct Answers {
    items: u64,
    option: usize,
}

impl Brain for Answers {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let first = request["messages"][0]["content"][0]["text"].as_str().unwrap_or_default();
        let number = first.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let tools = request["tools"].as_array().into_iter().flatten();
        let output = tools.into_iter().find(|tool| tool["name"] == "StructuredOutput");
        let replies = match (role(request), output) {
            ("verifier", _) => {
                let findings: Vec<Value> =
                    serde_json::from_str(between(first, "<findings>", "</findings>")).unwrap();
                looks_and_judges(&findings, "confirmed")
            }
            (_, Some(tool)) => {
                let mut texts = number;
                vec![calls("StructuredOutput", self.fill(&tool["input_schema"], &mut texts))]
            }
            (_, None) => vec![says(&format!("said {number:016x}"))],
        };
        Script::new().conversation("*", replies).reply(request, context)
    }
}

impl Answers {
    fn fill(self, schema: &Value, texts: &mut u64) -> Value {
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            return options[self.option % options.len()].clone();
        }
        let kind = match schema.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(Value::Array(kinds)) => {
                kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap()
            }
            _ if schema.get("properties").is_some() => "object",
            _ => "string",
        };
        match kind {
            "object" => {
                let mut object = Map::new();
                let parts = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
                // Patterns are beyond what it fills in.
                for (key, part) in parts.filter(|(_, part)| part.get("pattern").is_none()) {
                    object.insert(key.clone(), self.fill(part, texts));
                }
                Value::Object(object)
            }
            "array" => {
                let least = number("minItems").map_or(0, |least| least as u64);
                let most = number("maxItems").map_or(u64::MAX, |most| most as u64);
                let part = schema.get("items").cloned().unwrap_or(json!({"type": "string"}));
                (0..self.items.clamp(least, most)).map(|_| self.fill(&part, texts)).collect()
            }
            "boolean" => Value::Bool(self.option.is_multiple_of(2)),
            "integer" | "number" => {
                let least = number("minimum").unwrap_or(0.0);
                let most = number("maximum").unwrap_or(f64::MAX);
                json!((self.items as f64).clamp(least, most) as i64)
            }
            _ => {
                *texts = texts.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let text = format!("https://www.example.org/{:06x}/", *texts >> 40);
                let most = number("maxLength").map_or(200, |most| most as usize);
                Value::String(text.chars().take(most).collect())
            }
        }
    }
}

/// The options of the choice with the most of them.
fn options(source: &str) -> usize {
    let lists = source.split("enum:").skip(1).filter_map(|rest| rest.split_once('[')?.1.split_once(']'));
    lists.map(|(list, _)| list.split(',').count()).max().unwrap_or(1).clamp(1, 8)
}

async fn planned(rig: &Rig, source: &str) -> Plan {
    let helper = HelperPath::new(env!("CARGO_BIN_EXE_convoke-helper").into());
    let args: Option<Value> = header(source, "args").map(|args| serde_json::from_str(args).unwrap());
    let asked = PlanFor {
        helper: &helper,
        programs: &rig.programs(),
        models: &Models::builtin(),
        seen: &[],
        model: MODEL,
        dir: rig.work.path(),
        source,
        args: args.as_ref(),
        budget_total: header(source, "budget").map(|_| 400_000),
        voters: 1,
        callee_turns: 50,
        verifier_turns: 15,
    };
    plan(&asked).await.unwrap()
}

/// The agents that worked.
fn agents(program: &Program) -> u32 {
    program.calls().filter_map(|call| call.result.as_ref()).map(|result| result.agents.len() as u32).sum()
}

#[tokio::test]
async fn the_agents_of_a_run_lie_inside_the_bracket_of_its_plan_or_the_plan_said_at_least() {
    let soak = std::env::var_os("CONVOKE_SOAK_PLANS").is_some();
    let mut runs = 0;
    let mut inside = 0;
    let mut beyond = 0;
    let mut open = 0;
    let mut scripts = 0;
    let mut wrong = Vec::new();
    for (at, (name, source)) in sources().into_iter().enumerate() {
        let rig = rig_of(SimConfig::new(Answers { items: 0, option: 0 })).await;
        let plan = planned(&rig, &source).await;
        let low = plan.low.agents;
        let high = plan.high.agents;
        scripts += 1;
        open += usize::from(plan.open.is_some());
        let all: Vec<Answers> =
            (0..options(&source)).flat_map(|option| SIZES.map(|items| Answers { items, option })).collect();
        let one = [all[at % all.len()]];
        for answers in if soak { &all[..] } else { &one[..] } {
            let mut rig = rig_of(SimConfig::new(*answers)).await;
            rig.fan_out = Some(FanOut { fresh: true, ..Rig::fanning_out() });
            let had = agents(&run(&rig, &source).await);
            runs += 1;
            match (had < low, had > high) {
                (false, false) => inside += 1,
                (false, true) if plan.open.is_some() => beyond += 1,
                _ => wrong.push(format!(
                    "{name} {answers:?}: {had} agents, planned {low} to {high} ({:?})",
                    plan.open
                )),
            }
        }
    }
    println!(
        "{scripts} scripts planned ({open} say at least), {runs} runs: {inside} inside the bracket, \
         {beyond} beyond one that said at least, {} wrong",
        wrong.len()
    );
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert_eq!(scripts, 32);
}
