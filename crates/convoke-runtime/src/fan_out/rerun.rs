//! Runs a cited command again where no record can vouch for it: on a throwaway copy of the tree, in the
//! read-only policy, with a short deadline. Where nothing can be confined nothing is run.

use std::collections::HashMap;
use std::sync::Arc;

use convoke_kernel::{Network, Ran, Role, Sandbox, ToolRequest};
use tokio_util::sync::CancellationToken;

use crate::bash::Bash;
use crate::children::Parent;
use crate::confine::remove_private;
use crate::stop::StopLevel;

/// More commands than this are not run again for one report.
const MOST: usize = 5;

/// A check is no work: what takes longer than this is left to the verifiers.
const DEADLINE_MS: u64 = 20_000;

/// What these commands print now. `name` tells this check apart from others of the session.
pub(super) async fn outputs(
    parent: &Parent,
    name: &str,
    commands: Vec<String>,
) -> HashMap<String, Vec<String>> {
    let mut printed = HashMap::new();
    let Some(mut spec) = parent.spec.child(Role::Verifier, "check", 0) else { return printed };
    if commands.is_empty() || spec.confinement.sandbox != Sandbox::ReadOnly {
        return printed;
    }
    spec.limits.bash_timeout_ms = spec.limits.bash_timeout_ms.min(DEADLINE_MS);
    // A check changes nothing anywhere, so it has no network either.
    spec.confinement.network = Network::Off;
    let approvals = spec.approvals.clone();
    let forbidden = &parent.config.forbidden;
    let dir = spec.dir.clone();
    // What a person wants to be asked about, or has refused, is not done in passing.
    let may = |command: &String| {
        let request = ToolRequest::Bash { command: command.clone() };
        approvals.allows(&request, &dir) && forbidden.forbids(&request, &dir).is_none()
    };
    let cut = CancellationToken::new();
    let mut stop = parent.stop.clone();
    let stopping = cut.clone();
    let watch = tokio::spawn(async move {
        let _ = stop.above(StopLevel::Run).await;
        stopping.cancel();
    });
    let mut bash = Bash::new(Arc::clone(&parent.config), name, spec, None);
    for (number, command) in commands.into_iter().filter(may).take(MOST).enumerate() {
        let result = bash.run(&number.to_string(), command.clone(), cut.clone()).await;
        if result.ran == Ran::Done {
            printed.insert(command, vec![result.text]);
        }
    }
    watch.abort();
    bash.end().await;
    // These outputs are not read again.
    let _ = tokio::fs::remove_dir_all(parent.config.outputs.join(name)).await;
    remove_private(parent.config.confine.private_of(name)).await;
    printed
}
