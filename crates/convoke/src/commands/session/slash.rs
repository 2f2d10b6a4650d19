//! What the commands of a session do. Those that look are the very commands of the command line, and what they print is shown.

use clap::Parser;
use convoke_kernel::Ledger;
use convoke_runtime::Retune;
use convoke_terminal::{Given, Told};

use super::conductor::Conductor;
use super::export;
use super::ready::Ready;
use crate::args::{BudgetArgs, Cli};
use crate::catalog::Catalog;
use crate::failure::{Exit, Failure};
use crate::render::{Look, clean, dollars, terminal_size, tokens};
use crate::settings::{Cap, Caps, ModelSource, caps_words};
use crate::stdio;

/// Columns that what a command prints is made for.
fn width() -> usize {
    terminal_size().0.saturating_sub(2)
}

/// Does what a command says.
pub(super) async fn run(conductor: &mut Conductor, given: &Given) -> Result<(), Failure> {
    let word = given.words.first().map(String::as_str);
    match given.name.as_str() {
        "mode" => mode(conductor, word).await,
        "model" => model(conductor, word).await,
        "effort" => effort(conductor, word).await,
        "team" => of_session(conductor, given, &["team", "list"]).await,
        "tasks" => of_session(conductor, given, &["tasks", "list"]).await,
        "inbox" => of_session(conductor, given, &["mail", "list", "lead"]).await,
        "cost" => of_session(conductor, given, &["cost"]).await,
        "diff" => of_session(conductor, given, &["runs", "diff"]).await,
        "undo" => undo(conductor, given).await,
        "runs" => show(conductor, given, &["runs", "list"]).await,
        "workflows" => workflows(conductor, given, word).await,
        "export" => export::export(conductor, word).await,
        "budget" => budget(conductor, &given.words).await,
        "compact" => compact(conductor, &given.rest).await,
        "unsay" => unsay(conductor).await,
        "new" => new(conductor).await,
        "resume" => resume(conductor, given, word).await,
        "fork" => fork(conductor, word).await,
        name => Err(Failure::usage(format!("/{name} does nothing here")).hint("/help lists the commands")),
    }
}

/// Runs a command of the command line, and gives what it printed and what came of it.
pub(super) async fn printed(conductor: &Conductor, words: &[&str]) -> Result<(String, Result<Exit, Failure>), Failure> {
    let line = std::iter::once("convoke").chain(words.iter().copied());
    let parsed = Cli::try_parse_from(line).map_err(|error| Failure::usage(error.to_string()))?;
    let (_, command) = parsed.split(false)?;
    let (done, text) = stdio::captured(width(), Box::pin(crate::dispatch(&conductor.settings, command))).await;
    Ok((text, done))
}

/// Runs a command of the command line and shows what it printed.
async fn show(conductor: &Conductor, given: &Given, words: &[&str]) -> Result<(), Failure> {
    let (mut text, done) = printed(conductor, words).await?;
    if let Err(failure) = done {
        text.push_str(&failure.render());
    }
    let text = if text.trim().is_empty() { "nothing to show".to_owned() } else { text };
    conductor.tell(Told::Text { title: format!("/{}", given.name), text });
    Ok(())
}

async fn of_session(conductor: &Conductor, given: &Given, words: &[&str]) -> Result<(), Failure> {
    let (_, session) = conductor.lead()?;
    let run: &[&str] = if matches!(words[0], "tasks" | "mail") { &["--run"] } else { &[] };
    let all: Vec<&str> = words.iter().chain(run).copied().chain([session.as_str()]).collect();
    show(conductor, given, &all).await
}

async fn mode(conductor: &mut Conductor, word: Option<&str>) -> Result<(), Failure> {
    let on = match word {
        Some("on") => true,
        Some("off") => false,
        Some(other) => return Err(Failure::usage(format!("/mode {other}: it is `on` or `off`"))),
        None => {
            let (is, other) = if conductor.ready.facts.mode { ("on", "off") } else { ("off", "on") };
            conductor.note(&format!("orchestration mode is {is}; /mode {other} switches it"));
            return Ok(());
        }
    };
    match conductor.ready.lead().cloned() {
        Some(lead) => {
            let key = conductor.key("mode");
            conductor.ready.runtime().set_mode(&lead, &key, on).await?;
        }
        None => {
            conductor.settings.fan_out.mode = on;
            if let Some(fan_out) = conductor.ready.start.as_mut().and_then(|start| start.fan_out.as_mut()) {
                fan_out.mode = on;
            }
        }
    }
    conductor.ready.facts.mode = on;
    facts(conductor);
    if conductor.ready.lead().is_some() {
        conductor.note(&format!("/mode {}: from your next message on", if on { "on" } else { "off" }));
        return Ok(());
    }
    let meaning = if on {
        "on: work may be fanned out where it is worth it"
    } else {
        "off: the lead works alone unless you ask for more"
    };
    conductor.note(&format!("orchestration mode {meaning}"));
    Ok(())
}

async fn model(conductor: &mut Conductor, word: Option<&str>) -> Result<(), Failure> {
    let Some(name) = word else {
        let names: Vec<String> = conductor.settings.models.iter().map(|model| model.id.clone()).collect();
        let text =
            format!("the lead is {}\nknown: {}\n/model NAME changes it", conductor.ready.facts.model, names.join(", "));
        conductor.tell(Told::Text { title: "/model".into(), text });
        return Ok(());
    };
    let mut settings = conductor.settings.clone();
    settings.model = name.to_owned();
    if settings.effort.is_some() && settings.capabilities().is_err() {
        // Models differ in the efforts they take; without one this may be one that can be asked.
        settings.effort = None;
    }
    tune(conductor, settings, "another model reads the conversation anew: nothing of it is cached there").await
}

async fn effort(conductor: &mut Conductor, word: Option<&str>) -> Result<(), Failure> {
    let Some(level) = word else {
        let now = conductor.ready.facts.effort.as_deref().unwrap_or("not set");
        let text = format!("effort {now}\n/effort low|medium|high|xhigh|max changes it, as far as the model has it");
        conductor.tell(Told::Text { title: "/effort".into(), text });
        return Ok(());
    };
    let mut settings = conductor.settings.clone();
    settings.effort = Some(level.to_owned()).filter(|level| level != "default");
    tune(conductor, settings, "").await
}

/// Has the lead go on as these settings say.
async fn tune(conductor: &mut Conductor, settings: crate::settings::Settings, remark: &str) -> Result<(), Failure> {
    if matches!(conductor.ready.source, ModelSource::Offline) {
        return Err(Failure::usage("the offline model answers here, and there is only one of it")
            .hint("set ANTHROPIC_API_KEY and begin a session without --offline"));
    }
    let (row, capabilities) = (settings.model_row(), settings.capabilities()?);
    settings.check_prices(&[&row.id])?;
    match conductor.ready.lead().cloned() {
        Some(lead) => {
            let (key, retune) =
                (conductor.key("retune"), Retune { model: row.id.clone(), capabilities: capabilities.clone() });
            conductor.ready.runtime().retune(&lead, &key, retune).await?;
        }
        None => {
            let Some(start) = conductor.ready.start.as_mut() else { return Ok(()) };
            (start.model, start.capabilities) = (row.id.clone(), capabilities.clone());
        }
    }
    conductor.settings = settings;
    (conductor.ready.facts.model, conductor.ready.facts.effort) = (row.id, capabilities.effort);
    facts(conductor);
    let now = &conductor.ready.facts;
    let effort = now.effort.as_ref().map(|effort| format!(", effort {effort}")).unwrap_or_default();
    let remark =
        if remark.is_empty() || conductor.ready.lead().is_none() { String::new() } else { format!("; {remark}") };
    conductor.note(&format!("from your next message on: {}{effort}{remark}", now.model));
    Ok(())
}

fn facts(conductor: &Conductor) {
    conductor.tell(Told::Facts(Box::new(conductor.ready.facts.clone())));
}

async fn undo(conductor: &Conductor, given: &Given) -> Result<(), Failure> {
    if conductor.is_driving() {
        return Err(Failure::usage("work is under way; nothing was taken back").hint("stop it first: Esc"));
    }
    of_session(conductor, given, &["runs", "undo"]).await
}

async fn workflows(conductor: &mut Conductor, given: &Given, word: Option<&str>) -> Result<(), Failure> {
    match word {
        None => show(conductor, given, &["workflow", "list"]).await,
        Some(name) => {
            let args = given.words[1..].join(" ");
            let with = if args.is_empty() { String::new() } else { format!(" with these arguments: {args}") };
            conductor.say(&format!("Run the workflow {name}{with}.")).await
        }
    }
}

async fn budget(conductor: &mut Conductor, words: &[String]) -> Result<(), Failure> {
    let bad =
        |why: String| Failure::usage(why).hint("for example: /budget usd 5, /budget tokens 2000000, /budget usd none");
    let mut args = BudgetArgs::default();
    for pair in words.chunks(2) {
        let [unit, amount] = pair else { return Err(bad(format!("/budget {}: how much?", pair.join(" ")))) };
        let (place, cap) = match unit.as_str() {
            "usd" => (&mut args.budget_usd, Cap::dollars(amount)),
            "tokens" => (&mut args.budget_tokens, Cap::tokens(amount)),
            "agents" => (&mut args.budget_agents, Cap::agents(amount)),
            "minutes" => (&mut args.budget_minutes, Cap::minutes(amount)),
            other => return Err(bad(format!("/budget {other}: it is usd, tokens, agents or minutes"))),
        };
        *place = Some(cap.map_err(|why| bad(format!("/budget {unit} {amount}: {why}")))?);
    }
    let before = match conductor.session() {
        Some(session) => conductor.ready.runtime().ledger(&session).await?.caps(),
        None => conductor.settings.caps,
    };
    if words.is_empty() {
        return spent(conductor, before).await;
    }
    let granted = args.grant(before);
    if granted == before {
        conductor.note(&format!("granted in all: {}", caps_words(&before)));
        return Ok(());
    }
    if granted.nano.is_some() {
        conductor.settings.check_prices(&[&conductor.ready.facts.model])?;
    }
    match conductor.session() {
        Some(session) => {
            conductor.ready.runtime().grant(&session, granted, "session").await?;
            conductor.pass_on().await?;
        }
        None => {
            conductor.settings.caps = granted;
            conductor.ready.facts.cap_nano = granted.nano;
            facts(conductor);
            if let Some(start) = conductor.ready.start.as_mut() {
                start.caps = granted;
            }
        }
    }
    conductor.note(&format!("granted in all: {} (before: {})", caps_words(&granted), caps_words(&before)));
    Ok(())
}

/// Every cap, and what is used of it.
async fn spent(conductor: &Conductor, caps: Caps) -> Result<(), Failure> {
    let ledger = match conductor.session() {
        Some(session) => conductor.ready.runtime().ledger(&session).await?,
        None => Ledger::default(),
    };
    let of = |used: String, cap: Option<String>| match cap {
        Some(cap) => format!("{used} of {cap}"),
        None => format!("{used}, no cap"),
    };
    let held = ledger.held();
    let minutes = |ms: u64| format!("{:.1}", ms as f64 / 60_000.0);
    let used = ledger.ms_used(conductor.ready.opened.clock.now());
    let rows = [
        ("usd", of(dollars(Some(ledger.confirmed().nano)), caps.nano.map(|nano| dollars(Some(nano))))),
        ("tokens", of(tokens(ledger.confirmed().tokens), caps.tokens.map(tokens))),
        ("agents", of(ledger.agents().to_string(), caps.agents.map(|agents| agents.to_string()))),
        ("minutes", of(minutes(used), caps.ms.map(minutes))),
    ];
    let mut text: String = rows.iter().map(|(unit, row)| format!("{unit:<8} {row}\n")).collect();
    let unconfirmed = ledger.unconfirmed().nano;
    if unconfirmed > 0 {
        let most = dollars(Some(unconfirmed));
        text.push_str(&format!(
            "and up to {most} unconfirmed: requests that were cut off, at the most they can have cost\n"
        ));
    }
    if held.nano > 0 {
        text.push_str(&format!("held for requests under way: {}\n", dollars(Some(held.nano))));
    }
    text.push_str("/budget usd 20 grants a new total");
    conductor.tell(Told::Text { title: "/budget".into(), text });
    Ok(())
}

async fn compact(conductor: &mut Conductor, focus: &str) -> Result<(), Failure> {
    let (lead, _) = conductor.lead()?;
    let key = conductor.key("compact");
    conductor.ready.runtime().compact(&lead, &key, focus.trim()).await?;
    conductor.note("a new history begins before the next request: a summary and what lasts go along, the old one stays in the journal");
    Ok(())
}

/// Takes back what waits for the lead.
async fn unsay(conductor: &mut Conductor) -> Result<(), Failure> {
    at_rest(conductor)?;
    let (lead, _) = conductor.lead()?;
    let taken = conductor.ready.runtime().unsay(&lead).await?;
    if taken.is_empty() {
        conductor.note("nothing waits");
    }
    conductor.tell(Told::Waits(Vec::new()));
    // What was left unfinished can still go on; if nothing was, nothing waits any more.
    let catalog = Catalog::load(&conductor.settings, Some(&conductor.journal)).await?;
    conductor.ready.facts.can_go_on = catalog.find(lead.as_str())?.lead().summary.can_go_on;
    facts(conductor);
    conductor.pass_on().await
}

/// Nothing of another session may begin while somebody works in this one.
fn at_rest(conductor: &Conductor) -> Result<(), Failure> {
    if conductor.is_driving() {
        return Err(
            Failure::usage("work is under way here").hint("stop it first: Esc; what is stopped can go on later")
        );
    }
    Ok(())
}

async fn new(conductor: &mut Conductor) -> Result<(), Failure> {
    at_rest(conductor)?;
    let source = conductor.ready.source.clone();
    let made = {
        let Conductor { settings, journal, front, .. } = &*conductor;
        // While the screen draws nobody can be asked on the terminal, and nothing may be printed there.
        let made = async { Ready::anew(settings, Look::of(settings), &source, journal, front).await };
        stdio::captured(width(), Box::pin(made)).await
    };
    enter(conductor, made).await
}

async fn resume(conductor: &mut Conductor, given: &Given, word: Option<&str>) -> Result<(), Failure> {
    match word {
        None if conductor.ready.facts.can_go_on => conductor.go_on().await,
        None => {
            show(conductor, given, &["runs", "list"]).await?;
            conductor.note("/resume ID takes one up");
            Ok(())
        }
        Some(id) => {
            at_rest(conductor)?;
            take_up(conductor, id).await
        }
    }
}

async fn take_up(conductor: &mut Conductor, id: &str) -> Result<(), Failure> {
    let made = {
        let Conductor { settings, journal, front, .. } = &*conductor;
        let made = async { Ready::again(settings, Look::of(settings), id, journal, front).await };
        stdio::captured(width(), Box::pin(made)).await
    };
    enter(conductor, made).await
}

/// Goes on in another session.
async fn enter(conductor: &mut Conductor, (made, said): (Result<Ready, Failure>, String)) -> Result<(), Failure> {
    conductor.ready = made?;
    conductor.begin().await;
    for line in said.lines().filter(|line| !line.trim().is_empty()) {
        conductor.note(&clean(line));
    }
    let what = match conductor.session() {
        Some(session) => format!("this is session {session}"),
        None => "a new session: what is to be done?".to_owned(),
    };
    conductor.note(&what);
    Ok(())
}

/// Begins a session with the history of another one, this one unless one is named.
pub(super) async fn fork(conductor: &mut Conductor, word: Option<&str>) -> Result<(), Failure> {
    at_rest(conductor)?;
    if let Some(id) = word {
        take_up(conductor, id).await?;
    }
    let (lead, session) = conductor.lead()?;
    let caps = conductor.settings.caps;
    let (_, fork) = conductor.ready.runtime().fork(&lead, None, caps).await?;
    take_up(conductor, fork.as_str()).await?;
    conductor.note(&format!("forked from {session}, which stays as it is; the same conversation, a budget of its own"));
    Ok(())
}
