//! What requests take, as far as that is known before they are sent: rooms for replies, prompts, and what is
//! kept for a hand-back. Small caps buy work only if no more is kept than such requests take.

use convoke_kernel::{
    AgentSpec, Amount, HAND_BACK_TOKENS, LEAST_HAND_BACK_TOKENS, LEAST_MAX_TOKENS, Ledger, LedgerRequest,
    Rates, Role, RoomAsk, Thinking, hand_back_hold,
};

/// What may still be added to a history before its hand-back: the results of one turn's tools. Less under a
/// small cap.
const RESULT_BYTES: u64 = 24 * 1024;
const LEAST_RESULT_BYTES: u64 = 1_536;
/// The part of a cap that may be kept for that.
const RESULTS_OF_CAP: u64 = 64;
/// The part of a cap that may be kept for the reply of a hand-back.
const REPLY_OF_CAP: u64 = 40;
/// The least room for a reply where such replies were seen to take less.
const LEAST_REPLY: u32 = 768;

/// A workflow's result in full length, and what is left of it for a lead that cannot afford to read that.
const LONG_DIGEST: usize = 60_000;
const SHORT_DIGEST: usize = 20_000;

/// The kind of agent, as far as the length of its replies goes.
pub(crate) fn kind(spec: &AgentSpec) -> String {
    kind_of(spec.role, spec)
}

fn kind_of(role: Role, spec: &AgentSpec) -> String {
    let effort = spec.capabilities.effort.as_deref().unwrap_or("-");
    format!("{role:?} {} {effort}", spec.model).to_lowercase()
}

/// A name for what all requests of agents of this make begin with. Models count tokens differently.
pub(crate) fn prefix(spec: &AgentSpec, digest: &str) -> String {
    format!("{} {digest}", spec.model)
}

/// The room that a reply of such an agent takes: as seen in this session, or else by a table. A reply that
/// needs more is cut and asked for once more with at least twice the room.
pub(crate) fn reply_room(spec: &AgentSpec, ledger: &Ledger) -> u32 {
    let seen = ledger.reply_room(&kind(spec)).or_else(|| {
        // Before any of its kind was seen, a verifier is taken to write as much as a worker: it looks and it
        // reports.
        (spec.role == Role::Verifier).then(|| ledger.reply_room(&kind_of(Role::Worker, spec))).flatten()
    });
    seen.unwrap_or_else(|| usual_reply(spec)).clamp(LEAST_REPLY, LEAST_MAX_TOKENS)
}

/// Thinking is part of a reply, and effort is mostly thinking. A lead writes out all its subtasks.
fn usual_reply(spec: &AgentSpec) -> u32 {
    let thinks = spec.capabilities.thinking != Thinking::Omit;
    let reply = match spec.capabilities.effort.as_deref().filter(|_| thinks) {
        None | Some("low") => 1_200,
        Some("medium") => 1_500,
        Some("high") => 2_000,
        Some(_) => 2_500,
    };
    if spec.role == Role::Lead { reply + 1_500 } else { reply }
}

/// The room for the reply of a hand-back that is kept.
pub(crate) fn hand_back_tokens(spec: &AgentSpec, ledger: &Ledger) -> u32 {
    let dearest = spec.rates.iter().flat_map(|rates| &rates.tiers).map(|tier| tier.output).max().unwrap_or(0);
    let by_money = ledger.caps().nano.and_then(|nano| (nano / REPLY_OF_CAP).checked_div(dearest));
    let most = by_money.and_then(|tokens| u32::try_from(tokens).ok()).unwrap_or(u32::MAX);
    // What was seen may be less than what is kept where nothing was seen.
    reply_room(spec, ledger).min(most.max(LEAST_HAND_BACK_TOKENS)).min(HAND_BACK_TOKENS / 2)
}

/// What may still be added to this agent's history before its hand-back, as far as it is kept.
pub(crate) fn results_bytes(spec: &AgentSpec, ledger: &Ledger) -> u64 {
    let caps = ledger.caps();
    let by_money = caps.nano.and_then(|nano| (nano / RESULTS_OF_CAP).checked_div(dearest_input(spec)));
    let by_tokens = caps.tokens.map(|tokens| tokens / RESULTS_OF_CAP);
    let least = [by_money, by_tokens].into_iter().flatten().min();
    RESULT_BYTES.min(least.unwrap_or(RESULT_BYTES).max(LEAST_RESULT_BYTES))
}

/// What is kept for the hand-back of an agent whose history has so many tokens, as the server counts them.
pub(crate) fn kept_for_hand_back(spec: &AgentSpec, ledger: &Ledger, history: u64) -> Amount {
    let rates = spec.rates.as_ref().map(Rates::measured);
    let prompt = history.saturating_add(results_bytes(spec, ledger));
    hand_back_hold(rates.as_ref(), prompt, hand_back_tokens(spec, ledger))
}

/// How long a workflow's result may be, so that its lead can still hand back after reading it.
pub(crate) fn digest_chars(spec: &AgentSpec, ledger: &Ledger) -> usize {
    let more = hand_back_hold(spec.rates.as_ref(), LONG_DIGEST as u64, HAND_BACK_TOKENS);
    if fits(ledger, more) {
        return LONG_DIGEST;
    }
    // What its workers left is free by now. Half of it may be read, the other half is for the answer.
    let caps = ledger.caps();
    let used = ledger.spent().plus(ledger.held());
    let money =
        caps.nano.and_then(|cap| (cap.saturating_sub(used.nano) / 2).checked_div(dearest_input(spec)));
    let tokens = caps.tokens.map(|cap| cap.saturating_sub(used.tokens) / 2);
    let left = [money, tokens].into_iter().flatten().min().unwrap_or(0);
    let bytes = results_bytes(spec, ledger).saturating_add(left);
    usize::try_from(bytes).unwrap_or(SHORT_DIGEST).min(SHORT_DIGEST)
}

/// The most that a token of a prompt may cost; nothing without a price.
fn dearest_input(spec: &AgentSpec) -> u64 {
    spec.rates.iter().flat_map(|rates| &rates.tiers).map(|tier| tier.input).max().unwrap_or(0)
}

/// How many bytes of a tool's result an agent can afford to read, with so many tokens before it, and still
/// hand back.
pub(crate) fn affordable(spec: &AgentSpec, ledger: &Ledger, agent: &str, before: u64) -> Option<u64> {
    let caps = ledger.caps();
    let rates = spec.rates.as_ref().map(Rates::measured);
    let own = ledger.hold_of(agent).map_or(Amount::ZERO, |hold| hold.hand_back);
    let used = ledger.spent().plus(ledger.held()).minus(own);
    let needs = hand_back_hold(rates.as_ref(), before, LEAST_HAND_BACK_TOKENS);
    let left =
        |cap: u64| cap.saturating_sub(used.nano).saturating_sub(needs.nano).checked_div(dearest_input(spec));
    let money = caps.nano.and_then(left);
    let tokens = caps.tokens.map(|cap| cap.saturating_sub(used.tokens).saturating_sub(needs.tokens));
    [money, tokens].into_iter().flatten().min().map(|bytes| bytes.max(LEAST_RESULT_BYTES))
}

/// A text of which the middle is left out where it has more bytes than this.
pub(crate) fn shortened(text: String, most: u64) -> String {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if text.len() <= most {
        return text;
    }
    let head = text.floor_char_boundary(most * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - most / 4);
    let left_out = tail - head;
    format!(
        "{}\n[{left_out} bytes are left out here: the budget is nearly used up. Hand back soon; look at less \
            at once.]\n{}",
        &text[..head],
        &text[tail..]
    )
}

fn fits(ledger: &Ledger, more: Amount) -> bool {
    let used = ledger.spent().plus(ledger.held()).plus(more);
    let within = |cap: Option<u64>, used: u64| cap.is_none_or(|cap| used <= cap);
    within(ledger.caps().nano, used.nano) && within(ledger.caps().tokens, used.tokens)
}

/// What an agent asks of the ledger for its next request.
pub(crate) fn ask(agent: &str, spec: &AgentSpec, ask: &RoomAsk, ledger: &Ledger) -> LedgerRequest {
    let mut money = LedgerRequest {
        agent: agent.to_owned(),
        order: 0,
        first: spec.role == Role::Lead,
        started: ask.started,
        last: ask.last_turn,
        call: ask.call,
        attempt: ask.attempt,
        input_tokens: 0,
        wanted: ask.wanted,
        floor: 0,
        whole: ask.cut_at > 0,
        hand_back_input: 0,
        hand_back_tokens: 0,
        rates: None,
    };
    renew(&mut money, spec, ask, ledger);
    money
}

/// The same by what the ledger knows now.
pub(crate) fn renew(money: &mut LedgerRequest, spec: &AgentSpec, ask: &RoomAsk, ledger: &Ledger) {
    let (input_tokens, rates) = prompt(spec, ledger, ask);
    // What was cut is asked for again with more room, or not at all.
    money.floor = if ask.cut_at > 0 { ask.cut_at.saturating_mul(2) } else { reply_room(spec, ledger) };
    money.hand_back_input = input_tokens.saturating_add(results_bytes(spec, ledger));
    money.hand_back_tokens = hand_back_tokens(spec, ledger);
    money.input_tokens = input_tokens;
    money.rates = rates;
}

/// The most tokens that a prompt can have, and the rates that bound it. What the server said of a request
/// that began alike bounds the beginning: only what stands behind it counts by its bytes.
pub(crate) fn prompt(spec: &AgentSpec, ledger: &Ledger, ask: &RoomAsk) -> (u64, Option<Rates>) {
    let Some(behind) = ask.behind_prefix else {
        return (ask.prompt_tokens, spec.rates.as_ref().map(Rates::measured));
    };
    let known =
        ledger.prefix_tokens(&prefix(spec, &ask.prefix.0)).map(|tokens| tokens.saturating_add(behind));
    match known.filter(|known| *known < ask.prompt_tokens) {
        Some(known) => (known, spec.rates.as_ref().map(Rates::measured)),
        None => (ask.prompt_tokens, spec.rates.clone()),
    }
}
