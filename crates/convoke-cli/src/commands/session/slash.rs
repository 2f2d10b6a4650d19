//! What the commands of a session do. Those that look are the very commands of the command line, and what
//! they print is shown.

use clap::Parser;
use convoke_kernel::Ledger;
use convoke_runtime::Retune;
use convoke_terminal::{Given, ScreenUpdate};

use super::export;
use super::ready::Ready;
use super::said;
use super::session_loop::SessionLoop;
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
pub(super) async fn run(session_loop: &mut SessionLoop, given: &Given) -> Result<(), Failure> {
    let word = given.words.first().map(String::as_str);
    match given.name.as_str() {
        "mode" => mode(session_loop, word).await,
        "model" => model(session_loop, word).await,
        "effort" => effort(session_loop, word).await,
        "team" => of_session(session_loop, given, &["team", "list"]).await,
        "tasks" => of_session(session_loop, given, &["tasks", "list"]).await,
        "inbox" => of_session(session_loop, given, &["mail", "list", "lead"]).await,
        "cost" => of_session(session_loop, given, &["cost"]).await,
        "diff" => of_session(session_loop, given, &["sessions", "diff"]).await,
        "undo" => undo(session_loop, given).await,
        "sessions" => show(session_loop, given, &["sessions", "list"]).await,
        "workflows" => workflows(session_loop, given, word).await,
        "export" => export::export(session_loop, word).await,
        "budget" => budget(session_loop, &given.words).await,
        "compact" => compact(session_loop, &given.rest).await,
        "unsay" => unsay(session_loop).await,
        "new" => new(session_loop).await,
        "resume" => resume(session_loop, given, word).await,
        "fork" => fork(session_loop, word).await,
        // The screen knows no other names than those of workflows.
        name => said::call(session_loop, name, &given.rest),
    }
}

/// Runs a command of the command line, and gives what it printed and what came of it.
pub(super) async fn printed(
    session_loop: &SessionLoop,
    words: &[&str],
) -> Result<(String, Result<Exit, Failure>), Failure> {
    let line = std::iter::once("convoke").chain(words.iter().copied());
    let parsed = Cli::try_parse_from(line).map_err(|error| Failure::usage(error.to_string()))?;
    let (_, command) = parsed.split(false)?;
    let (done, text) =
        stdio::captured(width(), Box::pin(crate::dispatch(&session_loop.settings, command))).await;
    Ok((text, done))
}

/// Runs a command of the command line and shows what it printed.
async fn show(session_loop: &SessionLoop, given: &Given, words: &[&str]) -> Result<(), Failure> {
    let (mut text, done) = printed(session_loop, words).await?;
    if let Err(failure) = done {
        text.push_str(&failure.render());
    }
    let text = if text.trim().is_empty() { "nothing to show".to_owned() } else { text };
    session_loop.tell(ScreenUpdate::Text { title: format!("/{}", given.name), text });
    Ok(())
}

async fn of_session(session_loop: &SessionLoop, given: &Given, words: &[&str]) -> Result<(), Failure> {
    let (_, session) = session_loop.lead()?;
    let run: &[&str] = if matches!(words[0], "tasks" | "mail") { &["--session"] } else { &[] };
    let all: Vec<&str> = words.iter().chain(run).copied().chain([session.as_str()]).collect();
    show(session_loop, given, &all).await
}

async fn mode(session_loop: &mut SessionLoop, word: Option<&str>) -> Result<(), Failure> {
    let on = match word {
        Some("on") => true,
        Some("off") => false,
        Some(other) => return Err(Failure::usage(format!("/mode {other}: it is `on` or `off`"))),
        None => {
            let (is, other) = if session_loop.ready.facts.mode { ("on", "off") } else { ("off", "on") };
            session_loop.note(&format!("orchestration mode is {is}; /mode {other} switches it"));
            return Ok(());
        }
    };
    match session_loop.ready.lead().cloned() {
        Some(lead) => {
            let key = session_loop.key("mode");
            session_loop.ready.runtime().set_mode(&lead, &key, on).await?;
        }
        None => {
            session_loop.settings.fan_out.mode = on;
            if let Some(fan_out) = session_loop.ready.start.as_mut().and_then(|start| start.fan_out.as_mut())
            {
                fan_out.mode = on;
            }
        }
    }
    session_loop.ready.facts.mode = on;
    facts(session_loop);
    if session_loop.ready.lead().is_some() {
        session_loop.note(&format!("/mode {}: from your next message on", if on { "on" } else { "off" }));
        return Ok(());
    }
    let meaning = if on {
        "on: work may be fanned out where it is worth it"
    } else {
        "off: the lead works alone unless you ask for more"
    };
    session_loop.note(&format!("orchestration mode {meaning}"));
    Ok(())
}

async fn model(session_loop: &mut SessionLoop, word: Option<&str>) -> Result<(), Failure> {
    let Some(name) = word else {
        let names: Vec<String> = session_loop.settings.models.iter().map(|model| model.id.clone()).collect();
        let text = format!(
            "the lead is {}\nknown: {}\n/model NAME changes it",
            session_loop.ready.facts.model,
            names.join(", ")
        );
        session_loop.tell(ScreenUpdate::Text { title: "/model".into(), text });
        return Ok(());
    };
    let mut settings = session_loop.settings.clone();
    settings.model = name.to_owned();
    if settings.effort.is_some() && settings.capabilities().is_err() {
        // Models differ in the efforts they take; without one this may be one that can be asked.
        settings.effort = None;
    }
    tune(session_loop, settings, "another model reads the conversation anew: nothing of it is cached there")
        .await
}

async fn effort(session_loop: &mut SessionLoop, word: Option<&str>) -> Result<(), Failure> {
    let Some(level) = word else {
        let now = session_loop.ready.facts.effort.as_deref().unwrap_or("not set");
        let text =
            format!("effort {now}\n/effort low|medium|high|xhigh|max changes it, as far as the model has it");
        session_loop.tell(ScreenUpdate::Text { title: "/effort".into(), text });
        return Ok(());
    };
    let mut settings = session_loop.settings.clone();
    settings.effort = Some(level.to_owned()).filter(|level| level != "default");
    tune(session_loop, settings, "").await
}

/// Has the lead go on as these settings say.
async fn tune(
    session_loop: &mut SessionLoop,
    settings: crate::settings::Settings,
    remark: &str,
) -> Result<(), Failure> {
    if matches!(session_loop.ready.source, ModelSource::Offline) {
        return Err(Failure::usage("the offline model answers here, and there is only one of it")
            .hint("set ANTHROPIC_API_KEY and begin a session without --offline"));
    }
    let row = settings.model_row();
    let capabilities = settings.capabilities()?;
    settings.check_prices(&[&row.id])?;
    match session_loop.ready.lead().cloned() {
        Some(lead) => {
            let key = session_loop.key("retune");
            let retune = Retune { model: row.id.clone(), capabilities: capabilities.clone() };
            session_loop.ready.runtime().retune(&lead, &key, retune).await?;
        }
        None => {
            let Some(start) = session_loop.ready.start.as_mut() else { return Ok(()) };
            (start.model, start.capabilities) = (row.id.clone(), capabilities.clone());
        }
    }
    session_loop.settings = settings;
    (session_loop.ready.facts.model, session_loop.ready.facts.effort) = (row.id, capabilities.effort);
    facts(session_loop);
    let now = &session_loop.ready.facts;
    let effort = now.effort.as_ref().map(|effort| format!(", effort {effort}")).unwrap_or_default();
    let remark = if remark.is_empty() || session_loop.ready.lead().is_none() {
        String::new()
    } else {
        format!("; {remark}")
    };
    session_loop.note(&format!("from your next message on: {}{effort}{remark}", now.model));
    Ok(())
}

fn facts(session_loop: &SessionLoop) {
    session_loop.tell(ScreenUpdate::Facts(Box::new(session_loop.ready.facts.clone())));
}

async fn undo(session_loop: &SessionLoop, given: &Given) -> Result<(), Failure> {
    if session_loop.is_driving() {
        return Err(Failure::usage("work is under way; nothing was taken back").hint("stop it first: Esc"));
    }
    of_session(session_loop, given, &["sessions", "undo"]).await
}

async fn workflows(session_loop: &mut SessionLoop, given: &Given, word: Option<&str>) -> Result<(), Failure> {
    match word {
        None => show(session_loop, given, &["workflow", "list"]).await,
        Some(name) => {
            let args = given.words[1..].join(" ");
            let with = if args.is_empty() { String::new() } else { format!(" with these arguments: {args}") };
            session_loop.say(&format!("Run the workflow {name}{with}.")).await
        }
    }
}

async fn budget(session_loop: &mut SessionLoop, words: &[String]) -> Result<(), Failure> {
    let bad = |why: String| {
        Failure::usage(why).hint("for example: /budget usd 5, /budget tokens 2000000, /budget usd none")
    };
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
    let before = match session_loop.session() {
        Some(session) => session_loop.ready.runtime().ledger(&session).await?.caps(),
        None => session_loop.settings.caps,
    };
    if words.is_empty() {
        return spent(session_loop, before).await;
    }
    let granted = args.grant(before);
    if granted == before {
        session_loop.note(&format!("granted in all: {}", caps_words(&before)));
        return Ok(());
    }
    if granted.nano.is_some() {
        session_loop.settings.check_prices(&[&session_loop.ready.facts.model])?;
    }
    match session_loop.session() {
        Some(session) => {
            session_loop.ready.runtime().grant(&session, granted, "session").await?;
            session_loop.pass_on().await?;
        }
        None => {
            session_loop.settings.caps = granted;
            session_loop.ready.facts.cap_nano = granted.nano;
            facts(session_loop);
            if let Some(start) = session_loop.ready.start.as_mut() {
                start.caps = granted;
            }
        }
    }
    session_loop.note(&format!("granted in all: {} (before: {})", caps_words(&granted), caps_words(&before)));
    Ok(())
}

/// Every cap, and what is used of it.
async fn spent(session_loop: &SessionLoop, caps: Caps) -> Result<(), Failure> {
    let ledger = match session_loop.session() {
        Some(session) => session_loop.ready.runtime().ledger(&session).await?,
        None => Ledger::default(),
    };
    let of = |used: String, cap: Option<String>| match cap {
        Some(cap) => format!("{used} of {cap}"),
        None => format!("{used}, no cap"),
    };
    let held = ledger.held();
    let minutes = |ms: u64| format!("{:.1}", ms as f64 / 60_000.0);
    let used = ledger.ms_used(session_loop.ready.opened.clock.now());
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
    session_loop.tell(ScreenUpdate::Text { title: "/budget".into(), text });
    Ok(())
}

async fn compact(session_loop: &mut SessionLoop, focus: &str) -> Result<(), Failure> {
    let (lead, _) = session_loop.lead()?;
    let key = session_loop.key("compact");
    session_loop.ready.runtime().compact(&lead, &key, focus.trim()).await?;
    session_loop.note(
        "a new history begins before the next request: a summary and what lasts go along, the old \
        one stays in the journal",
    );
    Ok(())
}

/// Takes back what waits for the lead.
async fn unsay(session_loop: &mut SessionLoop) -> Result<(), Failure> {
    at_rest(session_loop)?;
    let (lead, _) = session_loop.lead()?;
    let taken = session_loop.ready.runtime().unsay(&lead).await?;
    if taken.is_empty() {
        session_loop.note("nothing waits");
    }
    session_loop.tell(ScreenUpdate::Waits(Vec::new()));
    // What was left unfinished can still go on; if nothing was, nothing waits any more.
    let catalog = Catalog::load(&session_loop.settings, Some(&session_loop.journal)).await?;
    session_loop.ready.facts.can_go_on = catalog.find(lead.as_str())?.lead().summary.can_go_on;
    facts(session_loop);
    session_loop.pass_on().await
}

/// Nothing of another session may begin while work is under way in this one.
fn at_rest(session_loop: &SessionLoop) -> Result<(), Failure> {
    if session_loop.is_driving() {
        return Err(Failure::usage("work is under way here")
            .hint("stop it first: Esc; what is stopped can go on later"));
    }
    Ok(())
}

async fn new(session_loop: &mut SessionLoop) -> Result<(), Failure> {
    at_rest(session_loop)?;
    let source = session_loop.ready.source.clone();
    let made = {
        let SessionLoop { settings, journal, front, .. } = &*session_loop;
        // While the screen draws, no question can be asked on the terminal, and nothing may be printed there.
        let made = async { Ready::anew(settings, Look::of(settings), &source, journal, front).await };
        stdio::captured(width(), Box::pin(made)).await
    };
    enter(session_loop, made).await
}

async fn resume(session_loop: &mut SessionLoop, given: &Given, word: Option<&str>) -> Result<(), Failure> {
    match word {
        None if session_loop.ready.facts.can_go_on => session_loop.go_on().await,
        None => {
            show(session_loop, given, &["sessions", "list"]).await?;
            session_loop.note("/resume ID takes one up");
            Ok(())
        }
        Some(id) => {
            at_rest(session_loop)?;
            take_up(session_loop, id).await
        }
    }
}

async fn take_up(session_loop: &mut SessionLoop, id: &str) -> Result<(), Failure> {
    let made = {
        let SessionLoop { settings, journal, front, .. } = &*session_loop;
        let made = async { Ready::again(settings, Look::of(settings), id, journal, front).await };
        stdio::captured(width(), Box::pin(made)).await
    };
    enter(session_loop, made).await
}

/// Goes on in another session.
async fn enter(
    session_loop: &mut SessionLoop,
    (made, said): (Result<Ready, Failure>, String),
) -> Result<(), Failure> {
    session_loop.ready = made?;
    session_loop.begin().await;
    for line in said.lines().filter(|line| !line.trim().is_empty()) {
        session_loop.note(&clean(line));
    }
    let what = match session_loop.session() {
        Some(session) => format!("this is session {session}"),
        None => "a new session: what is to be done?".to_owned(),
    };
    session_loop.note(&what);
    Ok(())
}

/// Begins a session with the history of another one, this one unless one is named.
pub(super) async fn fork(session_loop: &mut SessionLoop, word: Option<&str>) -> Result<(), Failure> {
    at_rest(session_loop)?;
    if let Some(id) = word {
        take_up(session_loop, id).await?;
    }
    let (lead, session) = session_loop.lead()?;
    let caps = session_loop.settings.caps;
    let (_, fork) = session_loop.ready.runtime().fork(&lead, None, caps).await?;
    take_up(session_loop, fork.as_str()).await?;
    session_loop.note(&format!(
        "forked from {session}, which stays as it is; the same conversation, a budget of its own"
    ));
    Ok(())
}
