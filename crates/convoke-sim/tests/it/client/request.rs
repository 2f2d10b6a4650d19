//! A request that is sent as it is, legal or not. The tests of the offline model use this file too.

use std::sync::LazyLock;
use std::time::Duration;

use convoke_sim::{SimConfig, Simulator};
use serde_json::{Value, json};

/// Longer than anything here takes; what takes longer hangs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A request to be sent.
#[derive(Clone)]
pub(crate) struct RawRequest {
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
    /// Sent in place of `body`.
    pub(crate) raw: Option<String>,
}

impl RawRequest {
    /// A legal request of a conversation.
    pub(crate) fn new(conversation: &str) -> Self {
        let headers = [
            ("x-api-key", "test"),
            ("anthropic-version", "2023-06-01"),
            ("content-type", "application/json"),
        ];
        let body = json!({
            "model": "claude-opus-4-8",
            "max_tokens": 1_000,
            "messages": [{"role": "user", "content": format!("Hello.\n[conversation: {conversation}]")}],
        });
        Self { headers: headers.map(|(name, value)| (name, value.to_owned())).to_vec(), body, raw: None }
    }

    pub(crate) fn push(&mut self, role: &str, content: Value) {
        let message = json!({"role": role, "content": content});
        self.body["messages"].as_array_mut().expect("messages").push(message);
    }

    pub(crate) async fn send(&self, sim: &Simulator) -> reqwest::Result<reqwest::Response> {
        self.post(&sim.url()).await
    }

    /// Sends it to the server at this base URL.
    pub(crate) async fn post(&self, url: &str) -> reqwest::Result<reqwest::Response> {
        let mut request = client().post(format!("{url}/v1/messages"));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request.body(self.raw.clone().unwrap_or_else(|| self.body.to_string())).send().await
    }

    /// The status and the body, as JSON if it is.
    pub(crate) async fn answer(&self, sim: &Simulator) -> (u16, Value) {
        let response = self.send(sim).await.expect("a response");
        let status = response.status().as_u16();
        let text = response.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }
}

/// One client for all tests, because making one is slow. It keeps no connection, so none outlives its test's
/// runtime.
pub(crate) fn client() -> &'static reqwest::Client {
    static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(|| {
        rustls::crypto::ring::default_provider().install_default().expect("the first provider");
        let builder = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).timeout(DEADLINE);
        builder.build().expect("a client")
    });
    &CLIENT
}

pub(crate) async fn start(config: impl Into<SimConfig>) -> Simulator {
    Simulator::start(config).await.expect("a simulator")
}
