//! Rules about calls: which are allowed, refused or asked about.

use convoke_kernel::Decision;

/// A rule about the calls of agents. One without a condition is about every call.
///
/// Refusing goes before asking, and asking before allowing, whatever the order of the rules. A rule is a help
/// and not the wall: what a command can reach is decided by the sandbox.
///
/// ```
/// use convoke::Rule;
/// let rules = [Rule::deny().command("git push"), Rule::ask().tool("edit").path("src/**")];
/// # let _ = rules;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub(crate) rule: convoke_kernel::Rule,
}

impl Rule {
    /// Allows calls without asking.
    pub fn allow() -> Self {
        Self::of(Decision::Allow)
    }

    /// Refuses calls.
    pub fn deny() -> Self {
        Self::of(Decision::Deny)
    }

    /// Asks about calls: [`SessionBuilder::on_question`](crate::SessionBuilder::on_question) answers. Without
    /// an answer they are refused.
    pub fn ask() -> Self {
        Self::of(Decision::Ask)
    }

    /// Only calls of this tool: `bash`, `edit`, `view`, `glob`, `grep`, or one of your own.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.rule.tool = Some(name.into());
        self
    }

    /// Only commands that begin with these words.
    #[must_use]
    pub fn command(mut self, words: impl Into<String>) -> Self {
        self.rule.command = Some(words.into());
        self
    }

    /// Only files that this pattern names, relative to the directory.
    #[must_use]
    pub fn path(mut self, pattern: impl Into<String>) -> Self {
        self.rule.path = Some(pattern.into());
        self
    }

    fn of(decision: Decision) -> Self {
        Self { rule: convoke_kernel::Rule { tool: None, command: None, path: None, decision } }
    }
}
