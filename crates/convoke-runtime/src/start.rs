//! What a new lead is made of, as its caller says it. A lean one is offered only what its task has a word
//! for.

use std::path::{Path, PathBuf};

use convoke_kernel::{
    Approvals, Capabilities, Caps, Confinement, FanOut, Limits, Membership, Network, Sandbox, Thinking,
    wishes,
};

/// What a person chose about a new lead.
#[derive(Debug, Clone)]
pub struct Start {
    /// The model.
    pub model: String,
    /// The directory.
    pub dir: PathBuf,
    /// What model and endpoint accept.
    pub capabilities: Capabilities,
    /// Limits.
    pub limits: Limits,
    /// The caps of the session; the default has none.
    pub caps: Caps,
    /// How the lead and the agents below it are confined.
    pub confinement: Confinement,
    /// Which calls are allowed, forbidden or asked about.
    pub approvals: Approvals,
    /// How the lead fans out; without it, it works alone.
    pub fan_out: Option<FanOut>,
    /// The team it can make; without it, it has no tools for one.
    pub team: Option<Membership>,
    /// Text added to the system prompt.
    pub system: Option<String>,
    /// Whether the lead is lean: a short prompt, and only the tools that the task or the person asks for.
    pub lean: Option<Lean>,
}

/// What the person asked for beside the task, where a lead is lean. That the mode is on or workflows are
/// allowed stands in [`FanOut`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lean {
    /// A team.
    pub team: bool,
}

impl Start {
    /// The same without what was not asked for, where the lead is lean. It is settled once, from the first
    /// thing that is said: the tools of a conversation never change.
    pub(crate) fn for_task(mut self, text: &str) -> Self {
        let Some(lean) = self.lean else { return self };
        let wishes = wishes(text);
        if !(lean.team || wishes.team)
            && let Some(memory) = self.team.take().and_then(|team| team.project)
        {
            let own = self.system.take().map(|own| format!("\n\n{own}")).unwrap_or_default();
            self.system = Some(memory + &own);
        }
        let agreed = self.fan_out.as_ref().is_some_and(|fan_out| fan_out.mode || fan_out.consent);
        // Teammates are made of what workers are made of.
        if !agreed && !wishes.agents && self.team.is_none() {
            self.fan_out = None;
        }
        self
    }

    /// A confined lead with cautious assumptions about the model; `convoke_claude::capabilities` knows
    /// better.
    pub fn new(model: impl Into<String>, dir: impl AsRef<Path>) -> Self {
        let capabilities = Capabilities {
            system_role: false,
            anthropic_tools: false,
            cache_marks: false,
            thinking: Thinking::Omit,
            effort: None,
            max_output: 8_192,
            window: 128_000,
        };
        let dir = dir.as_ref().to_owned();
        Self {
            model: model.into(),
            dir,
            capabilities,
            limits: Limits::default(),
            caps: Caps::default(),
            confinement: Confinement {
                sandbox: Sandbox::Workspace,
                network: Network::Off,
                ..Confinement::default()
            },
            approvals: Approvals::default(),
            fan_out: None,
            team: None,
            system: None,
            lean: None,
        }
    }
}
