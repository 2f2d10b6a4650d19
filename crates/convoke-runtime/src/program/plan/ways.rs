//! Goes through a program on every way that its answers open, and puts the ways together to a bracket. What
//! one way is, is drawn up elsewhere.

use std::collections::BTreeMap;

use super::draw::{Draw, PLENTY, Seen};
use super::{Plan, PlanEnd, PlanFor, PlanGroup, PlanPass, pass};
use crate::interpreter::InterpreterError;

/// Ways at once; each is a process.
const AT_ONCE: usize = 4;
/// Ways after which it is enough.
const MOST_WAYS: usize = 48;
/// Ways with the most agents that are tried again with longer lists.
const PROBED: usize = 4;

/// One way, and how it was gone.
pub(super) struct Gone {
    pub(super) draw: Draw,
    pub(super) pass: PlanPass,
    pub(super) seen: Seen,
}

/// Goes every way.
pub(super) async fn explore(asked: &PlanFor<'_>) -> Result<Plan, InterpreterError> {
    let mut gone: Vec<Gone> = Vec::new();
    let mut seen: Seen = Seen::default();
    let mut cut = false;
    loop {
        let mut ways = Vec::new();
        for draw in seen.ways(asked.budget_total.is_some()) {
            if !ways.contains(&draw) && gone.iter().all(|one| one.draw != draw) {
                ways.push(draw);
            }
        }
        if gone.len() + ways.len() > MOST_WAYS {
            cut = true;
            ways.truncate(MOST_WAYS.saturating_sub(gone.len()));
        }
        if ways.is_empty() {
            break;
        }
        let new = go(asked, &ways).await?;
        new.iter().for_each(|one| seen.add(one.seen));
        gone.extend(new);
    }
    let open = why_open(asked, &gone, cut || seen.is_too_much()).await?;
    Ok(bracket(asked, gone, open))
}

async fn go(asked: &PlanFor<'_>, ways: &[Draw]) -> Result<Vec<Gone>, InterpreterError> {
    let mut gone = Vec::new();
    for some in ways.chunks(AT_ONCE) {
        let all = futures_util::future::join_all(some.iter().map(|draw| pass(asked, *draw))).await;
        gone.extend(all.into_iter().collect::<Result<Vec<_>, _>>()?);
    }
    Ok(gone)
}

/// Why the upper figure is no bound; `None` if it is one, as far as agents do not die.
async fn why_open(
    asked: &PlanFor<'_>,
    gone: &[Gone],
    cut: bool,
) -> Result<Option<&'static str>, InterpreterError> {
    if gone.iter().any(|one| one.pass.end == PlanEnd::MayGoOn) {
        return Ok(Some("with some answers the program goes on and on"));
    }
    if gone.iter().any(|one| one.draw == Draw::LONG && matches!(one.pass.end, PlanEnd::Failed { .. })) {
        return Ok(Some("with long answers the program fails before its end"));
    }
    if cut {
        return Ok(Some("there are more branches than were tried"));
    }
    let same_but_dear = |one: &&Gone| Draw { dear: true, ..one.draw } == one.draw;
    for dear in gone.iter().filter(same_but_dear) {
        let cheap = Draw { dear: false, ..dear.draw };
        if gone.iter().any(|one| one.draw == cheap && one.pass.agents != dear.pass.agents) {
            return Ok(Some("how many it starts depends on what agents use of the budget"));
        }
    }
    let mut most: Vec<&Gone> = gone.iter().filter(|one| one.draw.long).collect();
    most.sort_by_key(|one| std::cmp::Reverse(one.pass.agents));
    most.truncate(PROBED);
    let more: Vec<Draw> = most.iter().map(|one| Draw { plenty: PLENTY + 1, ..one.draw }).collect();
    let probed = go(asked, &more).await?;
    let grows = most.iter().zip(&probed).any(|(one, longer)| longer.pass.agents != one.pass.agents);
    Ok(grows.then_some(
        "lists, numbers or texts that nothing limits decide, and 3 of each are assumed (maxItems sets a \
            limit)",
    ))
}

/// What all ways have in common: at least and at most.
fn bracket(asked: &PlanFor<'_>, gone: Vec<Gone>, open: Option<&'static str>) -> Plan {
    let goes_on = gone.iter().any(|one| one.pass.end == PlanEnd::MayGoOn);
    let end = |draw: Draw| gone.iter().find(|one| one.draw == draw).map(|one| one.pass.end.clone());
    let low_end = end(Draw::SHORT).unwrap_or(PlanEnd::Returned);
    let high_end = end(Draw::LONG).unwrap_or(PlanEnd::Returned);
    let high_end = if goes_on && high_end == PlanEnd::Returned { PlanEnd::MayGoOn } else { high_end };
    let low = combined(&gone, Draw::SHORT, low_end, u64::min);
    let high = combined(&gone, Draw::LONG, high_end, u64::max);
    Plan { low, high, open, ways: gone.len(), callee_turns: asked.callee_turns }
}

/// One end of the bracket; `of` says which of two figures counts.
fn combined(gone: &[Gone], draw: Draw, end: PlanEnd, of: fn(u64, u64) -> u64) -> PlanPass {
    let all =
        |figure: &dyn Fn(&PlanPass) -> u64| gone.iter().map(|one| figure(&one.pass)).reduce(of).unwrap_or(0);
    let count = |figure: &dyn Fn(&PlanPass) -> u64| u32::try_from(all(figure)).unwrap_or(u32::MAX);
    let costs: Option<Vec<u64>> = gone.iter().map(|one| one.pass.cost_nano).collect();
    let mut remarks: Vec<String> = Vec::new();
    for remark in gone.iter().flat_map(|one| &one.pass.remarks) {
        if !remarks.contains(remark) {
            remarks.push(remark.clone());
        }
    }
    PlanPass {
        groups: groups(gone, of),
        agents: count(&|pass| pass.agents.into()),
        calls: count(&|pass| pass.calls.into()),
        assumed: draw.assumed(),
        tokens: all(&|pass| pass.tokens),
        cost_nano: costs.and_then(|costs| costs.into_iter().reduce(of)),
        end,
        remarks,
    }
}

/// The phases of all ways, those of the longest first, each with the figure that counts.
fn groups(gone: &[Gone], of: fn(u64, u64) -> u64) -> Vec<PlanGroup> {
    type Key<'k> = (Option<&'k str>, Option<&'k str>);
    fn key(group: &PlanGroup) -> Key<'_> {
        (group.within.as_deref(), group.phase.as_deref())
    }
    let mut ways: Vec<&Gone> = gone.iter().collect();
    ways.sort_by_key(|one| std::cmp::Reverse(one.pass.agents));
    let mut keys: Vec<Key<'_>> = Vec::new();
    for group in ways.iter().flat_map(|one| &one.pass.groups) {
        if !keys.contains(&key(group)) {
            keys.push(key(group));
        }
    }
    let group = |wanted: Key<'_>| {
        let each: Vec<Option<&PlanGroup>> =
            gone.iter().map(|one| one.pass.groups.iter().find(|group| key(group) == wanted)).collect();
        let figure = |read: &dyn Fn(&PlanGroup) -> u32| {
            let all = each.iter().map(|group| u64::from(group.map_or(0, read)));
            u32::try_from(all.reduce(of).unwrap_or(0)).unwrap_or(u32::MAX)
        };
        let there = || each.iter().copied().flatten();
        let mut kinds = BTreeMap::new();
        for word in there().flat_map(|group| group.kinds.keys()) {
            kinds.insert(*word, figure(&|group| group.kinds.get(word).copied().unwrap_or(0)));
        }
        let mut models = BTreeMap::new();
        for model in there().flat_map(|group| group.models.keys()) {
            models.insert(model.clone(), figure(&|group| group.models.get(model).copied().unwrap_or(0)));
        }
        PlanGroup {
            within: wanted.0.map(str::to_owned),
            phase: wanted.1.map(str::to_owned),
            agents: figure(&|group| group.agents),
            worktrees: figure(&|group| group.worktrees),
            kinds,
            models,
        }
    };
    keys.into_iter().map(group).collect()
}
