//! What a workflow would do, drawn up and put into words: phases with their agents, and a bracket for the
//! cost. Figures are always given as low and high, with what was assumed.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use convoke_claude::OFFLINE_MODEL;
use convoke_kernel::{CALLEE_TURNS, CallKind, Role};
use convoke_runtime::{
    HelperPath, Library, Plan, PlanEnd, PlanFor, PlanGroup, PlanPass, Problem, Programs, SeenCost,
    SourcePosition, plan as draw_up, source_digest,
};
use serde_json::{Value, json};

use super::agree::Children;
use super::chosen::Chosen;
use super::places;
use crate::catalog::{self, Catalog};
use crate::commands::plan::notice;
use crate::commands::table::{Column, Table};
use crate::estimate::seen_costs;
use crate::failure::Failure;
use crate::paths;
use crate::render::{clean, count, dollars, hanging, tokens};
use crate::settings::{ModelSource, Settings};

/// A plan, and what its cost rests on.
pub(super) struct Priced {
    pub(super) plan: Plan,
    /// What the journal has seen, as far as the plan has agents like these.
    seen: Vec<SeenCost>,
    /// Whether the plan has agents of which the journal has seen too few.
    assumes: bool,
}

impl Priced {
    fn of(plan: Plan, seen: &[SeenCost]) -> Self {
        let mut wanted: BTreeSet<(bool, &str)> = BTreeSet::new();
        for group in plan.low.groups.iter().chain(&plan.high.groups) {
            let has = |kind: CallKind| group.kinds.get(kind.word()).is_some_and(|calls| *calls > 0);
            for model in group.models.keys() {
                wanted.extend(
                    [(false, has(CallKind::Agent)), (true, has(CallKind::Verify))]
                        .into_iter()
                        .filter_map(|(verifies, has)| has.then_some((verifies, model.as_str()))),
                );
            }
        }
        let is = |one: &SeenCost, (verifies, model): (bool, &str)| {
            one.model == model && one.role == if verifies { Role::Verifier } else { Role::Callee }
        };
        let assumes = wanted.iter().any(|want| !seen.iter().any(|one| is(one, *want)));
        let used = seen.iter().filter(|one| wanted.iter().any(|want| is(one, *want)));
        Self { seen: used.cloned().collect(), assumes, plan }
    }

    /// What the cost rests on, in a few words.
    fn basis(&self) -> &'static str {
        match (self.seen.is_empty(), self.assumes) {
            (true, _) => "by a rough assumption",
            (false, true) => "in part by what this journal has seen",
            (false, false) => "by what this journal has seen",
        }
    }

    /// `claude-opus-4-8`, or several.
    fn models(&self) -> String {
        let groups = self.plan.high.groups.iter().chain(&self.plan.low.groups);
        let models: BTreeSet<&str> =
            groups.flat_map(|group| group.models.keys().map(String::as_str)).collect();
        models.into_iter().collect::<Vec<_>>().join(", ")
    }
}

/// How long a plan waits for the journal: it is worth knowing what agents cost, and not worth waiting for.
const JOURNAL: Duration = Duration::from_secs(2);

/// What agents of programs cost in this journal; nothing if it cannot be read now.
pub(super) async fn seen(settings: &Settings) -> Vec<SeenCost> {
    let read = async {
        let journal = catalog::open_existing(settings).await?;
        let catalog = Catalog::load(settings, journal.as_ref()).await?;
        Ok::<_, Failure>(seen_costs(&catalog.sessions))
    };
    tokio::time::timeout(JOURNAL, read).await.map(Result::unwrap_or_default).unwrap_or_default()
}

/// The line before the first paid request of a directory.
pub(super) fn first_time(settings: &Settings, chosen: &Chosen, priced: &Priced) -> String {
    let expects = format!("{}, {}", agents(priced), cost(priced));
    let models = match priced.models() {
        models if models.is_empty() => settings.fan_out.worker.model.clone(),
        models => models,
    };
    notice(settings, &models, &expects, &format!("convoke workflow plan {}", clean(&chosen.named)))
}

/// Draws up a plan of this workflow with these arguments.
pub(super) async fn plan(
    settings: &Settings,
    source: &ModelSource,
    library: Library,
    chosen: &Chosen,
    args: Option<&Value>,
    seen: &[SeenCost],
) -> Result<Priced, Failure> {
    let helper = HelperPath::new(paths::own_executable()?);
    let offline = matches!(source, ModelSource::Offline);
    let programs = Programs { one_model: offline, ..Programs::new(library, settings.server.clone()) };
    let worker = &settings.fan_out.worker;
    let asked = PlanFor {
        helper: &helper,
        programs: &programs,
        models: &settings.models,
        seen,
        model: if offline { OFFLINE_MODEL } else { &worker.model },
        dir: &settings.dir,
        source: &chosen.source,
        args,
        budget_total: settings.caps.tokens,
        voters: settings.fan_out.voters.max(1),
        callee_turns: settings.callee_turns(false).unwrap_or(CALLEE_TURNS),
        verifier_turns: settings.verifier_turns(false),
    };
    let drawn = draw_up(&asked).await;
    drawn
        .map(|plan| Priced::of(plan, seen))
        .map_err(|error| Failure::failed(error.to_string()).hint("`convoke doctor` says what is missing"))
}

/// The workflows that the plan saw the program call, each with the digest of its source. They are read when
/// they are called, so this is what they are now.
pub(super) async fn children(settings: &Settings, library: &Library, priced: &Priced) -> Children {
    let plan = &priced.plan;
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

/// `6 to 21 agents`, or `6 to at least 21 agents` where that is no bound.
pub(super) fn agents(priced: &Priced) -> String {
    let plan = &priced.plan;
    let low = plan.low.agents;
    let high = plan.high.agents;
    let least = at_least(plan);
    match low == high {
        true => format!("{least}{}", count(low, "agent")),
        false => format!("{low} to {least}{}", count(high, "agent")),
    }
}

fn at_least(plan: &Plan) -> &'static str {
    if plan.open.is_some() { "at least " } else { "" }
}

/// `$0.10 to $3.40 by a rough assumption`.
pub(super) fn cost(priced: &Priced) -> String {
    let plan = &priced.plan;
    match (plan.low.cost_nano, plan.high.cost_nano) {
        (Some(0), Some(0)) => "no cost".to_owned(),
        (Some(low), Some(high)) => {
            let low = dollars(Some(low));
            let high = dollars(Some(high));
            let least = at_least(plan);
            format!("{low} to {least}{high} {}", priced.basis())
        }
        _ => "price unknown".to_owned(),
    }
}

/// Whether the program fails in both ways of the plan, whatever its agents answer.
pub(super) fn fails(priced: &Priced) -> bool {
    [&priced.plan.low, &priced.plan.high].iter().all(|pass| matches!(pass.end, PlanEnd::Failed { .. }))
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
        let low = self.low.map_or(0, &of);
        let high = self.high.map_or(0, &of);
        (low.min(high), low.max(high))
    }

    fn groups(&self) -> impl Iterator<Item = &PlanGroup> {
        self.low.into_iter().chain(self.high)
    }

    fn kinds(&self) -> Vec<(&'static str, (u32, u32))> {
        let mut words: Vec<&'static str> =
            self.groups().flat_map(|group| group.kinds.keys().copied()).collect();
        words.sort_unstable();
        words.dedup();
        words
            .into_iter()
            .map(|word| (word, self.both(|group| group.kinds.get(word).copied().unwrap_or(0))))
            .collect()
    }

    fn models(&self) -> Vec<&str> {
        let mut models: Vec<&str> =
            self.groups().flat_map(|group| group.models.keys().map(String::as_str)).collect();
        models.sort_unstable();
        models.dedup();
        models
    }
}

fn range((low, high): (u32, u32)) -> String {
    if low == high { low.to_string() } else { format!("{low}..{high}") }
}

/// The plan for people.
pub(super) fn text(settings: &Settings, chosen: &Chosen, priced: &Priced, width: Option<usize>) -> String {
    let plan = &priced.plan;
    let columns = vec![
        Column::kept("PHASE"),
        Column::kept("AGENTS").right(),
        Column::dropped("MODELS", 0),
        Column::cut("CALLS"),
    ];
    let mut table = Table::new(columns);
    for row in rows(chosen, plan) {
        let worktrees = row.both(|group| group.worktrees);
        let worktrees =
            Some(worktrees).filter(|(_, high)| *high > 0).map(|some| format!("{} in worktrees", range(some)));
        let calls: Vec<String> =
            row.kinds().into_iter().map(|(word, some)| format!("{} {word}", range(some))).collect();
        let calls: Vec<String> = calls.into_iter().chain(worktrees).collect();
        table.row(vec![
            row.title(),
            range(row.both(|group| group.agents)),
            row.models().join(", "),
            calls.join(", "),
        ]);
    }
    let mut page = table.render(width);
    let of = |cap: Option<String>| cap.map(|cap| format!("; the budget has {cap}")).unwrap_or_default();
    let low = tokens(plan.low.tokens);
    let high = format!("{}{}", at_least(plan), tokens(plan.high.tokens));
    let mut lines = vec![
        String::new(),
        format!("in all: {}{}", agents(priced), of(settings.caps.agents.map(|cap| cap.to_string()))),
        format!("tokens: {low} to {high}{}", of(settings.caps.tokens.map(tokens))),
        format!("cost: {}{}", cost(priced), of(settings.caps.nano.map(|cap| dollars(Some(cap))))),
    ];
    lines.extend(plan.open.map(|why| format!("at least, because {why}")));
    lines.push(assumption(plan));
    lines.extend(rests_on(priced));
    lines.extend(refused(settings, plan).map(|why| format!("will be refused: {why}")));
    let width = width.unwrap_or(WIDE);
    lines.iter().for_each(|line| page.push_str(&(hanging(line, width, "  ") + "\n")));
    page
}

/// Why the budget has no room for it, even if every answer is short; `None` if it may fit.
fn refused(settings: &Settings, plan: &Plan) -> Option<String> {
    let least = plan.low.agents;
    let cap = settings.caps.agents?;
    (least > cap).then(|| {
        format!(
            "it starts at least {} and the budget has {cap}, so a step of it will not be begun; \
             --budget-agents {least} grants them",
            count(least, "agent")
        )
    })
}

/// What a line may take where no terminal says how wide it is.
const WIDE: usize = 120;

/// What of the cost rests on the journal.
fn rests_on(priced: &Priced) -> Option<String> {
    let one = |one: &SeenCost| {
        let low = dollars(Some(one.nano.0));
        let high = dollars(Some(one.nano.1));
        format!("{} {}s of {} cost {low} to {high} each", one.seen, one.role.word(), one.model)
    };
    let seen: Vec<String> = priced.seen.iter().map(one).collect();
    let rest = if priced.assumes { "; the cost of others is by the assumption" } else { "" };
    (!seen.is_empty()).then(|| {
        format!("the cost is by what this journal has seen, the middle half of it: {}{rest}", seen.join(", "))
    })
}

/// What the figures rest on.
fn assumption(plan: &Plan) -> String {
    let low = plan.low.assumed;
    let high = plan.high.assumed;
    format!(
        "assumed: low, each agent answers at once ({} tokens of instructions, its prompt, {} written); \
         high, it takes a third of its turns ({} of {}), each with {} tokens read and {} written; no agent \
         dies ({} ways through the program)",
        low.base,
        low.written,
        high.turns(plan.callee_turns),
        plan.callee_turns,
        high.read,
        high.written,
        plan.ways
    )
}

/// What a person should know beside the figures.
pub(super) fn remarks(chosen: &Chosen, priced: &Priced, width: Option<usize>) -> String {
    let plan = &priced.plan;
    let mut text = String::new();
    let ends = [("with short answers", &plan.low.end), ("with long answers", &plan.high.end)];
    let same = plan.low.end == plan.high.end;
    for (when, end) in ends.into_iter().take(if same { 1 } else { 2 }) {
        match end {
            PlanEnd::Returned => {}
            PlanEnd::MayGoOn => text.push_str(&format!(
                "{}it may go on: the plan stopped at 1000 agents or 2000 calls; the budget and what agents \
                    really say end it\n",
                if same { String::new() } else { format!("{when} ") }
            )),
            PlanEnd::Failed { message, place } => {
                let when = if same {
                    "the program fails: ".to_owned()
                } else {
                    format!("{when} the program fails: ")
                };
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

fn problem(message: &str, place: Option<&SourcePosition>) -> Problem {
    Problem { message: message.to_owned(), place: place.cloned() }
}

/// The plan for programs.
pub(super) fn object(settings: &Settings, chosen: &Chosen, priced: &Priced) -> Value {
    let plan = &priced.plan;
    let seen = |one: &SeenCost| {
        let each = json!({"low": one.nano.0, "high": one.nano.1});
        json!({"role": one.role.word(), "model": one.model, "seen": one.seen, "each_nano": each})
    };
    let basis = match (priced.seen.is_empty(), priced.assumes) {
        (true, _) => "table",
        (false, true) => "mixed",
        (false, false) => "journal",
    };
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
                "turns": pass.assumed.turns(plan.callee_turns),
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
        "is_bound": plan.open.is_none(),
        "open_because": plan.open,
        "ways": plan.ways,
        "cost_basis": basis,
        "seen": priced.seen.iter().map(seen).collect::<Vec<_>>(),
        "cap_agents": settings.caps.agents,
        "refused": refused(settings, plan),
    })
}
