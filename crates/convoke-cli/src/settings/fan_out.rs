//! What a lead may fan out to and what the session may spend, settled from the layers. Whether a dollar cap
//! can be held depends on the model that is really asked, so that is looked at when a session begins and not
//! for every command.

use convoke_claude::{Model, Models, OFFLINE_MODEL, Server};

use super::layers::Layers;
use super::origin::Origin;
use super::value::Value;
use crate::args::{BudgetArgs, FanOutArgs, Switch};
use crate::failure::Failure;

/// How a lead fans out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FanOut {
    /// Whether a new session starts with orchestration mode on.
    pub(crate) mode: bool,
    /// Whether the person consented to workflows by flag.
    pub(crate) consent: bool,
    /// Verifiers per result; none switches verification off.
    pub(crate) voters: u32,
    /// Agents that wait for their model at once.
    pub(crate) max_concurrent: u32,
    /// Subtasks per Workflow call.
    pub(crate) max_subtasks: u32,
    /// What workers and verifiers are made of.
    pub(crate) worker: Worker,
}

/// What workers and verifiers are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Worker {
    /// The model, as the API names it.
    pub(crate) model: String,
    /// The effort to ask for; `None` leaves it to the model.
    pub(crate) effort: Option<String>,
    /// Turns.
    pub(crate) turns: u32,
}

/// Puts what the flags say over what is there.
pub(super) fn put_flags(layers: &mut Layers, budget: &BudgetArgs, fan_out_args: &FanOutArgs) {
    use super::caps::Unit;
    let caps = [
        ("budget.agents", "--budget-agents", Unit::Agents, budget.budget_agents),
        ("budget.tokens", "--budget-tokens", Unit::Tokens, budget.budget_tokens),
        ("budget.usd", "--budget-usd", Unit::Dollars, budget.budget_usd),
        ("budget.minutes", "--budget-minutes", Unit::Minutes, budget.budget_minutes),
    ];
    for (key, flag, unit, cap) in caps {
        if let Some(cap) = cap {
            layers.put(key, Value::Cap(unit, cap), Origin::Flag(flag));
        }
    }
    let values = [
        ("mode", "--mode", fan_out_args.mode.map(|mode| Value::Switch(mode == Switch::On))),
        ("verify", "--verify", fan_out_args.verify.map(Value::Voters)),
        ("max_concurrent", "--max-concurrent", fan_out_args.max_concurrent.map(Value::Count)),
        ("max_subtasks", "--max-subtasks", fan_out_args.max_subtasks.map(Value::Count)),
        ("worker.model", "--worker-model", fan_out_args.worker_model.clone().map(Value::Text)),
        ("worker.effort", "--worker-effort", fan_out_args.worker_effort.clone().map(Value::Text)),
        ("worker.turns", "--worker-turns", fan_out_args.worker_turns.map(Value::Count)),
    ];
    for (key, flag, value) in values {
        if let Some(value) = value {
            layers.put(key, value, Origin::Flag(flag));
        }
    }
}

/// What the settled layers say about fanning out, for a lead of this model and effort.
pub(super) fn fan_out(
    layers: &Layers,
    fan_out_args: &FanOutArgs,
    lead: (&Model, Option<&str>),
    models: &Models,
    server: &Server,
    warnings: &mut Vec<String>,
) -> Result<FanOut, Failure> {
    Ok(FanOut {
        mode: layers.is_on("mode"),
        consent: fan_out_args.workflow,
        voters: layers.voters("verify"),
        max_concurrent: layers.count("max_concurrent"),
        max_subtasks: layers.count("max_subtasks"),
        worker: worker(layers, lead, models, server, warnings)?,
    })
}

/// The worker: as the lead, unless a layer says otherwise.
fn worker(
    layers: &Layers,
    (lead, lead_effort): (&Model, Option<&str>),
    models: &Models,
    server: &Server,
    warnings: &mut Vec<String>,
) -> Result<Worker, Failure> {
    let turns = layers.count("worker.turns");
    let model_origin = layers.origin("worker.model");
    let effort_origin = layers.origin("worker.effort");
    let offline = lead.id == OFFLINE_MODEL;
    let by_flag = [(&model_origin, "--worker-model"), (&effort_origin, "--worker-effort")];
    if let Some((_, flag)) = by_flag.iter().find(|(origin, _)| offline && matches!(origin, Origin::Flag(_))) {
        return Err(Failure::usage(format!(
            "{flag} has no meaning with the offline model, which plays every part"
        )));
    }
    let row = match layers.text("worker.model") {
        Some(name) if !offline => models.get(name),
        _ => lead.clone(),
    };
    if row.id == OFFLINE_MODEL && !offline {
        let message = format!("worker.model ({model_origin}): the offline model cannot work for {}", lead.id);
        return Err(Failure::usage(message).hint("say --offline to have it play every part"));
    }
    let has = |wish: &str| row.effort_levels.iter().any(|level| level == wish);
    let effort = match (layers.text("worker.effort"), lead_effort) {
        _ if offline => None,
        (Some(super::resolve::MODELS_OWN_EFFORT), _) | (None, None) => None,
        (None, Some(wish)) if row.id == lead.id || has(wish) => Some(wish.to_owned()),
        (None, Some(wish)) => {
            let id = &row.id;
            warnings.push(format!("workers run at the effort of their model: `{id}` does not have '{wish}'"));
            None
        }
        (Some(wish), _) => {
            let capabilities =
                convoke_claude::capabilities(&row, &server.row(&row.id), Some(wish)).map_err(|error| {
                    let failure = Failure::usage(format!("worker.effort ({effort_origin}): {error}"));
                    failure.hint("`--worker-effort default` leaves it to the model")
                })?;
            capabilities.effort
        }
    };
    Ok(Worker { model: row.id, effort, turns })
}

/// A dollar cap can be held only where every price is known.
pub(super) fn priced(cap: Option<u64>, origin: &Origin, models: &[Model]) -> Result<(), Failure> {
    let Some(model) = models.iter().find(|model| cap.is_some() && model.prices.is_none()) else {
        return Ok(());
    };
    let id = &model.id;
    let message = format!(
        "the price of `{id}` is not known, so the cap in dollars (budget.usd, {origin}) cannot be held"
    );
    Err(Failure::usage(message)
        .hint("to run without that cap, say --budget-usd none (--budget-tokens still holds)")
        .hint("a model of your own costs nothing by the token: --price 0 (or --price IN,OUT)")
        .hint(format!(
            "or state the price in your configuration: [models.\"{id}\"] prices = [{{ input = 3, output = 15 \
                }}]"
        ))
        .hint("prices are dollars per million tokens; `convoke config show` says which files are read"))
}
