//! What the settings say about the server: its profile as `config show` prints it, what a person should know
//! about it, and what it says about a model that the table does not know.

use std::time::Duration;

use convoke_claude::{Auth, Client, Endpoint, Model, Server, is_claude};

use super::layers::Layers;
use super::origin::{Origin, Row};
use super::resolve::{EFFORT, hide_user};
use super::value::Value;
use super::{ModelSource, Settings};

/// How long the server is waited for when it is asked about its models. A session does not depend on it.
const ASKED_FOR: Duration = Duration::from_secs(2);

/// The head of the table in a configuration that is about this server.
pub(super) fn table(server: &Server) -> String {
    format!("[endpoints.{:?}]", hide_user(server.base_url()).trim_end_matches('/'))
}

/// Every member of the profile that holds for the model, each as a line of `config show`.
pub(super) fn members(server: &Server, endpoint: &Endpoint, stated: &Origin) -> Vec<Row> {
    let origin = if server.is_stated() { stated.clone() } else { Origin::Default };
    let url = hide_user(server.base_url());
    let profile = ("profile", endpoint.name.clone());
    let members = endpoint.members().map(|(name, understood)| (name, understood.to_string()));
    let version = endpoint.version.clone().map(|version| ("version", version));
    let row = |(name, value): (&str, String)| Row {
        key: format!("endpoints.{:?}.{name}", url.trim_end_matches('/')),
        value: Some(value),
        origin: origin.clone(),
        ignored: None,
    };
    std::iter::once(profile).chain(members).chain(version).map(row).collect()
}

/// The version of the API that a server is stated to want, unless a person chose one for all.
pub(super) fn put_version(layers: &mut Layers, endpoint: &Endpoint) {
    if let (Some(version), Origin::Default) = (&endpoint.version, layers.origin("version")) {
        let origin = layers.origin("endpoints");
        layers.put("version", Value::Text(version.clone()), origin);
    }
}

/// What a person should know about the server before a session.
pub(super) fn remarks(model: &Model) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(day) = &model.retires {
        remarks.push(format!(
            "`{}` is retired on {day}: choose another model, for example with --model",
            model.id
        ));
    }
    remarks
}

impl Settings {
    /// What is left out of requests to a server of which nothing is known because its model is no Claude
    /// model, with the line that changes it.
    pub(crate) fn plain_remark(&self) -> Option<String> {
        let server = &self.server;
        let model = &self.model;
        let is_plain = server.row(model).name == "generic" && !server.is_stated() && !is_claude(model);
        is_plain.then(|| {
            format!(
                "`{model}` is no Claude model, so {} is sent no cache marks, thinking, effort or system \
                    messages; if it takes them: {} profile = \"anthropic\"",
                hide_user(server.base_url()),
                table(server)
            )
        })
    }

    /// Asks the server about the models of a session, once and for a short time; whatever comes of it, the
    /// session can begin. Models that the table knows are asked about at Anthropic's API alone: what other
    /// servers list has many forms, and a wrong size would do harm.
    pub(crate) async fn ask_server(&mut self, begins: bool) {
        let ModelSource::Api { base_url, key, bearer } = &self.source else { return };
        let mut wanted = vec![self.model.clone(), self.fan_out.worker.model.clone()];
        wanted.dedup();
        let unsure =
            |id: &String| self.models.get(id).assumed || begins && self.server.row(id).name == "anthropic";
        wanted.retain(unsure);
        if wanted.is_empty() {
            return;
        }
        let auth = Auth { key: key.clone(), bearer: bearer.clone() };
        // A configuration from which no client can be made is told where the session begins.
        let Ok(client) = Client::new(self.client_config(base_url.clone(), auth)) else { return };
        let Ok(listing) = client.models(ASKED_FOR).await else { return };
        for id in &wanted {
            self.models.take_listed(id, &listing);
        }
        // What the person states goes over what the server says, and the window decides whether the lead is
        // lean.
        if self.stated.put(&mut self.models, &self.model).is_ok() {
            self.settle_lean();
        }
        let has = |effort: &String| self.model_row().effort_levels.contains(effort);
        let chosen = self.origin("effort").is_some_and(|origin| *origin != Origin::Default);
        if !chosen && self.model_row().assumed {
            self.effort = Some(EFFORT.to_owned()).filter(|effort| has(effort) && self.endpoint().effort);
        }
    }
}
