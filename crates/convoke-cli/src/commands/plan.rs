//! `convoke plan`: what a plain task is likely to cost, without a request. And the one line that says so at a
//! terminal before the first paid request of a directory.

use convoke_journal::Journal;
use serde_json::{Value, json};

use super::table::{Column, Table};
use crate::args::{OutputFormat, PlanArgs};
use crate::catalog::{self, Catalog, ListedSession};
use crate::estimate::{Asked, Estimate, Part, estimate};
use crate::failure::{Exit, Failure};
use crate::keeping::Checkout;
use crate::render::{clean, dollars, hanging};
use crate::settings::{ModelSource, Settings, caps_words};
use crate::stdio;

/// What a line may take where no terminal says how wide it is.
const WIDE: usize = 120;

/// Says what a task is likely to cost.
pub(crate) async fn run(settings: &Settings, args: &PlanArgs) -> Result<Exit, Failure> {
    let journal = catalog::open_existing(settings).await?;
    let catalog = Catalog::load(settings, journal.as_ref()).await?;
    let told = of(settings, &catalog.sessions);
    match settings.output {
        OutputFormat::Text => {
            stdio::put(&text(settings, &told, stdio::width()))?;
        }
        OutputFormat::Json => {
            stdio::put_json(&format!("{:#}\n", object(settings, &told)))?;
        }
        OutputFormat::Jsonl => return Err(super::no_jsonl("plan")),
    }
    if let [word] = args.task.as_slice()
        && !word.contains(char::is_whitespace)
    {
        let word = clean(word);
        stdio::tell(&format!("a workflow of that name is planned by `convoke workflow plan {word}`\n"));
    }
    stdio::tell("nothing was sent; `convoke run TASK` does it\n");
    Ok(Exit::Done)
}

/// The line for a terminal before the first paid request of this directory; `None` if nothing is paid for, or
/// something was before.
pub(crate) async fn first_time(
    settings: &Settings,
    source: &ModelSource,
    journal: &Journal,
) -> Result<Option<String>, Failure> {
    let (sessions, is_first) = past(settings, source, Some(journal)).await?;
    let told = of(settings, &sessions);
    let expects = format!("{} ({})", bracket(told.nano), basis(&told));
    Ok(is_first.then(|| notice(settings, &settings.model_row().id, &expects, "convoke plan")))
}

/// The sessions of the journal, and whether the next one is the first of this directory that is paid for.
pub(crate) async fn past(
    settings: &Settings,
    source: &ModelSource,
    journal: Option<&Journal>,
) -> Result<(Vec<ListedSession>, bool), Failure> {
    if !matches!(source, ModelSource::Api { .. }) {
        return Ok((Vec::new(), false));
    }
    let catalog = Catalog::load(settings, journal).await?;
    let paid = |listed: &&ListedSession| listed.lead().summary.model != convoke_claude::OFFLINE_MODEL;
    let was_paid = catalog
        .sessions
        .iter()
        .filter(paid)
        .any(|listed| Checkout::of_listed(settings, listed) == settings.dir);
    Ok((catalog.sessions, !was_paid))
}

/// What is said before the first paid request of a directory.
pub(crate) fn notice(settings: &Settings, models: &str, expects: &str, command: &str) -> String {
    let caps = caps_words(&settings.caps);
    format!(
        "the first paid request in this directory: {models}, at most {caps}; the plan expects {expects}, \
            `{command}` says more"
    )
}

fn of(settings: &Settings, sessions: &[ListedSession]) -> Estimate {
    let lead = settings.model_row();
    let worker = settings.models.get(&settings.fan_out.worker.model);
    let fan_out = &settings.fan_out;
    let asked = Asked {
        lead: &lead,
        worker: &worker,
        voters: fan_out.voters,
        fans_out: fan_out.mode || fan_out.consent,
        cap_nano: settings.caps.nano,
    };
    estimate(&asked, sessions)
}

fn bracket(nano: Option<(u64, u64)>) -> String {
    match nano {
        None => "an unknown price".to_owned(),
        Some((low, high)) if low == high => dollars(Some(low)),
        Some((low, high)) => format!("{} to {}", dollars(Some(low)), dollars(Some(high))),
    }
}

/// What the whole rests on, in a few words.
fn basis(told: &Estimate) -> String {
    let seen: Vec<&str> = told.parts.iter().filter(|part| part.is_seen()).map(|part| part.role).collect();
    match seen.len() {
        0 => "by a table of roles".to_owned(),
        all if all == told.parts.len() => "by what this journal has seen".to_owned(),
        _ => format!("{} by what this journal has seen, the rest by a table", seen.join(" and ")),
    }
}

fn rests_on(part: &Part) -> String {
    match (part.is_seen(), part.seen) {
        (true, seen) => format!("{seen} of this model in this journal"),
        (false, 0) => "the table: none of this model in this journal".to_owned(),
        (false, seen) => format!("the table: only {seen} of this model in this journal"),
    }
}

fn text(settings: &Settings, told: &Estimate, width: Option<usize>) -> String {
    let columns = vec![
        Column::kept("ROLE"),
        Column::kept("NUMBER").right(),
        Column::kept("EACH"),
        Column::cut("RESTS ON"),
    ];
    let mut table = Table::new(columns);
    for part in &told.parts {
        let (low, high) = part.number;
        let number = if low == high { low.to_string() } else { format!("{low}..{high}") };
        table.row(vec![part.role.to_owned(), number, bracket(part.each), rests_on(part)]);
    }
    let lines = [
        format!(
            "\nin all: {} with {}; the budget is {}",
            bracket(told.nano),
            settings.model_row().id,
            caps_words(&settings.caps)
        ),
        format!("the figures are {}: the middle half of what was seen, or few turns and many", basis(told)),
        "why: every agent has a context of its own and pays once for its instructions and for what it \
         reads, then reads them from the cache for a tenth; a fan-out costs its workers, and a verifier for \
         every result with findings (--verify off, --mode off or a smaller --worker-model cost less)"
            .to_owned(),
    ];
    let mut page = table.render(width);
    lines.iter().for_each(|line| page.push_str(&(hanging(line, width.unwrap_or(WIDE), "  ") + "\n")));
    page
}

fn object(settings: &Settings, told: &Estimate) -> Value {
    let both = |pair: Option<(u64, u64)>| pair.map(|(low, high)| json!({"low": low, "high": high}));
    let parts: Vec<Value> = told
        .parts
        .iter()
        .map(|part| {
            json!({
                "role": part.role,
                "number": {"low": part.number.0, "high": part.number.1},
                "each_nano": both(part.each),
                "seen": part.seen,
                "basis": if part.is_seen() { "journal" } else { "table" },
            })
        })
        .collect();
    json!({
        "schema_version": 1,
        "model": settings.model_row().id,
        "parts": parts,
        "nano": both(told.nano),
        "cap_nano": settings.caps.nano,
    })
}
