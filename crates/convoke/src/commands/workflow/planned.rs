//! What a workflow would do, drawn up and put into words: phases with their agents, and a bracket for the cost. Figures are always
//! given as low and high, with what was assumed.

use std::path::Path;

use convoke_claude::OFFLINE_MODEL;
use convoke_runtime::{
    HelperPath, Library, Place, Plan, PlanEnd, PlanFor, PlanGroup, PlanPass, Problem, Programs, plan as draw_up,
    source_digest,
};
use serde_json::{Value, json};

use super::agree::Children;
use super::chosen::Chosen;
use super::places;
use crate::commands::table::{Column, Table};
use crate::failure::Failure;
use crate::paths;
use crate::render::{clean, count, dollars, hanging, tokens};
use crate::settings::{ModelSource, Settings};

/// Draws up a plan of this workflow with these arguments.
pub(super) async fn plan(
    settings: &Settings,
    source: &ModelSource,
    library: Library,
    chosen: &Chosen,
    args: Option<&Value>,
) -> Result<Plan, Failure> {
    let helper = HelperPath::new(paths::own_executable()?);
    let offline = matches!(source, ModelSource::Offline);
    let programs = Programs { one_model: offline, ..Programs::new(library, settings.endpoint.clone()) };
    let worker = &settings.fan_out.worker;
    let asked = PlanFor {
        helper: &helper,
        programs: &programs,
        models: &settings.models,
        model: if offline { OFFLINE_MODEL } else { &worker.model },
        dir: &settings.dir,
        source: &chosen.source,
        args,
        budget_total: settings.caps.tokens,
        voters: settings.fan_out.voters.max(1),
        verifier_turns: worker.turns,
    };
    draw_up(&asked)
        .await
        .map_err(|error| Failure::failed(error.to_string()).hint("`convoke doctor` says what is missing"))
}

/// The workflows that the plan saw the program call, each with the digest of its source. They are read when they are called, so
/// this is what they are now.
pub(super) async fn children(settings: &Settings, library: &Library, plan: &Plan) -> Children {
    let mut children = Children::new();
    for name in plan.low.groups.iter().chain(&plan.high.groups).filter_map(|group| group.within.as_ref()) {
        let digest = match library.find(name).await {
            Ok(Some(found)) => Some(found.digest()),
            _ => {
                let read = library.read_path(Path::new(name), &settings.dir, None, |_| Ok(())).await;
                read.ok().map(|source| source_digest(&source.text))
            }
        };
        children.extend(digest.map(|digest| (name.clone(), digest)));
    }
    children
}

/// `6 to 21 agents`, or that there may be more.
pub(super) fn agents(plan: &Plan) -> String {
    let more = if goes_on(plan) { " or more" } else { "" };
    let (low, high) = (plan.low.agents.min(plan.high.agents), plan.low.agents.max(plan.high.agents));
    match low == high {
        true => format!("{}{more}", count(low, "agent")),
        false => format!("{low} to {}{more}", count(high, "agent")),
    }
}

/// `$0.10 to $3.40 by a rough assumption`.
pub(super) fn cost(plan: &Plan) -> String {
    match (plan.low.cost_nano, plan.high.cost_nano) {
        (Some(0), Some(0)) => "no cost".to_owned(),
        (Some(low), Some(high)) => {
            format!("{} to {} by a rough assumption", dollars(Some(low.min(high))), dollars(Some(low.max(high))))
        }
        _ => "price unknown".to_owned(),
    }
}

fn goes_on(plan: &Plan) -> bool {
    [&plan.low, &plan.high].iter().any(|pass| pass.end == PlanEnd::MayGoOn)
}

/// Whether the program failed whatever it was told.
pub(super) fn fails(plan: &Plan) -> bool {
    [&plan.low, &plan.high].iter().all(|pass| matches!(pass.end, PlanEnd::Failed { .. }))
}

/// A phase as both ways saw it.
struct Row<'a> {
    within: Option<&'a str>,
    phase: Option<&'a str>,
    low: Option<&'a PlanGroup>,
    high: Option<&'a PlanGroup>,
}

/// The phases: those that the program declares, then the others as they were heard of.
fn rows<'a>(chosen: &'a Chosen, plan: &'a Plan) -> Vec<Row<'a>> {
    let mut keys: Vec<(Option<&str>, Option<&str>)> = Vec::new();
    let declared = chosen.meta.phases.iter().map(|phase| (None, Some(phase.title.as_str())));
    let seen = plan.high.groups.iter().chain(&plan.low.groups);
    for key in declared.chain(seen.map(|group| (group.within.as_deref(), group.phase.as_deref()))) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let find = |pass: &'a PlanPass, key: (Option<&str>, Option<&str>)| {
        pass.groups.iter().find(|group| (group.within.as_deref(), group.phase.as_deref()) == key)
    };
    let row = |key: (Option<&'a str>, Option<&'a str>)| {
        let (within, phase) = key;
        Row { within, phase, low: find(&plan.low, key), high: find(&plan.high, key) }
    };
    keys.into_iter().map(row).collect()
}

impl Row<'_> {
    fn title(&self) -> String {
        let phase = self.phase.unwrap_or("(no phase)");
        self.within.map_or_else(|| phase.to_owned(), |within| format!("▸ {within}: {phase}"))
    }

    fn both(&self, of: impl Fn(&PlanGroup) -> u32) -> (u32, u32) {
        let (low, high) = (self.low.map_or(0, &of), self.high.map_or(0, &of));
        (low.min(high), low.max(high))
    }

    fn groups(&self) -> impl Iterator<Item = &PlanGroup> {
        self.low.into_iter().chain(self.high)
    }

    fn kinds(&self) -> Vec<(&'static str, (u32, u32))> {
        let mut words: Vec<&'static str> = self.groups().flat_map(|group| group.kinds.keys().copied()).collect();
        words.sort_unstable();
        words.dedup();
        words.into_iter().map(|word| (word, self.both(|group| group.kinds.get(word).copied().unwrap_or(0)))).collect()
    }

    fn models(&self) -> Vec<&str> {
        let mut models: Vec<&str> = self.groups().flat_map(|group| group.models.keys().map(String::as_str)).collect();
        models.sort_unstable();
        models.dedup();
        models
    }
}

fn range((low, high): (u32, u32)) -> String {
    if low == high { low.to_string() } else { format!("{low}..{high}") }
}

/// The plan for people.
pub(super) fn text(settings: &Settings, chosen: &Chosen, plan: &Plan, width: Option<usize>) -> String {
    let columns =
        vec![Column::kept("PHASE"), Column::kept("AGENTS").right(), Column::dropped("MODELS", 0), Column::cut("CALLS")];
    let mut table = Table::new(columns);
    for row in rows(chosen, plan) {
        let worktrees = row.both(|group| group.worktrees);
        let worktrees =
            Some(worktrees).filter(|(_, high)| *high > 0).map(|some| format!("{} in worktrees", range(some)));
        let calls: Vec<String> =
            row.kinds().into_iter().map(|(word, some)| format!("{} {word}", range(some))).collect();
        let calls: Vec<String> = calls.into_iter().chain(worktrees).collect();
        table.row(vec![row.title(), range(row.both(|group| group.agents)), row.models().join(", "), calls.join(", ")]);
    }
    let mut page = table.render(width);
    let of = |cap: Option<String>| cap.map(|cap| format!("; the envelope has {cap}")).unwrap_or_default();
    let (low, high) = (plan.low.tokens.min(plan.high.tokens), plan.low.tokens.max(plan.high.tokens));
    let mut lines = vec![
        String::new(),
        format!("in all: {}{}", agents(plan), of(settings.caps.agents.map(|cap| cap.to_string()))),
        format!("tokens: {} to {}{}", tokens(low), tokens(high), of(settings.caps.tokens.map(tokens))),
        format!("cost: {}{}", cost(plan), of(settings.caps.nano.map(|cap| dollars(Some(cap))))),
        assumption(plan),
    ];
    lines.extend(refused(settings, plan).map(|why| format!("will be refused: {why}")));
    let width = width.unwrap_or(WIDE);
    lines.iter().for_each(|line| page.push_str(&(hanging(line, width, "  ") + "\n")));
    page
}

/// Why the envelope has no room for it, even if every answer is short; `None` if it may fit.
fn refused(settings: &Settings, plan: &Plan) -> Option<String> {
    let (least, cap) = (plan.low.agents.min(plan.high.agents), settings.caps.agents?);
    (least > cap).then(|| {
        format!(
            "it starts at least {} and the envelope has {cap}, so a step of it will not be begun; --budget-agents {least} \
             grants them",
            count(least, "agent")
        )
    })
}

/// What a line may take where nobody says how long a line is.
const WIDE: usize = 120;

/// What the figures rest on.
fn assumption(plan: &Plan) -> String {
    let (low, high) = (plan.low.assumed, plan.high.assumed);
    format!(
        "assumed: low, each agent answers at once ({} tokens of instructions, its prompt, {} written); high, it takes a third of its \
         turns ({} of {}), each with {} tokens read and {} written",
        low.base,
        low.written,
        high.callee_turns(),
        convoke_kernel::CALLEE_TURNS,
        high.read,
        high.written
    )
}

/// What a person should know beside the figures.
pub(super) fn remarks(chosen: &Chosen, plan: &Plan, width: Option<usize>) -> String {
    let mut text = String::new();
    let ends = [("with short answers", &plan.low.end), ("with long answers", &plan.high.end)];
    let same = plan.low.end == plan.high.end;
    for (when, end) in ends.into_iter().take(if same { 1 } else { 2 }) {
        match end {
            PlanEnd::Returned => {}
            PlanEnd::MayGoOn => text.push_str(&format!(
                "{}it may go on: the plan stopped at 1000 agents or 2000 calls; the envelope and what agents really say end it\n",
                if same { String::new() } else { format!("{when} ") }
            )),
            PlanEnd::Failed { message, place } => {
                let when = if same { "the program fails: ".to_owned() } else { format!("{when} the program fails: ") };
                text.push_str(&places::lines(&chosen.named, &when, &problem(message, place.as_ref()), width));
            }
        }
    }
    let mut said: Vec<&String> = plan.low.remarks.iter().chain(&plan.high.remarks).collect();
    said.dedup();
    for remark in said {
        text.push_str(&format!("{}\n", clean(remark)));
    }
    text
}

fn problem(message: &str, place: Option<&Place>) -> Problem {
    Problem { message: message.to_owned(), place: place.cloned() }
}

/// The plan for programs.
pub(super) fn object(settings: &Settings, chosen: &Chosen, plan: &Plan) -> Value {
    let both = |(low, high): (u32, u32)| json!({"low": low, "high": high});
    let phases: Vec<Value> = rows(chosen, plan)
        .iter()
        .map(|row| {
            let kinds: serde_json::Map<String, Value> =
                row.kinds().into_iter().map(|(word, some)| (word.to_owned(), both(some))).collect();
            json!({
                "phase": row.phase,
                "within": row.within,
                "agents": both(row.both(|group| group.agents)),
                "calls": kinds,
                "models": row.models(),
                "worktrees": both(row.both(|group| group.worktrees)),
            })
        })
        .collect();
    let end = |pass: &PlanPass| match &pass.end {
        PlanEnd::Returned => json!({"end": "returned", "problem": null}),
        PlanEnd::MayGoOn => json!({"end": "may_go_on", "problem": null}),
        PlanEnd::Failed { message, place } => {
            json!({"end": "failed", "problem": places::object(&problem(message, place.as_ref()))})
        }
    };
    let way = |pass: &PlanPass| {
        json!({
            "agents": pass.agents,
            "calls": pass.calls,
            "tokens": pass.tokens,
            "cost_nano": pass.cost_nano,
            "assumed": {
                "turns": pass.assumed.callee_turns(),
                "base_tokens": pass.assumed.base,
                "read_tokens": pass.assumed.read,
                "written_tokens": pass.assumed.written,
            },
            "ended": end(pass),
            "remarks": pass.remarks,
        })
    };
    json!({
        "schema_version": 1,
        "workflow": chosen.meta.name,
        "digest": chosen.short(),
        "sha256": chosen.digest,
        "phases": phases,
        "low": way(&plan.low),
        "high": way(&plan.high),
        "cap_agents": settings.caps.agents,
        "refused": refused(settings, plan),
    })
}
