//! What an agent has learnt about the server that it talks to, and what its requests look like without the
//! parts that server does not take. The history stays as it was recorded: parts are left out where a request
//! is put together, in the same way every time, so that each request still begins as the one before it did.

use std::sync::Arc;

use serde_json::Value;

use super::agent_state::AgentState;
use super::decide::Draft;
use super::state::{Asking, Mark, Stage};
use super::window::Sizes;
use super::{Agent, Unexpected};
use crate::event::EndpointLearnt;
use crate::lesson::{Feature, Learnt};
use crate::prompts;
use crate::segment::Segment;
use crate::spec::{AgentSpec, Param};
use crate::wire::{Failure, Thinking};

/// What was learnt, about the models that the agent has asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lessons {
    pub(super) learnt: Vec<EndpointLearnt>,
    /// The sizes that were stated, while the agent keeps to the server's smaller window.
    pub(super) stated: Option<Sizes>,
}

impl Lessons {
    /// The server of the latest lesson: lessons about others do not count.
    fn here(&self) -> Option<&str> {
        self.learnt.last().map(|learnt| learnt.endpoint.as_str())
    }

    fn knows(&self, model: &str, feature: Feature, ignored: bool) -> bool {
        let mut known = self.about(model).filter(|learnt| (learnt.how == Learnt::Ignored) == ignored);
        known.any(|learnt| learnt.lacks.contains(&feature))
    }

    fn about(&self, model: &str) -> impl Iterator<Item = &EndpointLearnt> {
        let here = self.here();
        self.learnt
            .iter()
            .filter(move |learnt| Some(learnt.endpoint.as_str()) == here && learnt.model == model)
    }

    /// The smallest window that the server has named for this model.
    pub(super) fn window(&self, model: &str) -> Option<u64> {
        self.about(model).filter_map(|learnt| learnt.window).min()
    }

    /// What is left out of requests to this model.
    pub(super) fn withheld(&self, model: &str) -> Vec<Feature> {
        Feature::ALL.into_iter().filter(|feature| self.knows(model, *feature, false)).collect()
    }
}

impl Agent {
    /// All that was learnt about its server.
    pub fn lessons(&self) -> &[EndpointLearnt] {
        &self.state.lessons.learnt
    }
}

impl AgentState {
    /// Whether this part is sent: model and server are said to take it, and no lesson says otherwise.
    pub(super) fn sends(&self, feature: Feature) -> bool {
        let Some(spec) = &self.spec else { return false };
        let stated = match feature {
            Feature::CacheMarks => spec.capabilities.cache_marks,
            Feature::Thinking => spec.capabilities.thinking != Thinking::Omit,
            Feature::Effort => spec.capabilities.effort.is_some(),
            Feature::SystemRole => spec.capabilities.system_role || self.mark.systems > 0,
            Feature::Version => true,
        };
        stated && !self.lessons.knows(&spec.model, feature, false)
    }

    /// A lesson changes what is sent from now on. A request that was refused for it is sent again
    /// at once and does not count as a failure.
    pub(super) fn learnt(&mut self, stage: Stage, e: &EndpointLearnt) -> Option<Stage> {
        self.lessons.learnt.push(e.clone());
        self.keep_to_window();
        let spec = Arc::clone(self.spec.as_ref()?);
        let base = Mark::without(&spec, &self.lessons.withheld(&spec.model));
        if base.digest != self.base.digest {
            self.base = base;
            self.prefix = base.digest;
            self.mark.follow(&base);
            if let Some(exchange) = &mut self.exchange {
                exchange.start.follow(&base);
            }
            if let Some((before, _)) = &mut self.lasting.before {
                before.follow(&base);
            }
        }
        Some(match stage {
            Stage::Waiting(asking, _) if e.how == Learnt::Refused => {
                let max_tokens = asking.max_tokens.min(self.fits());
                Stage::Ready(Asking { failures: asking.failures.saturating_sub(1), max_tokens, ..asking })
            }
            stage => stage,
        })
    }
}

impl Draft {
    /// The lesson of a refusal: the parts that it names and that were sent.
    pub(super) fn lesson_of(&self, failure: &Failure) -> Option<EndpointLearnt> {
        let refused = failure.refused.as_deref()?;
        let spec = self.state.spec.as_ref()?;
        let carried = |field: &Feature| match field {
            Feature::SystemRole => self.state.sends(*field) && self.state.mark.systems > 0,
            _ => self.state.sends(*field),
        };
        let lacks: Vec<Feature> = refused.fields.iter().copied().filter(carried).collect();
        let endpoint = refused.endpoint.clone();
        let model = spec.model.clone();
        let said = failure.message.clone();
        (!lacks.is_empty()).then_some(EndpointLearnt {
            endpoint,
            model,
            lacks,
            how: Learnt::Refused,
            said,
            window: None,
        })
    }

    /// Takes over a lesson: from other agents of the session, from what replies have shown, or that there is
    /// another server now. A lesson that is known already changes nothing.
    pub(super) fn learn(&mut self, mut learnt: EndpointLearnt) -> Result<(), Unexpected> {
        let model = learnt.model.clone();
        let ignored = learnt.how == Learnt::Ignored;
        let known = &self.state.lessons;
        learnt.lacks.retain(|feature| !known.knows(&model, *feature, ignored));
        let window = self.state.spec.as_ref().map_or(0, |spec| spec.capabilities.window);
        learnt.window = learnt.window.filter(|learnt| *learnt < window);
        let news = match learnt.how {
            Learnt::Moved => known.here().is_some_and(|here| here != learnt.endpoint),
            Learnt::Refused | Learnt::Heard | Learnt::Ignored => {
                !learnt.lacks.is_empty() || learnt.window.is_some()
            }
        };
        if news {
            self.emit(learnt)?;
        }
        Ok(())
    }
}

impl Mark {
    /// What every request of an agent of this make begins with, without what is left out.
    pub(super) fn without(spec: &AgentSpec, withheld: &[Feature]) -> Self {
        Self::of(&AgentSpec { params: params(spec, withheld), ..spec.clone() })
    }
}

/// The other members of a request, without what is left out.
pub(super) fn params(spec: &AgentSpec, withheld: &[Feature]) -> Vec<Param> {
    let name = |feature: &Feature| match feature {
        Feature::CacheMarks => "cache_control",
        Feature::Thinking => "thinking",
        Feature::Effort => "output_config",
        Feature::SystemRole | Feature::Version => "",
    };
    let sent = |param: &&Param| !withheld.iter().any(|feature| name(feature) == param.name);
    spec.params.iter().filter(sent).cloned().collect()
}

/// The system prompt, without its mark if marks are left out.
pub(super) fn system(spec: &AgentSpec, withheld: &[Feature]) -> Segment {
    if withheld.contains(&Feature::CacheMarks) { spec.system.without_mark() } else { spec.system.clone() }
}

/// The history for a server that takes no system messages: each becomes the last block of the user message
/// before it.
pub(super) fn without_systems(messages: Vec<Segment>) -> Vec<Segment> {
    let mut folded: Vec<Segment> = Vec::with_capacity(messages.len());
    for message in messages {
        let texts = system_texts(&message);
        match folded.last_mut().filter(|_| !texts.is_empty()) {
            Some(before) => {
                *before =
                    texts.iter().fold(before.clone(), |user, text| user.with_text(&prompts::reminded(text)));
            }
            None => folded.push(message),
        }
    }
    folded
}

/// The texts of a system message; none for any other.
fn system_texts(message: &Segment) -> Vec<String> {
    if !message.as_str().starts_with(r#"{"role":"system","#) {
        return Vec::new();
    }
    let value: Value = serde_json::from_str(message.as_str()).unwrap_or_default();
    let blocks = value["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter_map(|block| block["text"].as_str()).map(str::to_owned).collect()
}
