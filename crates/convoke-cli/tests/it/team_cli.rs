//! `convoke team`, `tasks`, `mail` and `export` from another terminal: on journals that another process
//! wrote, while no process drives them or while one does. Nothing here asks a model.

mod board;
mod files;
mod host;
mod mail;
mod roster;

use std::path::Path;

use convoke_journal::{Change, Changed, KeyedInput, StreamId};
use convoke_kernel::{
    AgentId, AgentSpec, Capabilities, Isolation, LEAD, LeadSettings, Limits, Membership, MessageId, Roster,
    RosterEntry, SessionId, Teammate, Thinking,
};
use serde_json::{Value, json};

use crate::support::{Finished, TestHome, Writer};

/// A place with the sessions that a test wrote.
pub(crate) struct TeamPlace {
    pub(crate) place: TestHome,
    pub(crate) writer: Writer,
}

/// When everything in here happened.
const AT: u64 = 1_794_776_640_000;

impl TeamPlace {
    /// A session whose lead has answered and works alone.
    pub(crate) async fn alone() -> Self {
        let place = TestHome::new();
        let writer = Writer::open(&place.journal_file()).await;
        let team = Self { place, writer };
        team.answered(1).await;
        team
    }

    /// The same with two teammates, alice (coder) and bob (tester), which no process has driven yet.
    pub(crate) async fn new() -> Self {
        let team = Self::alone().await;
        team.spawn("alice", "coder").await;
        team.spawn("bob", "tester").await;
        team
    }

    /// One more run here that has been answered.
    pub(crate) async fn answered(&self, number: u8) {
        let mut lead = self.writer.start(number, &self.place.path("work"), "lead a team").await;
        lead.answer(1, "Done.").await;
        lead.release().await;
    }

    pub(crate) async fn spawn(&self, name: &str, role: &str) {
        let agent = AgentId::derived(&["teammate", session(1).as_str(), name]);
        let by = LEAD.to_owned();
        let role = role.to_owned();
        let spawn = RosterEntry::Spawn {
            name: name.parse().unwrap(),
            role: role.clone(),
            agent: agent.clone(),
            requires_plan: true,
            by,
        };
        self.roster(vec![RosterEntry::Open { lead: lead(1) }, spawn]).await;
        let requires_plan = true;
        let tools = None;
        let isolation = Isolation::default();
        let teammate = Teammate { name: name.to_owned(), role, requires_plan, tools, isolation };
        let spec = leading(&self.place.path("work")).teammate(teammate).unwrap();
        let body = json!({"start": spec, "say": "Do what you are asked."}).to_string();
        let input = KeyedInput { stream: StreamId::from(&agent), key: "start".into(), body };
        self.writer.journal.submit(&input, AT).await.unwrap();
    }

    /// Makes entries of the roster, as a runtime would.
    pub(crate) async fn roster(&self, entries: Vec<RosterEntry>) {
        let stream = StreamId::new(format!("roster:{}", session(1))).unwrap();
        let change = Change::new(move |state| {
            let mut roster: Roster =
                state.map_or_else(Roster::default, |state| serde_json::from_str(state).unwrap());
            let mut events = Vec::new();
            for entry in &entries {
                for event in roster.decide(entry, AT).map_err(|refusal| refusal.to_string())? {
                    roster.apply(&event, AT);
                    events.push(event.encode().unwrap());
                }
            }
            Ok(Changed { state: serde_json::to_string(&roster).unwrap(), events })
        });
        self.writer.journal.update(&stream, AT, &change).await.unwrap();
    }

    /// A plan of alice's that waits for approval.
    pub(crate) async fn plan(&self) -> MessageId {
        let request = MessageId::derived(&["plan"]);
        self.roster(vec![RosterEntry::AskPlan {
            request: request.clone(),
            from: "alice".into(),
            task: None,
        }])
        .await;
        request
    }

    /// Runs a command that has to end like this.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32, args: &[&str]) -> Finished {
        let got = self.place.convoke(args);
        assert_eq!(got.code, code, "{args:?}: {}{}", got.out, got.err);
        got
    }

    /// What a command prints with `--output json`.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let got = self.ends(0, &[args, &["--output", "json"]].concat());
        serde_json::from_str(&got.out).unwrap_or_else(|error| panic!("{error}: {}", got.out))
    }

    /// A command that is refused, with what it says.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, args: &[&str], says: &str) {
        let got = self.ends(code, args);
        assert_eq!(got.out, "", "{args:?}");
        assert!(got.err.contains(says), "{args:?}: {}", got.err);
    }
}

pub(crate) fn session(number: u8) -> SessionId {
    SessionId::from_bits([number; 10])
}

pub(crate) fn lead(number: u8) -> AgentId {
    AgentId::from_bits([number; 10])
}

/// A lead that can make a team.
fn leading(dir: &Path) -> AgentSpec {
    let name = LEAD.to_owned();
    let role = LEAD.to_owned();
    let team = "default".to_owned();
    AgentSpec::lead(LeadSettings {
        session: session(1),
        dir: dir.to_string_lossy().into_owned(),
        model: "claude-opus-4-8".into(),
        capabilities: Capabilities {
            system_role: true,
            anthropic_tools: true,
            cache_marks: true,
            thinking: Thinking::Adaptive,
            effort: None,
            max_output: 128_000,
            window: 1_000_000,
        },
        limits: Limits::default(),
        rates: None,
        confinement: Default::default(),
        approvals: Default::default(),
        fan_out: None,
        team: Some(Membership { name, role, team, requires_plan: false, compact_at: 750_000, project: None }),
        extra_system: None,
    })
}
