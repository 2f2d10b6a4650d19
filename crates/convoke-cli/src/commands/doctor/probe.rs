//! `convoke doctor --probe`: what the server really takes, tried with requests of a few tokens, one for each
//! part of a request that a server may refuse; and what doing without it costs.

use std::time::Duration;

use convoke_claude::{Auth, Client, Model, Request, cost};
use convoke_kernel::{Failure as Refusal, Feature, OLD_VERSION, Reply, Segment, bash_without_schema};
use serde_json::{Value, json};

use crate::commands::table::{Column, Table};
use crate::failure::Failure;
use crate::open;
use crate::render::{clean, dollars};
use crate::settings::{ModelSource, Settings};

/// The room of a reply: enough to show that the request was taken.
const ROOM: u32 = 16;

/// How long the list of models is waited for.
const LISTING: Duration = Duration::from_secs(5);

/// What was tried, and what came of it.
pub(super) struct Probed {
    rows: Vec<Row>,
    listing: String,
    endpoint: String,
    spent: Option<u64>,
    requests: u32,
}

struct Row {
    name: &'static str,
    outcome: Outcome,
    without: String,
    setting: &'static str,
}

enum Outcome {
    Taken,
    Refused(String),
    /// The model does not have it, so that it was not tried.
    NotTried,
    Failed(String),
}

/// Tries everything.
pub(super) async fn run(settings: &Settings) -> Result<Probed, Failure> {
    let ModelSource::Api { base_url, key, bearer } = &settings.source else {
        return Err(match settings.source {
            ModelSource::Nothing => open::nobody_answers(),
            _ => Failure::usage("--probe asks a server, and the offline model is none"),
        });
    };
    let auth = Auth { key: key.clone(), bearer: bearer.clone() };
    let client = Client::new(settings.client_config(base_url.clone(), auth))?;
    let model = settings.model_row();
    let mut probe = Probe { client: &client, model: &model, version: None, spent: Some(0), requests: 0 };
    let version = match probe.send(Vec::new(), None, None, false).await {
        Err(refusal) if names(&refusal, Feature::Version) => {
            probe.version = Some(OLD_VERSION);
            if let Err(refusal) = probe.send(Vec::new(), None, None, false).await {
                return Err(unanswered(&refusal));
            }
            Outcome::Refused(said(&refusal))
        }
        Err(refusal) => return Err(unanswered(&refusal)),
        Ok(_) => Outcome::Taken,
    };
    let mut rows = Vec::new();
    for feature in [Feature::CacheMarks, Feature::Thinking, Feature::Effort, Feature::SystemRole] {
        let outcome = probe.feature(feature, settings.effort.as_deref()).await;
        rows.push(Row {
            name: feature.words(),
            outcome,
            without: without(feature, &model),
            setting: feature.setting(),
        });
    }
    let tools = Segment::encode(&json!([bash_without_schema()]));
    let outcome = outcome(probe.send(Vec::new(), None, Some(tools), false).await);
    let without = "tools are declared with a schema, which every server takes".to_owned();
    rows.push(Row { name: "tools without a schema", outcome, without, setting: "anthropic_tools = false" });
    let name = Feature::Version.words();
    let without = Feature::Version.costs().to_owned();
    rows.push(Row { name, outcome: version, without, setting: Feature::Version.setting() });
    let listing = match client.models(LISTING).await {
        Err(why) => format!("not listed: {why}"),
        Ok(listing) => match listing.iter().find(|row| row.id == model.id) {
            None => {
                format!("the server lists {} models, and `{}` is not among them", listing.len(), model.id)
            }
            Some(row) => {
                let listed = row.over(model.clone());
                let agrees = (listed.window, listed.max_output) == (model.window, model.max_output);
                let verdict = if agrees { "as in the table" } else { "unlike the table" };
                format!("window {}, replies up to {} tokens, {verdict}", listed.window, listed.max_output)
            }
        },
    };
    let spent = probe.spent;
    let requests = probe.requests;
    Ok(Probed { rows, listing, endpoint: client.endpoint().to_owned(), spent, requests })
}

struct Probe<'a> {
    client: &'a Client,
    model: &'a Model,
    version: Option<&'static str>,
    spent: Option<u64>,
    requests: u32,
}

impl Probe<'_> {
    async fn feature(&mut self, feature: Feature, effort: Option<&str>) -> Outcome {
        let mark = || json!({"type": "ephemeral"});
        let mut params = Vec::new();
        let mut system = None;
        let mut role = false;
        match feature {
            Feature::CacheMarks => {
                params.push(("cache_control", mark()));
                system = Some(json!([{"type": "text", "text": "Be brief.", "cache_control": mark()}]));
            }
            Feature::Thinking if self.model.thinking.accepts.is_empty() => return Outcome::NotTried,
            Feature::Thinking => params.push(("thinking", json!({"type": "adaptive"}))),
            Feature::Effort => match effort.or(self.model.effort_levels.first().map(String::as_str)) {
                Some(level) => params.push(("output_config", json!({"effort": level}))),
                None => return Outcome::NotTried,
            },
            Feature::SystemRole if !self.model.system_role => return Outcome::NotTried,
            Feature::SystemRole => role = true,
            Feature::Version => return Outcome::NotTried,
        }
        outcome(self.send(params, system, None, role).await)
    }

    async fn send(
        &mut self,
        params: Vec<(&str, Value)>,
        system: Option<Value>,
        tools: Option<Segment>,
        role: bool,
    ) -> Result<Reply, Refusal> {
        let said = |role: &str, text: &str| {
            Segment::encode(&json!({"role": role, "content": [{"type": "text", "text": text}]}))
        };
        let mut messages = vec![said("user", "Answer with: ok")];
        messages.extend(role.then(|| said("system", "One word is enough.")));
        let request = Request {
            params: params
                .into_iter()
                .map(|(name, value)| (name.to_owned(), Segment::encode(&value)))
                .collect(),
            system: system.as_ref().map(Segment::encode),
            tools,
            version: self.version,
            ..Request::new(self.model.id.as_str(), ROOM, messages)
        };
        self.requests += 1;
        let reply = self.client.send(request, |_| {}).await?;
        self.spent =
            self.spent.zip(cost(self.model, &reply.usage)).map(|(sum, more)| sum.saturating_add(more));
        Ok(reply)
    }
}

fn names(refusal: &Refusal, feature: Feature) -> bool {
    refusal.refused.as_ref().is_some_and(|refused| refused.fields.contains(&feature))
}

fn unanswered(refusal: &Refusal) -> Failure {
    Failure::failed(format!("the server does not answer the plainest request: {}", refusal.message))
        .hint("`convoke config show` says where the base URL, the key and the model came from")
}

fn outcome(sent: Result<Reply, Refusal>) -> Outcome {
    match sent {
        Ok(_) => Outcome::Taken,
        Err(refusal) if refusal.unbilled && is_about_the_request(&refusal) => {
            Outcome::Refused(said(&refusal))
        }
        Err(refusal) => Outcome::Failed(said(&refusal)),
    }
}

/// Whether the server refused the request for what is in it, and not for its key, its limits or its load.
fn is_about_the_request(refusal: &Refusal) -> bool {
    ["answered 400", "answered 422"].iter().any(|status| refusal.message.contains(status))
}

fn said(refusal: &Refusal) -> String {
    let words = refusal.message.split_once("): ").map_or(refusal.message.as_str(), |(_, words)| words);
    clean(words)
}

/// What doing without a part costs, with this model's prices where they are known.
fn without(feature: Feature, model: &Model) -> String {
    let rates = model.prices.as_ref().and_then(|prices| prices.rates(0)).filter(|rates| rates.cache_read > 0);
    match (feature, rates) {
        (Feature::CacheMarks, Some(rates)) => {
            let price = |nano: u64| format!("${:.2}", nano as f64 / 1_000.0);
            format!(
                "a prompt that was read before costs {} instead of {} per million tokens, {} times as much",
                price(rates.input),
                price(rates.cache_read),
                rates.input / rates.cache_read
            )
        }
        _ => feature.costs().to_owned(),
    }
}

impl Probed {
    pub(super) fn text(&self) -> String {
        let columns = ["PART OF A REQUEST", "THE SERVER", "WITHOUT IT"].map(Column::kept);
        let mut table = Table::new(columns.into_iter().collect());
        for row in &self.rows {
            table.row(vec![row.name.to_owned(), row.outcome.words(), row.without.clone()]);
        }
        let mut text = table.render(None);
        text.push_str(&format!("models: {}\n", self.listing));
        let spent =
            self.spent.map_or("of unknown price".to_owned(), |nano| format!("for {}", dollars(Some(nano))));
        text.push_str(&format!("tried with {} requests {spent}\n", self.requests));
        text.push_str(
            "taken: the server did not refuse it. It may still drop it without a word; a session \
            notices dropped cache marks by their usage, and says so\n",
        );
        let refused = self.rows.iter().filter(|row| matches!(row.outcome, Outcome::Refused(_)));
        let settings: Vec<&str> = refused.map(|row| row.setting).collect();
        if !settings.is_empty() {
            text.push_str(&format!(
                "what is refused is found out in every session anew; to settle it for good, write into your \
                    configuration:\n\n[endpoints.{:?}]\n{}\n",
                self.endpoint,
                settings.join("\n")
            ));
        }
        text
    }

    pub(super) fn object(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let setting = matches!(row.outcome, Outcome::Refused(_)).then_some(row.setting);
            json!({"part": row.name, "outcome": row.outcome.word(), "said": row.outcome.said(), "without": row.without, "setting": setting})
        });
        let rows: Vec<Value> = rows.collect();
        json!({"endpoint": self.endpoint, "parts": rows, "models": self.listing, "requests": self.requests, "cost_nano": self.spent})
    }
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Refused(_) => "refused",
            Self::NotTried => "not tried",
            Self::Failed(_) => "failed",
        }
    }

    fn said(&self) -> Option<&str> {
        match self {
            Self::Refused(said) | Self::Failed(said) => Some(said),
            Self::Taken | Self::NotTried => None,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::NotTried => "not tried: the model does not have it".to_owned(),
            other => other.said().map_or(other.word().to_owned(), |said| format!("{}: {said}", other.word())),
        }
    }
}
