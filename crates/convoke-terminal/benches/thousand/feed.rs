//! A made-up session: a lead, the agents that work for it, and what happens to them, in the kinds and sizes
//! of events that real sessions record. The same numbers make the same session. It sends events to a screen
//! and answers what the screen asks; it draws nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use convoke_kernel::{
    AgentId, AgentSpec, AgentStarted, AgentsAdmitted, Amount, AttemptSettled, BoardEvent, BudgetGranted,
    Caps, Event, ItemEnded, ItemJudged, ItemResult, ItemStatus, Kept, LEAD, Ledger, LedgerEvent, Letter,
    LetterKind, LetterPosted, LettersTaken, MailDelivered, MemberSpawned, MessageId, ModelCalled,
    ModelReplied, Piece, Purpose, Report, ResultsAppended, Role, RoomReserved, RosterEvent, RosterOpened,
    RunEvent, RunId, RunSpec, RunStarted, Segment, TaskClaimed, TaskCreated, TaskFinished, TaskId, Teammate,
    ToolCall, ToolFinished, ToolResult, ToolStarted, Verdict, WorkerStarted,
};
use convoke_terminal::{Facts, Screen, ScreenUpdate, UserAction};
use convoke_view::SessionEvent;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::clock;
use crate::made_up::{closed, finding, lead_spec, opened, output, prose, reply, subtask};

/// Of a thousand agents so many are verifiers and teammates; the others work for a run.
const VERIFIERS: usize = 150;
const TEAMMATES: usize = 50;
/// The first agents never end, so that nothing moves by itself around the row that is chosen.
const STAY: usize = 100;
/// How many turns the busy agent has behind it before its page is opened.
const EARLIER_TURNS: usize = 100;
/// How often something is recorded: fifty times a second. Between two events a live piece comes.
const EVERY: Duration = Duration::from_millis(20);

/// What the session does and what it is told to do.
pub(crate) struct Feed(Arc<Mutex<World>>);

impl Feed {
    /// A session with a lead and so many others, all of them at work.
    pub(crate) fn start(
        agents: usize,
        news: UnboundedSender<Screen>,
        asks: UnboundedReceiver<UserAction>,
    ) -> Self {
        let mut world = World::new(agents, news);
        world.begin();
        let world = Arc::new(Mutex::new(world));
        let asked = Arc::clone(&world);
        thread::spawn(move || answer(&asked, asks));
        Self(world)
    }

    /// Feeds the screen for this long; gives how many events there were, and there were as many pieces.
    pub(crate) fn feed(&self, time: Duration) -> u64 {
        let begun = Instant::now();
        let mut events = 0_u64;
        while begun.elapsed() < time {
            self.0.lock().unwrap().event();
            wait_until(begun + EVERY.mul_f64(events as f64 + 0.5));
            self.0.lock().unwrap().piece();
            events += 1;
            wait_until(begun + EVERY.mul_f64(events as f64));
        }
        events
    }

    /// Ends every agent.
    pub(crate) fn rest(&self) {
        let mut world = self.0.lock().unwrap();
        for agent in [vec![world.lead.clone()], world.agents.clone()].concat() {
            world.agent(&agent, closed());
        }
        world.tell(ScreenUpdate::Working(false));
    }

    /// The session is over.
    pub(crate) fn end(&self) {
        self.0.lock().unwrap().tell(ScreenUpdate::Over);
    }
}

fn wait_until(due: Instant) {
    thread::sleep(due.saturating_duration_since(Instant::now()));
}

/// Sends the history of an agent to the screen that opens its page.
fn answer(world: &Mutex<World>, mut asks: UnboundedReceiver<UserAction>) {
    while let Some(ask) = asks.blocking_recv() {
        if let UserAction::Open(agent) = ask {
            let world = world.lock().unwrap();
            let events = world.kept.get(&agent).cloned().unwrap_or_default();
            world.tell(ScreenUpdate::History { agent, events });
        }
    }
}

struct World {
    news: UnboundedSender<Screen>,
    seqs: HashMap<String, u64>,
    spec: AgentSpec,
    lead: AgentId,
    agents: Vec<AgentId>,
    workers: usize,
    /// How many steps each has made: the lead, then the others.
    steps: Vec<u32>,
    /// The histories of the agents whose pages are opened.
    kept: HashMap<AgentId, Vec<(u64, u64, Event)>>,
    ledger: Ledger,
    run: RunId,
    /// The number of the next event, of the next piece, and of the next thing that is no agent's.
    numbers: [u64; 3],
    random: u64,
}

impl World {
    fn new(agents: usize, news: UnboundedSender<Screen>) -> Self {
        let lead = AgentId::derived(&["lead"]);
        let others = (0..agents).map(|number| AgentId::derived(&["agent", &number.to_string()])).collect();
        let workers = if agents > VERIFIERS + TEAMMATES { agents - VERIFIERS - TEAMMATES } else { agents };
        Self {
            news,
            seqs: HashMap::new(),
            spec: lead_spec(),
            kept: HashMap::from([
                (lead.clone(), Vec::new()),
                (AgentId::derived(&["agent", "0"]), Vec::new()),
            ]),
            lead,
            agents: others,
            workers,
            steps: vec![0; agents + 1],
            ledger: Ledger::default(),
            run: RunId::derived(&["run"]),
            numbers: [0; 3],
            random: 7,
        }
    }

    fn tell(&self, told: ScreenUpdate) {
        // A screen that is gone hears nothing; the benchmark notices that elsewhere.
        let _ = self.news.send(Screen::Update(told));
    }

    fn hear(&self, heard: SessionEvent) {
        let _ = self.news.send(Screen::Event(heard));
    }

    fn next(&mut self, stream: &str) -> (u64, u64) {
        let seq = self.seqs.entry(stream.to_owned()).or_insert(0);
        *seq += 1;
        (*seq, clock())
    }

    fn agent(&mut self, agent: &AgentId, event: impl Into<Event>) {
        let (seq, at) = self.next(agent.as_str());
        let event = event.into();
        if let Some(kept) = self.kept.get_mut(agent) {
            kept.push((seq, at, event.clone()));
        }
        self.hear(SessionEvent::Agent { agent: agent.clone(), seq, at, event: Box::new(event) });
    }

    fn run(&mut self, event: impl Into<RunEvent>) {
        let (seq, at) = self.next("run");
        self.hear(SessionEvent::Run { run: self.run.clone(), seq, at, event: Box::new(event.into()) });
    }

    fn roster(&mut self, event: impl Into<RosterEvent>) {
        let (seq, at) = self.next("roster");
        self.hear(SessionEvent::Roster { seq, at, event: Box::new(event.into()) });
    }

    fn board(&mut self, event: impl Into<BoardEvent>) {
        let (seq, at) = self.next("board");
        self.hear(SessionEvent::Board { seq, at, event: Box::new(event.into()) });
    }

    fn ledger(&mut self, event: impl Into<LedgerEvent>) {
        self.ledger.apply(&event.into(), clock());
        self.hear(SessionEvent::Ledger(Box::new(self.ledger.clone())));
    }

    /// Starts every agent.
    fn begin(&mut self) {
        let lead = self.lead.clone();
        let spec = self.spec.clone();
        let facts = Facts {
            session: Some(spec.session.clone()),
            lead: Some(lead.clone()),
            dir: "/work/project".into(),
            model: spec.model.clone(),
            mode: true,
            ..Facts::default()
        };
        self.tell(ScreenUpdate::Facts(Box::new(facts)));
        self.tell(ScreenUpdate::Working(true));
        let caps = Caps { agents: Some(5_000), tokens: None, nano: Some(500_000_000_000), ms: None };
        self.ledger.apply(&BudgetGranted { caps, by: "person".into() }.into(), clock());
        self.ledger.apply(&AgentsAdmitted { run: "wf".into(), count: 1_000 }.into(), clock());
        self.agent(&lead, AgentStarted { spec: spec.clone() });
        self.agent(&lead, opened("Review everything in this repository and mend what is broken."));
        self.roster(RosterOpened { lead: lead.clone() });
        let subtasks: Vec<String> = (1..=self.workers).map(subtask).collect();
        let spec_of_run = RunSpec {
            run: self.run.to_string(),
            session: spec.session.clone(),
            lead,
            call: "call".into(),
            dir: "/work/project".into(),
            base: String::new(),
            voters: 1,
            keys: subtasks.iter().map(|subtask| format!("key {subtask}")).collect(),
            subtasks,
            notes: Vec::new(),
            dropped: Vec::new(),
            consent: "mode".into(),
        };
        self.run(RunStarted { spec: spec_of_run });
        for number in 0..self.agents.len() {
            self.start(number);
        }
        let busy = self.agents[0].clone();
        for _ in 0..5 * EARLIER_TURNS {
            self.step(1, &busy);
        }
        self.hear(SessionEvent::Ledger(Box::new(self.ledger.clone())));
    }

    fn start(&mut self, number: usize) {
        let agent = self.agents[number].clone();
        let spec = if number < self.workers {
            self.run(WorkerStarted { item: number as u32 + 1, agent: agent.clone() });
            self.spec.child(Role::Worker, &subtask(number + 1), 0)
        } else if number < self.workers + VERIFIERS {
            self.spec.child(Role::Verifier, &format!("verify: {}", subtask(number + 1)), 2)
        } else {
            let name = format!("mate-{number}");
            let role = "coder".to_owned();
            let by = LEAD.to_owned();
            let spawned = MemberSpawned {
                name: name.clone(),
                role: role.clone(),
                agent: agent.clone(),
                requires_plan: false,
                by,
            };
            self.roster(spawned);
            let isolation = convoke_kernel::Isolation::None;
            self.spec.teammate(Teammate { name, role, requires_plan: false, tools: None, isolation })
        };
        self.agent(&agent, AgentStarted { spec: spec.unwrap() });
        self.agent(&agent, opened(&format!("{}\n\n{}", subtask(number + 1), prose(800))));
        let amount = Amount { tokens: 20_000, nano: 40_000_000 };
        let reserved = RoomReserved {
            agent: agent.to_string(),
            call: 1,
            attempt: 1,
            request: amount,
            hand_back: amount,
            sending: None,
        };
        self.ledger.apply(&reserved.into(), clock());
    }

    /// Records the next event: of ten, one is of the lead, two of the busy agent, one of no agent, and the
    /// others of random agents.
    fn event(&mut self) {
        let number = taken(&mut self.numbers[0]);
        match number % 10 {
            0 => {
                let lead = self.lead.clone();
                self.step(0, &lead);
            }
            1 | 6 => self.step_of(0),
            3 => self.other(),
            _ => {
                let somebody = self.somebody();
                self.step_of(somebody);
            }
        }
    }

    /// Sends a piece of a reply: of the lead as long as it is asked, else of a random agent.
    fn piece(&mut self) {
        let number = taken(&mut self.numbers[1]);
        let somebody = self.somebody();
        let agent = match self.steps[0] % 5 == 1 && number.is_multiple_of(2) {
            true => self.lead.clone(),
            false => self.agents[somebody].clone(),
        };
        let piece = match number % 8 {
            0 => Piece::Began,
            1 | 2 => Piece::Thinking("which of these callers can hold the lock while it waits? ".into()),
            7 => Piece::Tool { name: "bash".into() },
            _ => Piece::Text("The second caller takes the lock before it `awaits`, so ".into()),
        };
        self.hear(SessionEvent::Live { agent, piece });
    }

    fn somebody(&mut self) -> usize {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % self.agents.len()
    }

    fn step_of(&mut self, number: usize) {
        let agent = self.agents[number].clone();
        self.step(number + 1, &agent);
    }

    /// The next step of a turn: asked, answered, a command begins and ends, and what it said is in the
    /// history.
    fn step(&mut self, place: usize, agent: &AgentId) {
        let step = taken(&mut self.steps[place]);
        let turn = step / 5 + 1;
        let id = format!("toolu_{}", step / 5);
        let command = format!("rg -n 'lock\\(\\)' crates/part_{turn}/src | head -40");
        let call = ToolCall {
            id: id.clone(),
            name: "bash".into(),
            input: Segment::encode(&json!({"command": command})),
        };
        let amount = Amount { tokens: 20_000 + 100 * u64::from(turn), nano: 40_000_000 };
        let is_fed = self.numbers[0] > 0;
        match step % 5 {
            0 => {
                let max_tokens = 8_000;
                let digest = "0".repeat(64);
                self.agent(
                    agent,
                    ModelCalled {
                        call: turn,
                        attempt: 1,
                        segments: 9,
                        max_tokens,
                        digest,
                        purpose: Purpose::Turn,
                    },
                );
                if is_fed {
                    let agent = agent.to_string();
                    self.ledger(RoomReserved {
                        agent,
                        call: turn,
                        attempt: 1,
                        request: amount,
                        hand_back: amount,
                        sending: None,
                    });
                }
            }
            1 => {
                self.agent(agent, ModelReplied { call: turn, reply: reply(turn, call), kept: Kept::Yes });
                if is_fed {
                    let agent = agent.to_string();
                    self.ledger(AttemptSettled {
                        agent,
                        call: turn,
                        attempt: 1,
                        spent: amount,
                        confirmed: true,
                        output_tokens: None,
                        said: None,
                    });
                }
            }
            2 => self.agent(agent, ToolStarted { id, name: call.name, input: call.input }),
            3 => {
                let result = ToolResult {
                    exit_code: Some(i32::from(turn.is_multiple_of(7))),
                    ..ToolResult::done(output(4_096))
                };
                self.agent(agent, ToolFinished { id, result });
            }
            _ => {
                let content = json!([{"type": "tool_result", "tool_use_id": id, "content": output(4_096)}]);
                let message = Segment::encode(&json!({"role": "user", "content": content}));
                self.agent(
                    agent,
                    ResultsAppended { message, hand_back: false, reminded: false, stuck: false },
                );
            }
        }
    }

    /// Letters, tasks and findings, one after the other.
    fn other(&mut self) {
        let number = taken(&mut self.numbers[2]);
        let round = number / 8;
        let mate = self.agents.len() - 1;
        let name = format!("mate-{mate}");
        let task = TaskId::derived(&[&round.to_string()]);
        let letter = Letter {
            id: MessageId::derived(&[&round.to_string()]),
            from: LEAD.into(),
            to: name.clone(),
            kind: LetterKind::Message,
            text: prose(600),
            urgent: false,
            order: round,
            at: clock(),
            request: None,
            approve: None,
            task: None,
        };
        match number % 8 {
            0 => self.board(TaskCreated {
                task,
                subject: format!("mend the lock of part {round}"),
                description: prose(400),
                criteria: Some("the tests pass".into()),
                blocked_by: Vec::new(),
                role: None,
                priority: 0,
                by: LEAD.into(),
            }),
            1 => self.roster(LetterPosted {
                id: letter.id,
                from: letter.from,
                to: letter.to,
                kind: letter.kind,
                urgent: false,
            }),
            2 => {
                self.board(TaskClaimed { task, name, agent: None, token: round + 1, until: clock() + 60_000 })
            }
            3 => {
                let message = Segment::encode(&json!({"role": "user", "content": letter.text}));
                let agent = self.agents[mate].clone();
                self.agent(&agent, MailDelivered { message, letters: vec![letter] });
            }
            4 => self.roster(LettersTaken { name, letters: vec![(letter.id, false)] }),
            5 => self.board(TaskFinished { task, name, result: prose(300) }),
            6 if self.workers > STAY => {
                let item = self.workers - round as usize % (self.workers - STAY);
                let mut result = ItemResult::bare(ItemStatus::Ok);
                result.report =
                    Some(Report { summary: prose(200), findings: vec![finding(round), finding(round + 1)] });
                result.agent = self.agents.get(item - 1).cloned();
                self.run(ItemEnded { item: item as u32, result });
            }
            7 if self.workers > STAY => {
                let item = self.workers - round as usize % (self.workers - STAY);
                let evidence = prose(300);
                let verdicts =
                    vec![Verdict::Confirmed { evidence: evidence.clone() }, Verdict::Refuted { evidence }];
                self.run(ItemJudged { item: item as u32, verdicts });
            }
            _ => self.step_of(0),
        }
    }
}

/// A number, which is the next one afterwards.
fn taken<T: Copy + From<u8> + std::ops::Add<Output = T>>(number: &mut T) -> T {
    let next = *number + T::from(1);
    std::mem::replace(number, next)
}
