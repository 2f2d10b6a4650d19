//! The prompt cache: what a request reads from it, and what it leaves there once its response has begun.
//!
//! Writes happen only at marks, a mark looks back over twenty blocks, prefixes below the model's minimum are
//! left out, and an entry lives five minutes or an hour from the start of the request that wrote or last used
//! it. A mark of an hour that finds an entry of five minutes uses it as it is.

use std::collections::HashMap;

use super::prompt::{Prompt, Ttl};
use super::tokens::Usage;

/// How many positions a mark looks at, its own counted.
const LOOK_BACK: usize = 20;

/// The prefixes that can be read.
#[derive(Debug, Default)]
pub(crate) struct Cache(HashMap<u64, Entry>);

#[derive(Debug, Clone, Copy)]
struct Entry {
    expires: u64,
    ttl: Ttl,
}

/// What the cache means for one request.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The request's input; its output is still to come.
    pub(crate) usage: Usage,
    /// The entries it uses.
    used: Vec<u64>,
    /// The entries it will write.
    writes: Vec<(u64, Ttl)>,
}

impl Cache {
    /// What this request would find now. Nothing changes.
    pub(crate) fn look(&self, prompt: &Prompt, now: u64) -> Plan {
        let blocks = &prompt.blocks;
        let large = |index: &usize| blocks[*index].tokens >= prompt.minimum;
        let marks: Vec<usize> =
            (0..blocks.len()).filter(|&index| blocks[index].mark.is_some()).filter(large).collect();
        let alive = |index: &usize| self.0.get(&blocks[*index].key).is_some_and(|entry| now < entry.expires);
        let find = |mark: &usize| {
            let first = (mark + 1).saturating_sub(LOOK_BACK);
            (first..=*mark).rev().find(|index| large(index) && alive(index))
        };
        let hits: Vec<usize> = marks.iter().filter_map(find).collect();
        let hit = hits.iter().max().copied();
        let new: Vec<usize> =
            marks.iter().copied().filter(|&mark| hit.is_none_or(|hit| mark > hit)).collect();

        // What comes after the hit is written for an hour up to the last mark of an hour, for five minutes up
        // to the last mark of all, and not at all after that.
        let through = |index: Option<&usize>| index.map_or(0, |&index| blocks[index].tokens);
        let read = through(hit.as_ref());
        let hour = through(new.iter().rfind(|&&mark| blocks[mark].mark == Some(Ttl::Hour))).max(read);
        let written = through(new.last()).max(hour);
        let usage = Usage {
            input_tokens: prompt.tokens() - written,
            cache_read_tokens: read,
            cache_write_5m_tokens: written - hour,
            cache_write_1h_tokens: hour - read,
            output_tokens: 0,
        };
        let used = hits.iter().map(|&index| blocks[index].key).collect();
        let writes = new.iter().filter_map(|&mark| Some((blocks[mark].key, blocks[mark].mark?))).collect();
        Plan { usage, used, writes }
    }

    /// The request runs: what it uses lives on from its start.
    pub(crate) fn refresh(&mut self, plan: &Plan, started: u64) {
        for key in &plan.used {
            if let Some(entry) = self.0.get_mut(key) {
                entry.expires = entry.expires.max(started + entry.ttl.milliseconds());
            }
        }
    }

    /// The response begins: what the request wrote can be read. Its life counts from the request's start.
    pub(crate) fn write(&mut self, plan: &Plan, started: u64) {
        for &(key, ttl) in &plan.writes {
            let entry = self.0.entry(key).or_insert(Entry { expires: 0, ttl });
            entry.ttl = entry.ttl.max(ttl);
            entry.expires = entry.expires.max(started + ttl.milliseconds());
        }
    }
}

#[cfg(test)]
mod tests;
