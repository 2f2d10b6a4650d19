//! How far an agent's commands and file tools reach: chosen by a person for the session, narrowed by role,
//! recorded in the agent's spec. `convoke-sandbox` enforces it.

use serde::{Deserialize, Serialize};

use crate::spec::Role;

/// What commands may write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// A throwaway copy of the tree and a private temporary directory; the tree itself stays as it is.
    ReadOnly,
    /// Everything below the working directory but git's own files.
    Workspace,
    /// Everything that the person who started Convoke may write. Only a person can choose it.
    #[default]
    Off,
}

impl Sandbox {
    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Sandbox::ReadOnly => "read-only",
            Sandbox::Workspace => "workspace",
            Sandbox::Off => "off",
        }
    }

    /// Whether what its commands write stays when they are done.
    pub fn writes(self) -> bool {
        self != Sandbox::ReadOnly
    }
}

/// What commands may reach over the network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Nothing.
    Off,
    /// These hosts, by name.
    Hosts(Vec<String>),
    /// Everything.
    #[default]
    On,
}

/// How an agent is confined. The default is what agents were before there was a sandbox: not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// What commands may write.
    pub sandbox: Sandbox,
    /// What they may reach.
    pub network: Network,
    /// The layers that hold it, as they were found at the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<String>,
    /// What these layers do not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weaker: Vec<String>,
}

/// Where a one-shot sub-agent works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the working directory itself, one writer at a time.
    #[default]
    None,
    /// In a throwaway copy of it.
    Copy,
    /// In a git worktree of its own.
    Worktree,
}

impl Confinement {
    /// The confinement of an agent below one that is confined like this. It is never wider.
    pub(crate) fn of_child(&self, role: Role, isolation: Isolation) -> Self {
        let wanted = match (role, isolation) {
            (Role::Worker | Role::Verifier, _) | (_, Isolation::Copy) => Sandbox::ReadOnly,
            (Role::Lead | Role::Task, Isolation::None | Isolation::Worktree) => self.sandbox,
            (Role::Callee | Role::Teammate, Isolation::None | Isolation::Worktree) => self.sandbox,
        };
        let sandbox = match (self.sandbox, wanted) {
            // A person chose no sandbox, so nothing is promised further down either.
            (Sandbox::Off, _) => Sandbox::Off,
            (Sandbox::ReadOnly, _) | (_, Sandbox::ReadOnly) => Sandbox::ReadOnly,
            (Sandbox::Workspace, Sandbox::Workspace | Sandbox::Off) => Sandbox::Workspace,
        };
        Self { sandbox, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(own: Sandbox, role: Role, isolation: Isolation, expected: Sandbox) {
        let own = Confinement { sandbox: own, network: Network::Off, ..Confinement::default() };
        let child = own.of_child(role, isolation);
        assert_eq!(
            (child.sandbox, child.network),
            (expected, Network::Off),
            "{own:?} {role:?} {isolation:?}"
        );
    }

    #[test]
    fn w76_a_child_is_narrowed_by_its_role_and_never_widened() {
        use {Isolation as I, Role as R, Sandbox as S};
        check(S::Workspace, R::Worker, I::None, S::ReadOnly);
        check(S::Workspace, R::Verifier, I::None, S::ReadOnly);
        for role in [R::Task, R::Callee] {
            check(S::Workspace, role, I::None, S::Workspace);
            check(S::Workspace, role, I::Copy, S::ReadOnly);
            check(S::Workspace, role, I::Worktree, S::Workspace);
        }
        for isolation in [I::None, I::Copy, I::Worktree] {
            for role in [R::Worker, R::Verifier, R::Task, R::Callee] {
                check(S::ReadOnly, role, isolation, S::ReadOnly);
                check(S::Off, role, isolation, S::Off);
            }
        }
    }
}
