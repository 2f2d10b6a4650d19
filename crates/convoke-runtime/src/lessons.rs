//! What a session's agents found out about the server, shared in this process: one that learns something
//! teaches all others before their next request. What each of them knows is in its own stream; this is filled
//! again from there.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use convoke_claude::Model;
use convoke_kernel::{EndpointLearnt, Failure, Feature, IGNORED_AFTER, Learnt, Reply};

/// What is known about the server, by model.
#[derive(Debug, Default)]
pub(crate) struct Lessons(Mutex<BTreeMap<String, Known>>);

#[derive(Debug, Default)]
struct Known {
    endpoint: String,
    /// What is refused.
    lacks: Vec<Feature>,
    /// How many tokens it reads at once, if it has named that.
    window: Option<u64>,
    cache: Cache,
}

/// What replies say about the server's cache.
#[derive(Debug, Default, PartialEq, Eq)]
enum Cache {
    /// So many replies to prompts that were long enough, and not a token of them read or written.
    #[default]
    Unseen,
    Silent(u32),
    /// It works, or it has been told that it does not.
    Settled,
}

impl Lessons {
    /// Takes over what an agent has recorded about this server.
    pub(crate) fn recall(&self, lessons: &[EndpointLearnt], endpoint: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for lesson in lessons.iter().filter(|lesson| lesson.endpoint == endpoint) {
            let known = known.entry(lesson.model.clone()).or_default();
            known.endpoint.clone_from(&lesson.endpoint);
            match lesson.how {
                Learnt::Ignored => known.cache = Cache::Settled,
                Learnt::Refused | Learnt::Heard | Learnt::Moved => known.add(&lesson.lacks, lesson.window),
            }
        }
    }

    /// Hears what a request came to.
    pub(crate) fn hear(&self, model: &Model, endpoint: &str, result: &Result<Reply, Failure>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Err(failure) => {
                let Some(refused) = &failure.refused else { return };
                let known = all.entry(model.id.clone()).or_default();
                known.endpoint.clone_from(&refused.endpoint);
                known.add(&refused.fields, failure.window());
            }
            Ok(reply) => {
                let known = all.entry(model.id.clone()).or_default();
                endpoint.clone_into(&mut known.endpoint);
                let usage = &reply.usage;
                let silent = if let Cache::Silent(count) = known.cache { count } else { 0 };
                let cached =
                    usage.cache_read_tokens + usage.cache_write_5m_tokens + usage.cache_write_1h_tokens;
                match known.cache {
                    Cache::Settled => {}
                    _ if cached > 0 => known.cache = Cache::Settled,
                    _ if usage.prompt_tokens() >= model.cache_minimum => {
                        known.cache = Cache::Silent(silent + 1)
                    }
                    _ => {}
                }
            }
        }
    }

    /// What others have learnt about this model's server.
    pub(crate) fn heard(&self, model: &str) -> Option<EndpointLearnt> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(model).filter(|known| !known.lacks.is_empty() || known.window.is_some())?;
        Some(EndpointLearnt {
            window: known.window,
            ..known.lesson(model, known.lacks.clone(), Learnt::Heard)
        })
    }

    /// That the server ignores cache marks, once, as soon as it shows.
    pub(crate) fn ignores_marks(&self, model: &str) -> Option<EndpointLearnt> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get_mut(model)?;
        let shows = matches!(known.cache, Cache::Silent(count) if count >= IGNORED_AFTER);
        if !shows {
            return None;
        }
        known.cache = Cache::Settled;
        Some(known.lesson(model, vec![Feature::CacheMarks], Learnt::Ignored))
    }
}

impl Known {
    fn add(&mut self, lacks: &[Feature], window: Option<u64>) {
        self.window = self.window.into_iter().chain(window).min();
        for feature in lacks {
            if !self.lacks.contains(feature) {
                self.lacks.push(*feature);
            }
        }
    }

    fn lesson(&self, model: &str, lacks: Vec<Feature>, how: Learnt) -> EndpointLearnt {
        let endpoint = self.endpoint.clone();
        let model = model.to_owned();
        EndpointLearnt { endpoint, model, lacks, how, said: String::new(), window: None }
    }
}
