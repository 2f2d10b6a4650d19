//! A new pass, and what it is served of earlier ones: a call stands for an equal one that was made before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::answer::{self, Breaker};
use super::event::{CallResult, KeptFrom, MadeCall, PassBegan};
use super::{CallState, IllegalProgramEvent, Program, illegal};
use crate::run::{ItemStatus, Reused};

/// A call that earlier passes made: a call of this pass with the same content may stand for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Earlier {
    occurrence: u32,
    path: String,
    /// What it came to, if that can be served again.
    result: Option<CallResult>,
    /// How often an agent for it was given up.
    attempt: u32,
    /// Whether its agent was turned away from outside, and can go on where it stands.
    turned_away: bool,
    /// Whether this run paid for it.
    own: bool,
}

/// Which call of earlier passes a new one stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stand {
    /// Which of the equal ones it is.
    pub occurrence: u32,
    /// How often an agent for it was given up.
    pub attempt: u32,
    /// What it came to before, if that can be served.
    pub served: Option<CallResult>,
}

impl Program {
    pub(super) fn begin_pass(&mut self, e: &PassBegan) -> Result<(), IllegalProgramEvent> {
        if e.pass != self.pass + 1 {
            return Err(illegal(format!("pass {} cannot follow pass {}", e.pass, self.pass)));
        }
        for call in std::mem::take(&mut self.calls) {
            let CallState { made, result, .. } = Arc::unwrap_or_clone(call);
            if made.kind.is_kept() {
                self.remember(made, result);
            }
        }
        self.pass = e.pass;
        self.why = Some(e.why.clone());
        self.budget_total = e.budget_total.or(self.budget_total);
        self.answers = Vec::new();
        self.steps = 0;
        self.fed = 0;
        self.said = Vec::new();
        self.end = None;
        self.declined = None;
        self.stopped = None;
        self.status = None;
        self.closed_at = None;
        self.taken = BTreeMap::new();
        self.breaker = Breaker::default();
        Ok(())
    }

    /// Keeps what a call of the pass that is over came to.
    fn remember(&mut self, made: MadeCall, result: Option<CallResult>) {
        let all = self.earlier.entry(made.key).or_default();
        let at = all.iter().position(|earlier| earlier.occurrence == made.occurrence);
        let earlier = match at.and_then(|at| all.get_mut(at)) {
            Some(earlier) => earlier,
            None => {
                let fresh = Earlier {
                    occurrence: made.occurrence,
                    path: String::new(),
                    result: None,
                    attempt: 0,
                    turned_away: false,
                    own: true,
                };
                all.push(fresh);
                let last = all.len() - 1;
                &mut all[last]
            }
        };
        earlier.path = made.path;
        earlier.attempt = made.attempt;
        earlier.turned_away = false;
        let Some(mut result) = result else { return };
        if result.is_sound() {
            // What was served before is still what it was.
            result.kept.get_or_insert(KeptFrom { pass: self.pass, call: made.call });
            earlier.own = result.reused.is_none();
            earlier.result = Some(result);
            return;
        }
        match &result.status {
            ItemStatus::Failed { kind, .. } if answer::goes_on(*kind) => earlier.turned_away = true,
            ItemStatus::Failed { .. } | ItemStatus::Ok => earlier.attempt += 1,
            ItemStatus::Skipped { .. } => {}
        }
    }

    /// Which earlier call a new one with this content, made at this place, stands for. `beside` are those
    /// that the same step has taken. The one from the same place comes first, then one that can be served,
    /// then one that cannot, then a new one: so nothing that was done is done again, and nothing is served
    /// twice.
    pub fn stand(&self, key: &str, path: &str, beside: &BTreeSet<u32>) -> Stand {
        let taken = self.taken.get(key);
        let is_free = |occurrence: u32| {
            !beside.contains(&occurrence) && taken.is_none_or(|taken| !taken.contains(&occurrence))
        };
        let all = self.earlier.get(key).map(Vec::as_slice).unwrap_or_default();
        let free = || all.iter().filter(|earlier| is_free(earlier.occurrence));
        let found = free()
            .find(|earlier| earlier.path == path)
            .or_else(|| free().find(|earlier| earlier.result.is_some()))
            .or_else(|| free().next());
        match found {
            Some(earlier) => {
                let Earlier { occurrence, attempt, .. } = *earlier;
                Stand { occurrence, attempt, served: earlier.result.clone() }
            }
            None => {
                let known = all.iter().map(|earlier| earlier.occurrence);
                let used = beside.iter().chain(taken.into_iter().flatten()).copied();
                let occurrence = known.chain(used).max().map_or(0, |last| last + 1);
                Stand { occurrence, attempt: 0, served: None }
            }
        }
    }

    /// Whether an agent for this call ended in an earlier pass only because it was turned away, and goes on
    /// where it stands.
    pub fn goes_on(&self, key: &str, occurrence: u32) -> bool {
        let all = self.earlier.get(key).into_iter().flatten();
        all.filter(|earlier| earlier.occurrence == occurrence).any(|earlier| earlier.turned_away)
    }

    /// Has what another run came to served in this one, behind what this one did itself.
    pub fn serve_from(&mut self, other: &Program, at: u64) {
        let session = other.spec().map(|spec| spec.session.to_string()).unwrap_or_default();
        let same_agents = self.origin() == other.origin();
        for (key, theirs) in &other.earlier {
            let ours = self.earlier.entry(key.clone()).or_default();
            for earlier in theirs {
                if ours.iter().any(|own| own.occurrence == earlier.occurrence) {
                    continue;
                }
                let mut result = earlier.result.clone();
                if let Some(result) = &mut result {
                    result.reused.get_or_insert(Reused { session: session.clone(), at });
                    result.kept = None;
                }
                let theirs = Earlier { result, own: false, ..earlier.clone() };
                // Agents that are not this run's cannot go on: what they gave up is begun anew.
                let begun_anew = Earlier { attempt: 0, turned_away: false, ..theirs.clone() };
                ours.push(if same_agents { theirs } else { begun_anew });
            }
        }
    }

    /// What this run paid in earlier passes for what this pass has not asked for yet.
    pub fn kept_tokens(&self) -> u64 {
        let mut sum = 0u64;
        for (key, all) in &self.earlier {
            let taken = self.taken.get(key);
            let open = |earlier: &&Earlier| {
                earlier.own && taken.is_none_or(|taken| !taken.contains(&earlier.occurrence))
            };
            let kept = all.iter().filter(open).filter_map(|earlier| earlier.result.as_ref());
            sum = kept.map(tokens).fold(sum, u64::saturating_add);
        }
        sum
    }
}

/// What a result cost, as the budget counts.
pub(super) fn tokens(result: &CallResult) -> u64 {
    result.spent.usage.prompt_tokens().saturating_add(result.spent.usage.output_tokens)
}
