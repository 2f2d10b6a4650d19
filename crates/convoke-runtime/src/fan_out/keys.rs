//! Results by content: the key holds everything that affects an answer, and nothing else.

use std::collections::HashMap;

use convoke_kernel::{AgentSpec, ItemResult, Report, Role, VoterResult, verifier_prompt, worker_prompt};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Changes whenever equal keys would no longer mean equal work.
const FORMAT: &str = "result-1";

/// The key of what an agent of this make says to this prompt, over a directory with this fingerprint.
/// `occurrence` tells equal ones of one run apart.
pub(super) fn key(spec: &AgentSpec, prompt: &str, base: &str, occurrence: u32) -> String {
    let mut hasher = Sha256::new();
    let mut put = |part: &str| {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    };
    for part in [FORMAT, prompt, base, &spec.model, spec.system.as_str(), spec.tools.as_str()] {
        put(part);
    }
    // Effort and thinking are among the parameters; marks for the cache change no answer.
    for param in spec.params.iter().filter(|param| param.name != "cache_control") {
        put(&param.name);
        put(param.value.as_str());
    }
    put(&spec.limits.max_turns.to_string());
    put(&occurrence.to_string());
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The keys of one run's work. What its agents are made of differs in nothing that affects an answer, so it
/// is put together once for all of them.
pub(super) struct Keys<'a> {
    lead: &'a AgentSpec,
    base: &'a str,
    worker: Option<AgentSpec>,
    /// By how many findings there are to judge.
    verifiers: HashMap<u32, Option<AgentSpec>>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(lead: &'a AgentSpec, base: &'a str) -> Self {
        Self { lead, base, worker: lead.child(Role::Worker, "", 0), verifiers: HashMap::new() }
    }

    /// The key of the result of a subtask; none if the lead may start no worker.
    pub(super) fn work(&self, subtask: &str) -> Option<String> {
        Some(key(self.worker.as_ref()?, &worker_prompt(subtask), self.base, 0))
    }

    /// The key of what this voter says about the findings of a subtask.
    pub(super) fn vote(&mut self, subtask: &str, report: &Report, voter: u32) -> Option<String> {
        let findings = report.findings.len() as u32;
        let lead = self.lead;
        let verifier =
            self.verifiers.entry(findings).or_insert_with(|| lead.child(Role::Verifier, "", findings));
        Some(key(verifier.as_ref()?, &verifier_prompt(subtask, report), self.base, voter))
    }
}

/// The same without a number: equal ones of a program are told apart later.
pub(crate) fn content_key(spec: &AgentSpec, prompt: &str, base: &str) -> String {
    key(spec, prompt, base, 0)
}

/// A remembered result, and the session that paid for it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Remembered<T> {
    /// The session.
    pub(crate) session: String,
    /// The result.
    pub(crate) result: T,
}

/// What may be remembered, and taken for an equal one.
pub(super) trait Sound: Serialize + for<'de> Deserialize<'de> {
    /// Whether it is whole and worth what it looks.
    fn is_sound(&self) -> bool;
}

impl Sound for ItemResult {
    fn is_sound(&self) -> bool {
        ItemResult::is_sound(self)
    }
}

impl Sound for VoterResult {
    fn is_sound(&self) -> bool {
        self.ballot.is_some() && self.failure.is_none()
    }
}
