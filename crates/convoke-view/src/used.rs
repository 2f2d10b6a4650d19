//! What agents used together.

use convoke_kernel::{Event, Kept, Summary, Usage};

/// What agents used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// Tokens, by kind.
    pub usage: Usage,
    /// `None` where a price is not known.
    pub cost_nano: Option<u64>,
    /// Replies of the model.
    pub turns: u32,
    /// Commands that were run.
    pub commands: u32,
}

impl Default for Used {
    fn default() -> Self {
        Self { usage: Usage::default(), cost_nano: Some(0), turns: 0, commands: 0 }
    }
}

impl Used {
    /// What these agents used.
    pub fn of<'a>(agents: impl IntoIterator<Item = &'a Summary>) -> Self {
        let mut used = Self::default();
        for Summary { usage, cost_nano, turns, commands, .. } in agents {
            used.add(&Self { usage: *usage, cost_nano: *cost_nano, turns: *turns, commands: *commands });
        }
        used
    }

    /// Adds what others used.
    pub fn add(&mut self, more: &Self) {
        self.usage.add(&more.usage);
        self.cost_nano = self.cost_nano.zip(more.cost_nano).map(|(sum, cost)| sum.saturating_add(cost));
        self.turns = self.turns.saturating_add(more.turns);
        self.commands = self.commands.saturating_add(more.commands);
    }

    /// Takes in an event of one of the agents: what a reply used, and that it was a turn if it was kept.
    /// Commands are counted where calls are told apart.
    pub fn heard(&mut self, event: &Event) {
        if let Event::ModelReplied(e) = event {
            let turns = u32::from(e.kept == Kept::Yes);
            let usage = e.reply.usage;
            self.add(&Self { usage, cost_nano: e.reply.cost_nano, turns, commands: 0 });
        }
    }

    /// All tokens, in and out.
    pub fn tokens(&self) -> u64 {
        self.usage.prompt_tokens().saturating_add(self.usage.output_tokens)
    }
}
