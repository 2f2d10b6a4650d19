//! A server that says exactly what a test tells it to, byte for byte, and keeps what it was asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use convoke_claude::{Client, ClientConfig, Live, Request, read_reply};
use convoke_kernel::{Failure, Reply, Segment};
use futures_util::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A generous limit for anything that should end by itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What the server does once it has read a request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Writes these bytes.
    Say(Vec<u8>),
    /// Writes these bytes one at a time, so far apart.
    Drip(Vec<u8>, Duration),
    /// Writes these bytes over and over, so far apart, until the client goes away.
    Repeat(Vec<u8>, Duration),
    /// Says nothing for so long.
    Pause(Duration),
    /// Says nothing more until the client goes away.
    Stall,
    /// Waits for the next request on this connection and goes on with the acts after this one.
    Next,
}

/// A listening server; it ends with this value.
pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Starts a server that performs these acts on every connection, then closes it.
    pub(crate) async fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let connections = Arc::<Mutex<usize>>::default();
        let kept = Arc::clone(&requests);
        let counted = Arc::clone(&connections);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                *counted.lock().unwrap() += 1;
                open.spawn(serve(socket, acts.clone(), Arc::clone(&kept)));
            }
        });
        Self { url, requests, connections, _tasks: tasks }
    }

    /// Starts a server that answers with this status line, headers and body.
    pub(crate) async fn answering(status: &str, headers: &[(&str, &str)], body: &str) -> Self {
        Self::start(vec![Act::Say(response(status, headers, body))]).await
    }

    /// Every request so far: head, blank line, body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }

    pub(crate) fn config(&self) -> ClientConfig {
        ClientConfig { base_url: self.url.clone(), ..ClientConfig::default() }
    }

    pub(crate) async fn ask(&self) -> Result<Reply, Failure> {
        ask(self.config()).await
    }
}

async fn serve(mut socket: TcpStream, acts: Vec<Act>, kept: Arc<Mutex<Vec<String>>>) {
    if read_request(&mut socket, &kept).await.is_none() {
        return;
    }
    for act in acts {
        let done = match act {
            Act::Say(bytes) => socket.write_all(&bytes).await.is_ok(),
            Act::Drip(bytes, gap) => {
                let mut fine = true;
                for byte in bytes {
                    fine = fine && socket.write_all(&[byte]).await.is_ok();
                    tokio::time::sleep(gap).await;
                }
                fine
            }
            Act::Repeat(bytes, gap) => {
                while socket.write_all(&bytes).await.is_ok() {
                    tokio::time::sleep(gap).await;
                }
                false
            }
            Act::Pause(span) => {
                tokio::time::sleep(span).await;
                true
            }
            Act::Stall => {
                let _ = socket.read(&mut [0; 1]).await;
                false
            }
            Act::Next => read_request(&mut socket, &kept).await.is_some(),
        };
        if !done {
            return;
        }
    }
    // Closing with the client's bytes unread would reset the connection and lose what was said.
    let _ = socket.shutdown().await;
    let _ = socket.read(&mut [0; 1]).await;
}

async fn read_request(socket: &mut TcpStream, kept: &Mutex<Vec<String>>) -> Option<()> {
    let mut seen = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if let Some(end) = seen.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&seen[..end]).to_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if seen.len() >= end + 4 + length.unwrap_or(0) {
                kept.lock().unwrap().push(String::from_utf8(seen).unwrap());
                return Some(());
            }
        }
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => seen.extend_from_slice(&buffer[..count]),
        }
    }
}

/// A response with a body of known length.
pub(crate) fn response(status: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status}\r\n{lines}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The head of a streamed response that ends with the connection.
pub(crate) fn head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nrequest-id: req_head\r\n\r\n"
        .to_vec()
}

/// A streamed response that leaves the connection open.
pub(crate) fn chunked(body: &[u8]) -> Vec<u8> {
    let mut bytes =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for part in body.chunks(100) {
        bytes.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        bytes.extend_from_slice(part);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// The smallest request there is.
pub(crate) fn request() -> Request {
    let message = Segment::from_json(r#"{"role":"user","content":"hello"}"#).unwrap();
    Request::new("claude-opus-4-8", 1000, vec![message])
}

/// A request with every part that a server may refuse.
pub(crate) fn everything() -> Request {
    let part = |name: &str, json: &str| (name.to_owned(), Segment::from_json(json).unwrap());
    let system =
        Segment::from_json(r#"{"role":"system","content":[{"type":"text","text":"Be brief."}]}"#).unwrap();
    let mut request = request();
    request.messages.push(system);
    request.params = vec![
        part("thinking", r#"{"type":"adaptive"}"#),
        part("output_config", r#"{"effort":"low"}"#),
        part("cache_control", r#"{"type":"ephemeral"}"#),
    ];
    request
}

pub(crate) async fn ask(config: ClientConfig) -> Result<Reply, Failure> {
    sent(config, request()).await
}

pub(crate) async fn sent(config: ClientConfig, request: Request) -> Result<Reply, Failure> {
    let client = Client::new(config).unwrap();
    tokio::time::timeout(PATIENCE, client.send(request, |_| {})).await.expect("the client hangs")
}

/// Reads a recorded stream, handed over in these pieces.
pub(crate) async fn read(pieces: &[&[u8]]) -> Result<Reply, Failure> {
    read_live(pieces, |_| {}).await
}

pub(crate) async fn read_live(pieces: &[&[u8]], live: impl FnMut(Live<'_>) + Send) -> Result<Reply, Failure> {
    let pieces: Vec<_> =
        pieces.iter().map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))).collect();
    tokio::time::timeout(PATIENCE, read_reply(stream::iter(pieces), live)).await.expect("the reader hangs")
}

/// Frames as the API writes them: the event's name is the `type` of its data.
pub(crate) fn frames(events: &[&str]) -> Vec<String> {
    let frame = |data: &&str| {
        let value: serde_json::Value = serde_json::from_str(data).unwrap();
        format!("event: {}\ndata: {data}\n\n", value["type"].as_str().unwrap())
    };
    events.iter().map(frame).collect()
}

/// A whole reply: these block events between an ordinary start and an ordinary end.
pub(crate) fn message(events: &[&str]) -> Vec<String> {
    let mut all = vec![START];
    all.extend_from_slice(events);
    all.extend_from_slice(&[END, STOP]);
    frames(&all)
}

pub(crate) const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-8","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}"#;
pub(crate) const END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}"#;
pub(crate) const STOP: &str = r#"{"type":"message_stop"}"#;
pub(crate) const TEXT_BLOCK: [&str; 3] = [
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
];

/// A stream with every kind of block and delta in it.
pub(crate) fn rich() -> String {
    message(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm, "}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\u00e9té"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Grüße 🦀"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"bash","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"command\": \"ec"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"ho \\u00e9\"}"}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
    ])
    .concat()
}
