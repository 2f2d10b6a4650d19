//! A client that sends what it is told, legal or not.

use std::sync::LazyLock;
use std::time::Duration;

use convoke_sim::{Script, SimConfig, Simulator, says};
use serde_json::{Value, json};

/// Longer than anything here takes; what takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(30);

/// A request to be sent.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
    /// Sent in place of `body`.
    pub(crate) raw: Option<String>,
}

impl Ask {
    /// A legal request of a conversation.
    pub(crate) fn new(conversation: &str) -> Self {
        let headers =
            [("x-api-key", "test"), ("anthropic-version", "2023-06-01"), ("content-type", "application/json")];
        let body = json!({
            "model": "claude-opus-4-8",
            "max_tokens": 1_000,
            "messages": [{"role": "user", "content": format!("Hello.\n[conversation: {conversation}]")}],
        });
        Self { headers: headers.map(|(name, value)| (name, value.to_owned())).to_vec(), body, raw: None }
    }

    /// The same, asking for a stream.
    pub(crate) fn streamed(conversation: &str) -> Self {
        let mut ask = Self::new(conversation);
        ask.body["stream"] = json!(true);
        ask
    }

    pub(crate) fn header(&mut self, name: &'static str, value: &str) {
        self.drop_header(name);
        self.headers.push((name, value.to_owned()));
    }

    pub(crate) fn drop_header(&mut self, name: &str) {
        self.headers.retain(|(known, _)| *known != name);
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

/// One client for all tests, because making one is slow. It keeps no connection, so none outlives its test's runtime.
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

/// A server that says the same to everybody, however long the conversation.
pub(crate) fn chatter() -> Script {
    Script::new().conversation("*", (0..8).map(|_| says("All right.")))
}

/// Fails instead of waiting for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("this should not take so long")
}

/// The data of every frame that arrived, and whether the body came to its end.
pub(crate) async fn frames(mut response: reqwest::Response) -> (Vec<Value>, bool) {
    let mut text = Vec::new();
    let ended = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => text.extend_from_slice(&chunk),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let text = String::from_utf8(text).expect("UTF-8");
    let parse = |data: &str| serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_owned()));
    (text.lines().filter_map(|line| line.strip_prefix("data: ")).map(parse).collect(), ended)
}
