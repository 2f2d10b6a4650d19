//! What a plain task is likely to cost: a bracket from what agents of the same model cost in this journal,
//! role by role, and from a table where too few were seen. Pure but for the reading of the catalog it is
//! given; it says what each figure rests on.

use std::collections::BTreeSet;

use convoke_claude::{Model, cost};
use convoke_kernel::{Role, Status, Summary, Usage};
use convoke_runtime::SeenCost;

use crate::catalog::ListedSession;

/// So many agents of a role make a figure; fewer are chance.
const ENOUGH: usize = 3;

/// What is assumed of a role where nothing was seen.
struct Assumed {
    role: Role,
    /// How many there are of it in a task.
    number: (u32, u32),
    turns: (u32, u32),
    /// Tokens of its instructions and tools.
    base: u64,
    /// Tokens that it reads in a turn, and that it writes in one.
    read: u64,
    written: u64,
}

/// The table: a task that the lead does nearly alone, and one that it has ten workers review with one
/// verifier for every result.
const TABLE: [Assumed; 3] = [
    Assumed { role: Role::Lead, number: (1, 1), turns: (3, 8), base: 11_000, read: 2_000, written: 800 },
    Assumed { role: Role::Worker, number: (0, 10), turns: (3, 8), base: 4_000, read: 2_500, written: 600 },
    Assumed { role: Role::Verifier, number: (0, 10), turns: (2, 5), base: 4_000, read: 2_000, written: 500 },
];

/// One role of an estimate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) role: &'static str,
    pub(crate) number: (u32, u32),
    /// What one of them costs, in nano-dollars; `None` where the price is not known.
    pub(crate) each: Option<(u64, u64)>,
    /// How many of this role and model were seen in the journal; the table counts where there are too few.
    pub(crate) seen: usize,
}

impl Part {
    /// Whether its figure rests on what was seen.
    pub(crate) fn is_seen(&self) -> bool {
        self.seen >= ENOUGH
    }
}

/// What a task is likely to cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub(crate) parts: Vec<Part>,
    /// In all, in nano-dollars and within the cap; `None` where a price is not known.
    pub(crate) nano: Option<(u64, u64)>,
}

/// What an estimate is made for.
pub(crate) struct Asked<'a> {
    pub(crate) lead: &'a Model,
    pub(crate) worker: &'a Model,
    pub(crate) voters: u32,
    /// Whether the lead may fan out.
    pub(crate) fans_out: bool,
    pub(crate) cap_nano: Option<u64>,
}

/// An estimate of a task, from the sessions of the journal.
pub(crate) fn estimate(asked: &Asked<'_>, sessions: &[ListedSession]) -> Estimate {
    let parts: Vec<Part> = TABLE.iter().map(|assumed| part(asked, assumed, sessions)).collect();
    let sum = |pick: fn(&(u64, u64)) -> u64, number: fn(&(u32, u32)) -> u32| {
        parts.iter().try_fold(0u64, |sum, part| {
            let all = u64::from(number(&part.number));
            // A role of which there is none costs nothing, whatever its price.
            if all == 0 {
                Some(sum)
            } else {
                Some(sum.saturating_add(all.saturating_mul(pick(part.each.as_ref()?))))
            }
        })
    };
    let most = asked.cap_nano.unwrap_or(u64::MAX);
    let nano = sum(|each| each.0, |number| number.0).zip(sum(|each| each.1, |number| number.1));
    Estimate { nano: nano.map(|(low, high)| (low.min(most), high.min(most))), parts }
}

fn part(asked: &Asked<'_>, assumed: &Assumed, sessions: &[ListedSession]) -> Part {
    let model = if assumed.role == Role::Lead { asked.lead } else { asked.worker };
    let mut costs = costs(sessions, assumed.role, &model.id);
    let mut numbers: Vec<u32> = Vec::new();
    for listed in sessions {
        let same: Vec<_> = like(listed, assumed.role, &model.id).collect();
        // Only a lead that ended says how many it starts; in a program's run no lead decides.
        let lead = &listed.lead().summary;
        if lead.model == asked.lead.id
            && lead.status == Status::Done
            && listed.own.is_none()
            && lead.turns > 0
        {
            numbers.push(u32::try_from(same.len()).unwrap_or(u32::MAX));
        }
    }
    let seen = costs.len();
    let number = match assumed.role {
        Role::Lead => assumed.number,
        Role::Verifier if asked.voters == 0 => (0, 0),
        _ if !asked.fans_out => (0, 0),
        // However many the tasks of before took, this one may be answered by the lead alone.
        _ if numbers.len() >= ENOUGH => (0, middle(&mut numbers).1),
        Role::Verifier => (assumed.number.0, assumed.number.1.saturating_mul(asked.voters)),
        _ => assumed.number,
    };
    let each = if seen >= ENOUGH { Some(middle(&mut costs)) } else { by_table(model, assumed) };
    Part { role: assumed.role.word(), number, each, seen }
}

/// The agents of a session that have this role and this model.
fn like<'a>(listed: &'a ListedSession, role: Role, model: &'a str) -> impl Iterator<Item = &'a Summary> {
    listed.agents.iter().map(|entry| &entry.summary).filter(move |one| one.role == role && one.model == model)
}

/// What agents of this role and model cost that ended well.
fn costs(sessions: &[ListedSession], role: Role, model: &str) -> Vec<u64> {
    let done =
        sessions.iter().flat_map(|listed| like(listed, role, model)).filter(|one| one.status == Status::Done);
    done.filter_map(|one| one.cost_nano).collect()
}

/// What agents of programs were seen to cost, each role and model of which there were enough.
pub(crate) fn seen_costs(sessions: &[ListedSession]) -> Vec<SeenCost> {
    let models: BTreeSet<&str> =
        sessions.iter().flat_map(|listed| &listed.agents).map(|entry| entry.summary.model.as_str()).collect();
    let mut all = Vec::new();
    for role in [Role::Callee, Role::Verifier] {
        for model in &models {
            let mut costs = costs(sessions, role, model);
            let seen = costs.len();
            if seen >= ENOUGH {
                all.push(SeenCost { role, model: (*model).to_owned(), nano: middle(&mut costs), seen });
            }
        }
    }
    all
}

/// The middle half of what was seen: its first and its third quarter.
fn middle<T: Ord + Copy + Default>(seen: &mut [T]) -> (T, T) {
    seen.sort_unstable();
    let at = |part: usize| seen.get(seen.len().saturating_sub(1) * part / 4).copied().unwrap_or_default();
    (at(1), at(3))
}

fn by_table(model: &Model, assumed: &Assumed) -> Option<(u64, u64)> {
    let of = |turns: u32| {
        let mut before = 0;
        let mut new = assumed.base;
        let mut sum = 0u64;
        for _ in 0..turns {
            // What was sent before is read from the cache, and what is new is written to it.
            let usage = Usage {
                cache_write_5m_tokens: new,
                cache_read_tokens: before,
                output_tokens: assumed.written,
                ..Usage::default()
            };
            sum = sum.saturating_add(cost(model, &usage)?);
            before += new;
            new = assumed.read + assumed.written;
        }
        Some(sum)
    };
    Some((of(assumed.turns.0)?, of(assumed.turns.1)?))
}

#[cfg(test)]
mod tests {
    use convoke_claude::Models;

    use super::*;

    fn asked<'a>(model: &'a Model, fans_out: bool, cap: Option<u64>) -> Asked<'a> {
        Asked { lead: model, worker: model, voters: 1, fans_out, cap_nano: cap }
    }

    #[test]
    fn without_anything_seen_the_table_counts_and_the_cap_is_the_most() {
        let model = Models::builtin().get("claude-opus-4-8");
        let whole = estimate(&asked(&model, true, None), &[]);
        let (low, high) = whole.nano.unwrap();
        assert!(0 < low && low < high, "{whole:?}");
        assert!(whole.parts.iter().all(|part| !part.is_seen() && part.each.is_some()));
        assert_eq!(estimate(&asked(&model, true, Some(low + 1)), &[]).nano, Some((low, low + 1)));
        let alone = estimate(&asked(&model, false, None), &[]);
        assert_eq!(alone.parts[1].number, (0, 0));
        assert_eq!(alone.nano, alone.parts[0].each);
        let unknown = Models::builtin().get("somebody-elses-model");
        assert_eq!(estimate(&asked(&unknown, true, None), &[]).nano, None);
    }

    #[test]
    fn the_middle_half_of_what_was_seen_is_the_bracket() {
        assert_eq!(middle(&mut [9u64, 1, 5, 3, 7]), (3, 7));
        assert_eq!(middle(&mut [4u64, 4, 4]), (4, 4));
        assert_eq!(middle::<u64>(&mut []), (0, 0));
    }
}
