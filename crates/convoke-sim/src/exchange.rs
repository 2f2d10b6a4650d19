//! One request and its response: judged, written down, answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use convoke_claude::Model;
use futures_util::StreamExt as _;
use serde_json::Value;

use crate::accounts::{Progress, Prompt, Ticket, Tokenizer};
use crate::conversation::ConversationNames;
use crate::fault::FaultKind;
use crate::hash;
use crate::history::{Remembered, Sent};
use crate::message::Message;
use crate::received::{self, Received, Retention, Verdict};
use crate::responses;
use crate::rules::{self, Incoming, Rule};
use crate::server::Shared;
use crate::stream;

/// Numbers the responses of this process, so that every request id is different.
static RESPONSES: AtomicU64 = AtomicU64::new(0);

/// Answers a request; `None` breaks the connection.
pub(crate) async fn answer(request: Request, shared: Arc<Shared>) -> Option<Response> {
    let number = RESPONSES.fetch_add(1, Ordering::Relaxed).to_string();
    let request_id = format!("req_{}", hash::hex(&["request", &number], 24));
    match (request.method(), request.uri().path()) {
        (&Method::POST, "/v1/messages") => messages(request, &shared, &request_id).await,
        (&Method::GET, "/v1/models") => Some(responses::models(&shared.config.models, &request_id)),
        (_, "/v1/messages" | "/v1/models") => {
            Some(responses::error(405, "invalid_request_error", "Method Not Allowed", None, &request_id))
        }
        _ => Some(responses::error(404, "not_found_error", "Not found", None, &request_id)),
    }
}

async fn messages(request: Request, shared: &Arc<Shared>, request_id: &str) -> Option<Response> {
    let (parts, body) = request.into_parts();
    let (raw, length) = read(body, shared.config.max_body).await?;
    let arrived = Arrived::new(&parts.headers, raw, length, shared);
    if let Err(refusal) = arrived.check(shared) {
        let verdict = Verdict::Refused {
            rule: Some(refusal.rule),
            status: refusal.status,
            message: refusal.message.clone(),
        };
        shared.record(arrived.received(verdict, shared), |_| {});
        return Some(match refusal.rule {
            Rule::BodyTooLarge => responses::too_large(request_id),
            _ => responses::error(refusal.status, refusal.error_type, &refusal.message, None, request_id),
        });
    }
    let scripted = shared.config.brain.reply(&arrived.body, &arrived.place.context);
    if let Some(problem) = scripted.problem {
        let verdict = Verdict::Refused { rule: None, status: 400, message: problem.clone() };
        shared.record(arrived.received(verdict, shared), |_| {});
        return Some(responses::error(400, "invalid_request_error", &problem, None, request_id));
    }
    let prompt = arrived.prompt(shared);
    let mut ticket = match Ticket::admit(shared, &prompt, arrived.arrived_at) {
        Ok(ticket) => ticket,
        Err(refused) => {
            let received = arrived.received(Verdict::Accepted, shared);
            shared.record(Received { limited: Some(refused.limit), ..received }, |_| {});
            return Some(responses::limited(refused, request_id));
        }
    };
    let delay = scripted.delay;
    let message = Message::new(scripted, &arrived.body, &arrived.place.context, ticket.usage());
    let sent = Sent::read(&arrived.raw);
    let context = arrived.place.context.clone();
    let prefix_break =
        sent.as_ref().and_then(|sent| shared.lock(&shared.histories).check(&context.conversation, sent));
    let fault = shared.take_fault(&arrived.place);
    let holds = shared.take_holds(&arrived.place);
    let streamed = arrived.body["stream"] == true;
    let model = arrived.model(shared).id;
    let prefix_tokens = match shared.config.keep {
        Retention::Everything => prompt.blocks.iter().map(|block| block.tokens).collect(),
        Retention::Summaries => Arc::default(),
    };
    let received = arrived.received(Verdict::Accepted, shared);
    let failure = fault.as_ref().and_then(|fault| responses::fault(fault, request_id));
    let received = Received { fault: fault.clone(), prefix_break, prefix_tokens, ..received };
    shared.record(received, |index| match &failure {
        Some(_) => ticket.fail(index),
        None => ticket.serve(index, &context, model),
    });

    shared.config.clock.pass(delay).await;
    // Without a stream there is no middle to fail in: the response is there or it is not.
    let lost = fault == Some(FaultKind::CutBeforeHeaders)
        || (!streamed && fault.as_ref().is_some_and(|fault| !fault.reply_arrives()));
    if failure.is_some() || lost || !streamed {
        for hold in &holds {
            hold.pass().await;
        }
    }
    if failure.is_some() {
        return failure;
    }
    let generated = Progress::Generated(message.usage.output_tokens);
    if lost {
        ticket.note(generated);
        return None;
    }
    let rates = std::mem::take(&mut ticket.headers);
    let mut watch = {
        let shared = Arc::clone(shared);
        let mut remembered = sent.and_then(|sent| Remembered::new(sent, &message));
        move |progress| {
            ticket.note(progress);
            if let Some(remembered) = remembered.take_if(|_| progress == Progress::Completed) {
                shared.lock(&shared.histories).remember(context.conversation.clone(), remembered);
            }
        }
    };
    if !streamed {
        [Progress::Began, generated, Progress::Completed].into_iter().for_each(&mut watch);
        return Some(responses::served("application/json", request_id, message.whole().to_string(), rates));
    }
    let body = stream::body(
        stream::steps(&message.events(), fault.as_ref(), &holds),
        shared.config.clock.clone(),
        watch,
    );
    let mut response = responses::served("text/event-stream; charset=utf-8", request_id, body, rates);
    response.headers_mut().insert("cache-control", axum::http::HeaderValue::from_static("no-cache"));
    Some(response)
}

/// A request that has been read.
struct Arrived<'a> {
    headers: &'a HeaderMap,
    raw: Bytes,
    length: usize,
    body: Arc<Value>,
    place: ConversationNames,
    arrived_at: u64,
}

impl<'a> Arrived<'a> {
    fn new(headers: &'a HeaderMap, raw: Bytes, length: usize, shared: &Shared) -> Self {
        let body = Arc::new(if length > shared.config.max_body { Value::Null } else { parse(&raw) });
        let place = ConversationNames::of(&body);
        Self { headers, raw, length, body, place, arrived_at: shared.config.clock.now() }
    }

    fn check(&self, shared: &Shared) -> Result<(), rules::Refusal> {
        let conversation = &self.place.context.conversation;
        let incoming =
            Incoming { headers: self.headers, length: self.length, body: &self.body, conversation };
        let config = &shared.config;
        rules::check(&incoming, &config.models, config.endpoint, config.max_body)
    }

    fn model(&self, shared: &Shared) -> Model {
        shared.config.models.get(self.body["model"].as_str().unwrap_or_default())
    }

    fn prompt(&self, shared: &Shared) -> Prompt {
        let tokenizer = Tokenizer::for_conversation(&self.place.context.conversation);
        Prompt::read(&shared.config.endpoint.passed_on(&self.body), &self.model(shared), tokenizer)
    }

    fn received(self, verdict: Verdict, shared: &Shared) -> Received {
        let (body, raw) = match shared.config.keep {
            Retention::Everything => (self.body, self.raw),
            Retention::Summaries => (Arc::default(), Bytes::new()),
        };
        Received {
            index: 0,
            headers: received::headers(self.headers),
            body,
            raw,
            verdict,
            conversation: self.place.context.conversation,
            position: self.place.context.position,
            limited: None,
            fault: None,
            prefix_break: None,
            arrived_at: self.arrived_at,
            began_at: None,
            ended_at: None,
            usage: None,
            prefix_tokens: Arc::default(),
            replied: false,
        }
    }
}

fn parse(raw: &[u8]) -> Value {
    serde_json::from_slice(raw).unwrap_or(Value::Null)
}

/// Reads the whole body but keeps no more of it than the limit, so that the client has sent everything and
/// listens when it is told that it was too much. `None` if the client left meanwhile.
async fn read(body: Body, limit: usize) -> Option<(Bytes, usize)> {
    let mut stream: BodyDataStream = body.into_data_stream();
    let mut kept = BytesMut::new();
    let mut length = 0_usize;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.ok()?;
        length += chunk.len();
        if length <= limit {
            kept.extend_from_slice(&chunk);
        }
    }
    Some((kept.freeze(), length))
}
