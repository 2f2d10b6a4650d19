//! What is done next: a pure function of the request. All state is read again from the history, so that a
//! repeated request gets the same reply and a resumed run goes on where it was.

use serde_json::{Value, json};

use super::again::Whole;
use super::given;
use super::intent::{Intent, Topic, Wanted, classify};
use super::module::Module;
use super::probes::{Probe, Quote, View};
use super::read::{Exchange, Seen};
use super::report;
use super::team;
use convoke_sim::Context;
use convoke_sim::{Brain, Scripted};

/// The built-in offline model as a brain of the simulator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offline;

impl Brain for Offline {
    fn reply(&self, request: &Value, _context: &Context) -> Scripted {
        let Answer { content, stop_reason, stop_details } = answer(request);
        Scripted { content, stop_reason: stop_reason.to_owned(), stop_details, ..Scripted::default() }
    }
}

/// One reply of the offline model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    /// The content blocks; none in a refusal.
    pub(super) content: Vec<Value>,
    /// `tool_use`, `end_turn` or `refusal`.
    pub(super) stop_reason: &'static str,
    /// Why it refused.
    pub(super) stop_details: Option<Value>,
}

/// The reply to a Messages API request, in the part that its declared tools say it plays.
pub(super) fn answer(request: &Value) -> Answer {
    let whole = Whole::of(request);
    let request = &whole.request;
    let answer = whole
        .again()
        .or_else(|| given::answer(request))
        .or_else(|| team::answer(request))
        .unwrap_or_else(|| alone(request));
    whole.renumbered(team::finish(request, answer))
}

/// What it replies when it works alone: commands to look with, the report, or a refusal. When the last reply
/// is asked for, it gives what is known instead of a refusal.
fn alone(request: &Value) -> Answer {
    let exchange = Exchange::of(request);
    if let Some(module) = Module::of(&exchange.task).filter(|_| declares_bash(request)) {
        return module.answer(&exchange);
    }
    match (explore(request, &exchange), &exchange.last_reply) {
        (Ok(answer), _) => answer,
        (Err(why), Some(note)) => text(&team::hand_back(&exchange, note, Some(&why), &[])),
        (Err(why), None) => refusal(&why),
    }
}

/// The next reply, or why there is none.
fn explore(request: &Value, exchange: &Exchange) -> Result<Answer, String> {
    let wanted = match classify(&team::without_delegation(&team::without_workflow(&exchange.task))) {
        Intent::Explore(wanted) => wanted,
        Intent::Cannot { part } => return Err(cannot(&part)),
        Intent::Unknown { part } => return Err(unknown(&part)),
    };
    if !declares_bash(request) {
        return Err(
            "The offline model looks at a directory with the bash tool, and this request declares no tool \
             of that name: declare it, or set ANTHROPIC_API_KEY to let Claude do this."
                .to_owned(),
        );
    }
    if let Some(why) = nothing_readable(exchange, &wanted) {
        return Err(why);
    }
    let turn = if exchange.handing_back { None } else { next_turn(exchange, &wanted) };
    if let Some(turn) = turn {
        return Ok(calls(&turn, &wanted.view(), exchange.calls_so_far));
    }
    match (&exchange.last_reply, exchange.seen(&Probe::Inventory)) {
        (None, _) => {
            nothing_seen(exchange, &wanted).map_or_else(|| Ok(text(&report::write(exchange, &wanted))), Err)
        }
        (Some(_), Seen::Facts(_)) => Ok(text(&report::write(exchange, &wanted))),
        (Some(note), Seen::Nothing | Seen::Failed) => {
            let asks: Vec<&str> = wanted.asks.iter().map(Topic::name).collect();
            Ok(text(&team::hand_back(exchange, note, None, &asks)))
        }
    }
}

/// A turn: what is said and what is run side by side.
struct Turn {
    say: &'static str,
    probes: Vec<Probe>,
}

/// The turn at this position, or none when everything has been looked at.
fn next_turn(exchange: &Exchange, wanted: &Wanted) -> Option<Turn> {
    let Some(position) = exchange.replies.checked_sub(1) else {
        let say = "Counting the files and lines here, by language.";
        return Some(Turn { say, probes: vec![Probe::Inventory] });
    };
    let mut turns = turns(exchange, wanted);
    if position < turns.len() {
        return Some(turns.swap_remove(position));
    }
    let quotes = quotes(exchange);
    let reread = position == turns.len() && !quotes.is_empty();
    reread.then(|| Turn {
        say: "Reading the lines again that I am going to quote.",
        probes: vec![Probe::Reread(quotes)],
    })
}

/// The turns after the first. What the first one did not find is not looked into.
fn turns(exchange: &Exchange, wanted: &Wanted) -> Vec<Turn> {
    let inventory = exchange.seen(&Probe::Inventory);
    let (files, sources) = match &inventory {
        Seen::Facts(facts) => (facts.files(), facts.sources()),
        Seen::Nothing | Seen::Failed => (1, 1),
    };
    let mut turns = Vec::new();
    let mut put = |say, candidates: Vec<(Probe, bool)>| {
        let probes: Vec<Probe> =
            candidates.into_iter().filter(|(_, wanted)| *wanted).map(|(probe, _)| probe).collect();
        if !probes.is_empty() {
            turns.push(Turn { say, probes });
        }
    };
    let source = |ask: &Topic| sources > 0 && wanted.asks.contains(ask);
    let any = |ask: &Topic| files > 0 && wanted.asks.contains(ask);
    put(
        "Looking for the largest files and the longest functions.",
        vec![
            (Probe::LargestFiles, any(&Topic::LargestFiles)),
            (Probe::LongFunctions, source(&Topic::LongFunctions)),
        ],
    );
    put(
        "Looking for TODO comments and for errors that nobody handles.",
        vec![(Probe::Todos, source(&Topic::Todos)), (Probe::Errors, source(&Topic::Errors))],
    );
    put("Looking for source files that no test mentions.", vec![(Probe::Tests, source(&Topic::Tests))]);
    put("Looking for what names a testing framework.", vec![(Probe::Framework, any(&Topic::Framework))]);
    put("Looking at what the source files define.", vec![(Probe::Outline, source(&Topic::Outline))]);
    for ask in &wanted.asks {
        if let Topic::Find(term) = ask {
            put("Searching.", vec![(Probe::Find(term.clone()), files > 0)]);
        }
    }
    put("Listing the files.", vec![(Probe::List, any(&Topic::List))]);
    turns
}

/// The lines that the report is going to quote, in its order.
fn quotes(exchange: &Exchange) -> Vec<Quote> {
    exchange.quoted().map(|item| Quote { path: item.path.clone(), line: item.first }).collect()
}

fn declares_bash(request: &Value) -> bool {
    request["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == "bash"))
}

fn calls(turn: &Turn, view: &View, calls_so_far: usize) -> Answer {
    let commands = turn.probes.iter().map(|probe| ("bash", json!({"command": probe.command(view)})));
    call_tools(turn.say, commands.collect(), calls_so_far)
}

/// A reply that calls tools by name, with ids that do not repeat in the conversation.
pub(super) fn call_tools(say: &str, calls: Vec<(&str, Value)>, calls_so_far: usize) -> Answer {
    // A text of no words is no block.
    let mut content: Vec<Value> = Some(say)
        .filter(|say| !say.is_empty())
        .map(|say| json!({"type": "text", "text": say}))
        .into_iter()
        .collect();
    for (index, (name, input)) in calls.into_iter().enumerate() {
        let id = format!("toolu_offline_{}", calls_so_far + index + 1);
        content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
    }
    Answer { content, stop_reason: "tool_use", stop_details: None }
}

pub(super) fn text(text: &str) -> Answer {
    Answer {
        content: vec![json!({"type": "text", "text": text})],
        stop_reason: "end_turn",
        stop_details: None,
    }
}

fn refusal(explanation: &str) -> Answer {
    let details = json!({"type": "refusal", "category": null, "explanation": explanation});
    Answer { content: Vec::new(), stop_reason: "refusal", stop_details: Some(details) }
}

/// What is to be said when there is something here and nothing of it may be read.
fn nothing_readable(exchange: &Exchange, wanted: &Wanted) -> Option<String> {
    let Seen::Facts(facts) = exchange.seen(&Probe::Inventory) else { return None };
    let unread = report::unread(facts)?;
    let contents = |ask: &Topic| !matches!(ask, Topic::Count | Topic::List);
    if facts.readable() > 0 || !wanted.asks.iter().any(contents) {
        return None;
    }
    let names: Vec<&str> = facts.items.iter().map(|item| item.path.as_str()).collect();
    Some(format!(
        "The offline model could read nothing here: all it found is {unread} ({}). What they hold is not \
         known. Make them readable for the user who runs this, and ask again.",
        names.join(", ")
    ))
}

/// Why there is nothing to report. A report of things that are not known would look like a finished one.
fn nothing_seen(exchange: &Exchange, wanted: &Wanted) -> Option<String> {
    let inventory = match exchange.seen(&Probe::Inventory) {
        Seen::Facts(facts) => Some(facts),
        Seen::Nothing | Seen::Failed => None,
    };
    let answered = |ask: &Topic| match (exchange.seen(&Probe::of(ask)), inventory) {
        (Seen::Facts(facts), _) => !ask.needs_source() || !facts.looked_into_nothing(),
        (Seen::Nothing, Some(facts)) => facts.files() == 0 || (ask.needs_source() && facts.sources() == 0),
        _ => false,
    };
    if wanted.asks.iter().any(answered) {
        return None;
    }
    let mut whys: Vec<String> = Vec::new();
    for (_, why) in exchange.failures() {
        let why = format!("\"{}\"", why.trim());
        if !whys.contains(&why) && whys.len() < 3 {
            whys.push(why);
        }
    }
    if exchange.handing_back {
        whys.push("the turns ended before it could look".to_owned());
    }
    if let Some(unread) = inventory.and_then(report::unread) {
        whys.push(format!("there is {unread}"));
    }
    Some(format!(
        "The offline model has nothing to report: none of the commands it needed for this brought a result. \
         What came instead: {}. Nothing it was asked about is known. Mend that and ask again; `convoke \
         doctor` checks the shell.",
        whys.join("; ")
    ))
}

const ONLY: &str = "only explores and reports: counts of files and lines, large files, long functions, TODO \
    comments, source files no test mentions, unhandled errors, which testing framework files name, what \
    source files define, where a text occurs.";

fn cannot(part: &str) -> String {
    format!(
        "The offline model {ONLY} It cannot do this part: \"{part}\". Ask for a review alone, or set \
         ANTHROPIC_API_KEY to let Claude do this."
    )
}

fn unknown(part: &str) -> String {
    format!(
        "The offline model did not understand \"{part}\"; it {ONLY} Ask for a review alone, or set \
         ANTHROPIC_API_KEY to let Claude do this."
    )
}
