//! What an agent's driver has done outside: room for a request, the request itself, and what its children
//! come to.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use convoke_claude::{Live, Model, Request};
use convoke_kernel::{
    AgentId, AgentSpec, Amount, Effect, Failure, FailureKind, ModelRequest, NOBODY_TO_ASK, Rates, Reply,
    Retry, RoomAsk, TeamCall, ToolRequest, ToolResult, Usage,
};
use tokio_util::sync::CancellationToken;

use crate::asker::{AskedCall, Question};
use crate::children::{self, Parent};
use crate::error::Error;
use crate::governor::{Fate, Permit};
use crate::notice::{self, Notice};
use crate::program::{self, Driven};
use crate::room::{self, Granted};
use crate::runtime::Config;
use crate::session::Session;
use crate::session_ledger::Doing;
use crate::stop::{Stop, StopLevel};
use crate::team::{self, Act};

/// What a task came to.
pub(crate) enum Done {
    Room {
        call: u32,
        attempt: u32,
        granted: Granted,
    },
    Model {
        call: u32,
        attempt: u32,
        result: Box<Result<Reply, Failure>>,
    },
    Tool {
        id: String,
        result: ToolResult,
    },
    /// `None` when a stop came before there was an answer.
    Answered {
        id: String,
        allow: Option<bool>,
        by: String,
    },
    Child {
        id: String,
        result: Result<Option<ToolResult>, Error>,
    },
    Run {
        driven: Result<Driven, Error>,
    },
    Acted {
        id: String,
        act: Result<Act, Error>,
    },
}

/// Tells running effects apart, so that each is performed once per life of the process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Room(u32, u32),
    Model(u32, u32),
    Tool(String),
    Person(String),
    Run(String),
}

impl Key {
    pub(crate) fn of(effect: &Effect) -> Self {
        match effect {
            Effect::AskRoom { call, attempt, .. } => Key::Room(*call, *attempt),
            Effect::CallModel { call, attempt } => Key::Model(*call, *attempt),
            Effect::RunTool { id, .. } => Key::Tool(id.clone()),
            Effect::AskPerson { id, .. } => Key::Person(id.clone()),
            Effect::DriveRun { run } => Key::Run(run.clone()),
        }
    }
}

/// What an agent does with these effects pending, as far as money goes. A request on its way was granted its
/// room. An agent that waits for its children needs no money and frees none.
pub(crate) fn doing(pending: &[Effect]) -> Option<Doing> {
    // Waiting for a person counts like waiting for other agents.
    let by_others = |effect: &Effect| match effect {
        Effect::RunTool { request, .. } => !request.is_own_work(),
        Effect::AskPerson { .. } | Effect::DriveRun { .. } => true,
        Effect::AskRoom { .. } | Effect::CallModel { .. } => false,
    };
    match pending {
        // Runs in the background may stand behind it.
        [Effect::CallModel { .. }, ..] => None,
        [_, ..] if pending.iter().all(by_others) => Some(Doing::Resting),
        _ => Some(Doing::Working),
    }
}

pub(crate) async fn room(
    config: Arc<Config>,
    session: Arc<Session>,
    agent: AgentId,
    spec: AgentSpec,
    ask: RoomAsk,
    not_before: u64,
) -> Done {
    let call = ask.call;
    let attempt = ask.attempt;
    let granted = room::wait(&config, &session, agent.as_str(), &spec, ask, not_before).await;
    Done::Room { call, attempt, granted }
}

/// Sends a request, tells what comes of it while it comes, and tells the governor how it went.
pub(crate) async fn call(
    config: Arc<Config>,
    session: Arc<Session>,
    agent: AgentId,
    request: ModelRequest,
    (call, attempt): (u32, u32),
    permit: Option<Permit>,
    cut: CancellationToken,
) -> Done {
    let model = config.models.get(&request.spec.model);
    let rates = request.spec.rates.clone();
    let live = |live: Live<'_>| {
        match (&live, &permit) {
            (Live::Began, Some(permit)) => permit.began(),
            (Live::Limits(limits), Some(permit)) => permit.limits(limits),
            (Live::Counted(usage), _) => {
                if let Some(nano) = price(&model, rates.as_ref(), usage) {
                    let prompt = Amount { tokens: usage.prompt_tokens(), nano };
                    session.ledger.counted(agent.as_str(), (call, attempt), prompt);
                }
            }
            _ => {}
        }
        if let Some(piece) = notice::piece(live) {
            session.tell(Notice::Live { agent: agent.clone(), piece });
        }
    };
    let mut result = tokio::select! {
        result = config.client.send(wire(request), live) => result,
        () = cut.cancelled() => Err(stopped()),
    };
    if let Ok(reply) = &mut result {
        reply.cost_nano = price(&model, rates.as_ref(), &reply.usage);
    }
    // Before the next one of the same make is let go: it must not be refused for the same.
    session.lessons.hear(&model, config.client.endpoint(), &result);
    let given_up = permit.and_then(|permit| permit.done(fate(&result)));
    if let (Some(given_up), Err(failure)) = (given_up, &mut result) {
        // Whether it was a limit or an overload stays as it was said.
        failure.retry = Retry::Never;
        failure.message.push_str(&format!("; {given_up}"));
    }
    Done::Model { call, attempt, result: Box::new(result) }
}

/// What a usage costs: by the table, unless the run began with another price that a person stated. That one
/// is in the agent itself, and in no table after a resume without the flag.
fn price(model: &Model, began: Option<&Rates>, usage: &Usage) -> Option<u64> {
    let now = convoke_claude::ceilings(model);
    let stated =
        began.filter(|began| !began.tiers.is_empty() && now.is_none_or(|now| now.tiers != began.tiers));
    match stated {
        Some(stated) => Some(stated.at_most(usage)),
        None => convoke_claude::cost(model, usage),
    }
}

/// Asks a person about a call; only `asker` can answer, never an agent.
pub(crate) async fn person(
    config: Arc<Config>,
    agent: AgentId,
    label: String,
    id: String,
    (wanted, why): (String, String),
    mut stop: Stop,
    cut: CancellationToken,
) -> Done {
    let Some(asker) = &config.asker else {
        return Done::Answered { id, allow: Some(false), by: format!("Convoke, because {NOBODY_TO_ASK}") };
    };
    let name = if label.is_empty() { "the lead" } else { label.as_str() };
    let what = format!("{name} wants to {}", wanted.replacen(": ", " ", 1));
    let details = vec![format!("Why this is asked: {why}")];
    let call = Some(AskedCall { agent, call: id.clone(), label, wanted, why });
    let allow = tokio::select! {
        allow = asker.agrees(Question { what, details, call }) => Some(allow),
        _ = stop.above(StopLevel::Run) => None,
        () = cut.cancelled() => None,
    };
    Done::Answered { id, allow, by: "the person".to_owned() }
}

/// Boxed, because a child is driven as its parent is.
pub(crate) fn child(
    parent: Parent,
    id: String,
    request: ToolRequest,
) -> Pin<Box<dyn Future<Output = Done> + Send>> {
    Box::pin(async move {
        let result = children::perform(&parent, &id, request).await;
        Done::Child { id, result }
    })
}

/// Boxed for the same reason.
pub(crate) fn run(parent: Parent, run: String) -> Pin<Box<dyn Future<Output = Done> + Send>> {
    Box::pin(async move { Done::Run { driven: program::drive(&parent, &run).await } })
}

/// What a call of the team's comes to, and what has to be committed with it.
pub(crate) async fn act(parent: Parent, id: String, order: u64, call: TeamCall) -> Done {
    let act = team::act(&parent, &id, order, &call).await;
    Done::Acted { id, act }
}

fn fate(result: &Result<Reply, Failure>) -> Fate {
    let Err(failure) = result else { return Fate::Replied };
    let retry_after_ms = match failure.retry {
        Retry::After(ms) => Some(ms),
        Retry::Soon | Retry::Never => None,
    };
    match failure.kind {
        FailureKind::RateLimited if failure.retry != Retry::Never => Fate::Limited { retry_after_ms },
        FailureKind::Api if failure.retry != Retry::Never => Fate::Overloaded { retry_after_ms },
        _ => Fate::OtherFailure,
    }
}

fn wire(request: ModelRequest) -> Request {
    let wired = Request {
        model: request.spec.model.clone(),
        max_tokens: request.max_tokens,
        system: Some(request.system),
        tools: Some(request.spec.tools.clone()),
        params: request.params.into_iter().map(|param| (param.name, param.value)).collect(),
        messages: request.messages,
        version: request.version,
    };
    // An agent that was given no tools has none to declare.
    Request { tools: wired.tools.filter(|tools| tools.as_str() != "[]"), ..wired }
}

fn stopped() -> Failure {
    Failure {
        kind: FailureKind::Interrupted,
        message: "a person stopped Convoke while the model was answering".to_owned(),
        retry: Retry::Soon,
        request_id: None,
        unbilled: false,
        refused: None,
    }
}
