//! Random schedules through kernel and journal, without HTTP: a lead and its workers, a server that bills by
//! arithmetic of its own, replies that are lost, cut or turned away, and crashes around every append. After
//! every append the bill is within the caps and the ledger covers it.

mod server;

use std::collections::BTreeMap;

use convoke_claude::{Endpoint, Model, Models, capabilities, ceilings};
use convoke_journal::{
    Batch, Change, Changed, Error, Journal, Lease, Location, Options, Process, StreamId, Update,
};
use convoke_kernel::{
    Agent, AgentId, AgentSpec, Amount, Caps, Child, Effect, Event, FanOut, HAND_BACK_TOKENS, Input,
    LEAST_MAX_TOKENS, LeadSettings, Ledger, LedgerAnswer, LedgerEvent, LedgerRequest, Limits, Pace, Role,
    Room, RoomAnswer, SessionId, ToolRequest, ToolResult, answer,
};
use convoke_runtime::Ids;

use super::Dice;
use server::Flight;

/// What may come back from one turn's tools, as the runtime counts with it.
const RESULT_BYTES: u64 = 16 * 1024;
/// A prompt that few agents here outgrow; caps are multiples of what it costs with the least reply.
const USUAL_PROMPT: u64 = 40_000;

/// The process died.
#[derive(Debug)]
struct Crashed;

struct Player {
    id: AgentId,
    spec: AgentSpec,
    stream: StreamId,
    lease: Lease,
    seq: u64,
    agent: Agent,
    flight: Option<Flight>,
    /// Turns it needs before it is done.
    work: u64,
    /// A thousand times the bytes in one of its tokens.
    milli_bytes: u64,
}

/// What is booked together with an agent's events.
#[derive(Clone)]
enum Booking {
    Hold,
    Reserve(u32, u32, Room),
    Settle(u32, u32, Option<Amount>),
    Release,
}

impl Booking {
    fn events(&self, ledger: &Ledger, agent: &str) -> Result<Vec<LedgerEvent>, String> {
        Ok(match self {
            Booking::Hold => ledger.hold(agent),
            Booking::Reserve(call, attempt, room) => ledger
                .reserve(agent, *call, *attempt, room.request, room.hand_back)
                .map_err(|short| short.to_string())?,
            Booking::Settle(call, attempt, usage) => {
                ledger.settle(agent, *call, *attempt, *usage).unwrap_or_default()
            }
            Booking::Release => ledger.release(agent),
        })
    }
}

fn book(bookings: Vec<Booking>, agent: String, at: u64) -> Change {
    Change::new(move |state| {
        let mut ledger: Ledger =
            state.map_or_else(Ledger::default, |state| serde_json::from_str(state).unwrap());
        let mut texts = Vec::new();
        for booking in &bookings {
            for event in booking.events(&ledger, &agent)? {
                ledger.apply(&event, at);
                texts.push(event.encode().unwrap());
            }
        }
        Ok(Changed { state: serde_json::to_string(&ledger).unwrap(), events: texts })
    })
}

struct World {
    dice: Dice,
    journal: Journal,
    shared: StreamId,
    ledger: Ledger,
    /// The ledger as another process may still see it.
    stale: Ledger,
    model: Model,
    players: Vec<Player>,
    at: u64,
    bill: Amount,
    /// Whether the work is more than any cap here pays for.
    endless: bool,
    forgetful: bool,
    seen: Seen,
}

/// What a schedule has been through.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) requests: usize,
    pub(super) crashes: usize,
    pub(super) declined: usize,
    /// Requests at once, at most.
    pub(super) peak: usize,
    /// The part of the cap that was spent in percent, where money ran short.
    pub(super) share: Option<u64>,
    /// The same for what was really billed.
    pub(super) billed: Option<u64>,
    pub(super) endless: bool,
}

/// Plays one schedule. With `forgetful` books, replies that never came are taken to have cost nothing.
pub(super) async fn play(seed: u64, forgetful: bool) -> Seen {
    let mut world = World::new(seed).await;
    world.forgetful = forgetful;
    let mut lived = world.live().await;
    while let Err(Crashed) = lived {
        world.seen.crashes += 1;
        lived = world.again().await;
    }
    world.end().await
}

impl World {
    async fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let priced = ["claude-opus-4-8", "claude-opus-5-5", "claude-sonnet-4-6", "claude-haiku-5-5"];
        let model = Models::builtin().get(priced[dice.roll(0, 3) as usize]);
        let endless = dice.chance(60);
        let session = SessionId::derived(&["money"]);
        let journal = Journal::open(Location::Memory, Options::new(dead_process())).await.unwrap();
        let lead = lead_spec(&model, &session);
        let workers = if dice.chance(25) { dice.roll(1, 4) } else { dice.roll(5, 64) };
        let mut players = Vec::new();
        for n in 0..=workers {
            let role = if dice.chance(70) { Role::Worker } else { Role::Verifier };
            let spec = if n == 0 { lead.clone() } else { lead.child(role, "part", 1).unwrap() };
            let id = AgentId::derived(&["player", &n.to_string()]);
            let stream = StreamId::from(&id);
            let lease = journal.own(&stream).await.unwrap();
            let work = match (n, endless) {
                (0, _) => dice.roll(1, 6),
                (_, true) => u64::MAX,
                (_, false) => dice.roll(1, 12),
            };
            let milli_bytes = dice.roll(1_000, 4_500);
            players.push(Player {
                id,
                spec,
                stream,
                lease,
                seq: 0,
                agent: Agent::new(),
                flight: None,
                work,
                milli_bytes,
            });
        }
        let rates = ceilings(&model).unwrap();
        // Now and then there is enough for all of them to be asked at once.
        let most = if dice.chance(25) { 800 } else { 100 };
        let nano = rates.bound(USUAL_PROMPT, LEAST_MAX_TOKENS) * dice.roll(20, most);
        let tokens =
            (USUAL_PROMPT + rates.overhead_tokens + u64::from(LEAST_MAX_TOKENS)) * dice.roll(20, most);
        let caps = match dice.roll(1, 4) {
            1 => Caps { tokens: Some(tokens), ..Caps::default() },
            2 => Caps { tokens: Some(tokens), nano: Some(nano), ..Caps::default() },
            _ => Caps { nano: Some(nano), ..Caps::default() },
        };
        let shared = StreamId::from(&session);
        let grant = Change::new(move |_| {
            let mut ledger = Ledger::default();
            let events = ledger.grant(caps, "person");
            events.iter().for_each(|event| ledger.apply(event, 0));
            let state = serde_json::to_string(&ledger).unwrap();
            Ok(Changed { state, events: events.iter().map(|event| event.encode().unwrap()).collect() })
        });
        let state = journal.update(&shared, 0, &grant).await.unwrap();
        let ledger: Ledger = serde_json::from_str(&state).unwrap();
        let stale = ledger.clone();
        let at = 1_000;
        let bill = Amount::ZERO;
        let seen = Seen { endless, ..Seen::default() };
        Self {
            dice,
            journal,
            shared,
            ledger,
            stale,
            model,
            players,
            at,
            bill,
            endless,
            forgetful: false,
            seen,
        }
    }

    /// Goes on until every agent is done, or until the process dies.
    async fn live(&mut self) -> Result<(), Crashed> {
        if !self.players[0].agent.is_started() {
            self.start(0).await?;
        }
        loop {
            if self.fans_out() {
                for n in 1..self.players.len() {
                    if !self.players[n].agent.is_started() {
                        self.start(n).await?;
                    }
                }
            }
            if self.players.iter().all(|player| player.agent.is_idle()) || self.is_cut_short() {
                return Ok(());
            }
            let answered = self.answer().await?;
            let running = self.running();
            self.seen.peak =
                self.seen.peak.max(self.players.iter().filter(|player| player.flight.is_some()).count());
            if self.dice.chance(10) {
                self.stale = self.ledger.clone();
            }
            if running.is_empty() {
                let times = self.players.iter().filter_map(|player| not_before(&player.agent));
                let next = times.filter(|time| *time > self.at).min();
                assert!(
                    answered || next.is_some(),
                    "nothing is under way and nobody is answered: {:?}",
                    self.ledger
                );
                self.at = next.unwrap_or(self.at);
                continue;
            }
            self.at += self.dice.roll(0, 50);
            let n = running[self.dice.roll(0, running.len() as u64 - 1) as usize];
            self.something_ends(n).await?;
        }
    }

    /// The lead ended before it fanned out.
    fn is_cut_short(&self) -> bool {
        self.players[0].agent.is_idle() && self.players[1..].iter().all(|player| !player.agent.is_started())
    }

    fn fans_out(&self) -> bool {
        matches!(
            self.players[0].agent.pending().as_slice(),
            [Effect::RunTool { request: ToolRequest::Workflow { .. }, .. }]
        )
    }

    /// Players with something that can end: a request, a command, or a workflow whose workers are done.
    fn running(&self) -> Vec<usize> {
        let idle = self.players[1..].iter().all(|player| player.agent.is_idle());
        let runs = |n: &usize| {
            let player = &self.players[*n];
            let tool = matches!(player.agent.pending().as_slice(), [Effect::RunTool { .. }]);
            player.flight.is_some() || (tool && (*n > 0 || !self.fans_out() || idle))
        };
        (0..self.players.len()).filter(runs).collect()
    }

    async fn start(&mut self, n: usize) -> Result<(), Crashed> {
        let spec = Box::new(self.players[n].spec.clone());
        self.input(n, Input::Start { spec, key: "start".into(), text: "look at a part of it".into() }, None)
            .await
    }

    /// Answers the agents that wait for room; says whether one was answered, or may be by a newer ledger.
    async fn answer(&mut self) -> Result<bool, Crashed> {
        let waits = |n: &usize| not_before(&self.players[*n].agent).is_some_and(|until| until <= self.at);
        let waiting: Vec<usize> = (0..self.players.len()).filter(waits).collect();
        let asks: Vec<LedgerRequest> = waiting.iter().map(|n| self.ask(*n)).collect();
        let at_work = |player: &Player| {
            let shell = matches!(
                player.agent.pending().as_slice(),
                [Effect::RunTool { request: ToolRequest::Bash { .. }, .. }]
            );
            shell || not_before(&player.agent).is_some_and(|until| until > self.at)
        };
        let busy = self.players.iter().any(at_work);
        // Another process sees what this one has not heard of yet; the transaction decides.
        let behind = self.dice.chance(10);
        let ledger = if behind { &self.stale } else { &self.ledger };
        let answers = answer(ledger, &asks, busy, self.at);
        let any = !answers.is_empty() || behind;
        for (index, answer) in answers {
            let n = waiting[index];
            let (answer, room) = match answer {
                LedgerAnswer::Go(room) => (RoomAnswer::Go { max_tokens: room.max_tokens }, Some(room)),
                LedgerAnswer::HandBack(room, short) => {
                    self.note_short();
                    (RoomAnswer::HandBack { max_tokens: room.max_tokens, why: short.to_string() }, Some(room))
                }
                LedgerAnswer::Refused(short) => {
                    self.note_short();
                    (RoomAnswer::Refused { why: short.to_string() }, None)
                }
            };
            self.input(n, Input::Room { call: asks[index].call, answer }, room).await?;
        }
        Ok(any)
    }

    fn ask(&self, n: usize) -> LedgerRequest {
        let player = &self.players[n];
        let ask = player.agent.room_ask().unwrap();
        LedgerRequest {
            agent: player.id.to_string(),
            order: n as u64,
            first: n == 0,
            started: ask.started,
            last: ask.last_turn,
            call: ask.call,
            attempt: ask.attempt,
            input_tokens: ask.prompt_tokens,
            wanted: ask.wanted,
            floor: LEAST_MAX_TOKENS,
            whole: ask.cut_at > 0,
            hand_back_input: ask.prompt_tokens + RESULT_BYTES,
            hand_back_tokens: HAND_BACK_TOKENS,
            rates: player.spec.rates.clone(),
        }
    }

    /// Money is short; what counts is how much is spent when an agent is told so for the last time.
    fn note_short(&mut self) {
        let caps = self.ledger.caps();
        let part = |amount: Amount| {
            let of = |cap: Option<u64>, spent: u64| cap.map_or(0, |cap| spent * 100 / cap);
            of(caps.tokens, amount.tokens).max(of(caps.nano, amount.nano))
        };
        self.seen.share = Some(part(self.ledger.spent()));
        self.seen.billed = Some(part(self.bill));
    }

    async fn something_ends(&mut self, n: usize) -> Result<(), Crashed> {
        if self.players[n].flight.is_some() {
            return self.attempt_ends(n).await;
        }
        let pending = self.players[n].agent.pending();
        let [Effect::RunTool { id, .. }] = pending.as_slice() else { panic!("{pending:?}") };
        let most = if self.dice.chance(10) { RESULT_BYTES - 512 } else { 2_000 };
        let result = ToolResult::done("r".repeat(self.dice.roll(1, most) as usize));
        self.input(n, Input::ToolDone { id: id.clone(), result }, None).await
    }

    /// One round of the circle for one agent, with the ledger in the same append.
    async fn input(&mut self, n: usize, input: Input, room: Option<Room>) -> Result<(), Crashed> {
        let at = self.at;
        let player = &self.players[n];
        let attempt = match player.agent.pending().as_slice() {
            [Effect::CallModel { attempt, .. }] => *attempt,
            _ => 0,
        };
        let events = player.agent.decide(input, at, Pace::Go).unwrap();
        if events.is_empty() {
            return Ok(());
        }
        let booking = |event: &Event| booking(event, attempt, room, self.forgetful);
        let bookings: Vec<Booking> = events.iter().filter_map(booking).collect();
        let mut batch = Batch::events(at, events.iter().map(|event| event.encode().unwrap()));
        if !bookings.is_empty() {
            batch.updates = vec![Update {
                stream: self.shared.clone(),
                change: book(bookings, player.id.to_string(), at),
            }];
        }
        if self.dice.roll(1, 1_000) <= 2 {
            return Err(Crashed);
        }
        let appended = match self.journal.append_shared(&player.lease, player.seq, &batch).await {
            Ok(appended) => appended,
            Err(Error::Declined { .. }) => {
                self.seen.declined += 1;
                return Ok(());
            }
            Err(error) => panic!("{error}"),
        };
        let player = &mut self.players[n];
        player.seq = appended.seq;
        events.iter().for_each(|event| player.agent.apply(event, at).unwrap());
        if let Some(state) = appended.states.first() {
            self.ledger = serde_json::from_str(state).unwrap();
        }
        self.check();
        if self.dice.roll(1, 1_000) <= 2 {
            return Err(Crashed);
        }
        if events.iter().any(|event| matches!(event, Event::ModelCalled(_))) {
            self.send(n);
        }
        Ok(())
    }

    fn check(&self) {
        let used = self.ledger.spent().plus(self.ledger.held());
        let caps = self.ledger.caps();
        assert!(self.bill.fits_in(used), "the bill {:?} is above what is booked {used:?}", self.bill);
        let within =
            |cap: Option<u64>, used: u64| assert!(cap.is_none_or(|cap| used <= cap), "{used} of {cap:?}");
        within(caps.tokens, used.tokens);
        within(caps.nano, used.nano);
    }

    /// The process is gone with all it knew; what was in flight may have been billed in whole, in part or not
    /// at all.
    async fn again(&mut self) -> Result<(), Crashed> {
        self.at += self.dice.roll(0, 60_000);
        for n in 0..self.players.len() {
            let Some(flight) = self.players[n].flight.take() else { continue };
            match self.dice.roll(1, 3) {
                1 => drop(self.charge(&flight, u64::from(flight.max_tokens))),
                2 => {
                    let part = self.dice.roll(0, u64::from(flight.max_tokens));
                    self.charge(&flight, part);
                }
                _ => {}
            }
        }
        self.journal = self.journal.as_process(Options::new(dead_process())).await.unwrap();
        self.ledger = self.rebuilt().await;
        self.stale = self.ledger.clone();
        self.check();
        let held = book(vec![Booking::Hold], "process".into(), self.at);
        self.journal.update(&self.shared, self.at, &held).await.unwrap();
        for player in &mut self.players {
            player.lease = self.journal.own(&player.stream).await.unwrap();
            player.agent = Agent::new();
            player.seq = 0;
            for record in self.journal.load(&player.stream, 0).await.unwrap() {
                player.agent.apply(&Event::decode(&record.event).unwrap(), record.at).unwrap();
                player.seq = record.seq;
            }
        }
        for n in 0..self.players.len() {
            let agent = &self.players[n].agent;
            if agent.is_started() && !agent.is_idle() {
                let changed = if self.dice.chance(20) { vec!["src/lib.rs".to_owned()] } else { vec![] };
                self.input(n, Input::Resume { changed }, None).await?;
            }
        }
        self.live().await
    }

    /// The ledger's row, which is what its events come to.
    async fn rebuilt(&self) -> Ledger {
        let state = self.journal.shared(&self.shared).await.unwrap().unwrap();
        let row: Ledger = serde_json::from_str(&state).unwrap();
        let mut folded = Ledger::default();
        for record in self.journal.load(&self.shared, 0).await.unwrap() {
            folded.apply(&LedgerEvent::decode(&record.event).unwrap(), record.at);
        }
        assert_eq!(row, folded, "the row can be rebuilt");
        row
    }

    async fn end(mut self) -> Seen {
        self.ledger = self.rebuilt().await;
        self.check();
        assert_eq!(self.ledger.held(), Amount::ZERO, "nobody is left that could spend");
        self.seen.endless = self.endless;
        self.seen
    }
}

fn booking(event: &Event, attempt: u32, room: Option<Room>, forgetful: bool) -> Option<Booking> {
    Some(match event {
        Event::ModelCalled(e) => Booking::Reserve(e.call, e.attempt, room?),
        Event::ModelReplied(e) => {
            let tokens = e.reply.usage.prompt_tokens() + e.reply.usage.output_tokens;
            let told = Amount { tokens, nano: e.reply.cost_nano.unwrap_or(0) };
            Booking::Settle(e.call, attempt, (tokens > 0).then_some(told))
        }
        Event::ModelFailed(e) => {
            let free = e.failure.unbilled || forgetful;
            Booking::Settle(e.call, e.attempt, free.then_some(Amount::ZERO))
        }
        Event::ExchangeClosed(_) => Booking::Release,
        _ => return None,
    })
}

fn not_before(agent: &Agent) -> Option<u64> {
    match agent.pending().as_slice() {
        [Effect::AskRoom { not_before, .. }] => Some(*not_before),
        _ => None,
    }
}

fn lead_spec(model: &Model, session: &SessionId) -> AgentSpec {
    let capabilities = capabilities(model, &Endpoint::anthropic(), None).unwrap();
    let limits = Limits { max_turns: u32::MAX, ..Limits::default() };
    let child =
        Child { model: model.id.clone(), capabilities: capabilities.clone(), limits, rates: ceilings(model) };
    let fan_out = FanOut {
        mode: true,
        consent: false,
        voters: 1,
        max_subtasks: 200,
        quoted: false,
        fresh: false,
        child,
        callees: Default::default(),
    };
    AgentSpec::lead(LeadSettings {
        session: session.clone(),
        dir: "/work".into(),
        model: model.id.clone(),
        capabilities,
        limits,
        rates: ceilings(model),
        confinement: Default::default(),
        approvals: Default::default(),
        fan_out: Some(fan_out),
        team: None,
        extra_system: None,
    })
}

/// A process that has provably ended, so that its leases can be taken over at once.
fn dead_process() -> Process {
    Process { pid: u32::MAX, start_time: 1, ..Process::current(Ids::random().bits().unwrap()) }
}

/// How many schedules spent which part of their cap, in steps of five percent.
pub(super) fn histogram(shares: impl Iterator<Item = u64>) -> BTreeMap<u64, usize> {
    let mut histogram = BTreeMap::new();
    shares.for_each(|share| *histogram.entry(share / 5 * 5).or_default() += 1);
    histogram
}
