//! A client that sends what it is told, legal or not.

mod request;

use convoke_sim::{Script, says};
use serde_json::{Value, json};

use request::DEADLINE;
pub(crate) use request::{RawRequest, client, start};

impl RawRequest {
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
}

/// A server that says the same in every conversation, however long that is.
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
