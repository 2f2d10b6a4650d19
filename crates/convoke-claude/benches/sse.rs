//! How fast a stream becomes a reply, without sockets. Prints one line: megabytes of stream per second.

use std::io::Write;
use std::time::Instant;

use bytes::Bytes;
use convoke_claude::read_reply;
use futures_util::stream;

const STREAM_BYTES: usize = 20_000_000;
/// What a socket hands over at a time.
const READ_BYTES: usize = 16 * 1024;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let whole = Bytes::from(generated());
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let pieces = (0..whole.len())
            .step_by(READ_BYTES)
            .map(|at| Ok::<_, std::io::Error>(whole.slice(at..whole.len().min(at + READ_BYTES))));
        let begun = Instant::now();
        let reply =
            runtime.block_on(read_reply(stream::iter(pieces), |_| {})).map_err(|failure| failure.message)?;
        best = best.min(begun.elapsed().as_secs_f64());
        if reply.calls.len() != 1 || reply.text.len() < 1_000_000 {
            return Err("the reply is not the one that was generated".into());
        }
    }
    let rate = whole.len() as f64 / 1e6 / best;
    writeln!(std::io::stdout(), "sse_parse_mb_per_s {rate:.0}")?;
    Ok(())
}

/// A long answer as the API would stream it: text in small pieces, then a tool call with a large input.
fn generated() -> String {
    let frame = |data: &str, name: &str| format!("event: {name}\ndata: {data}\n\n");
    let mut whole = frame(
        r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":1,"output_tokens":1}}}"#,
        "message_start",
    );
    whole += &frame(
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        "content_block_start",
    );
    while whole.len() < STREAM_BYTES / 2 {
        let data = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" the next few words of it,\n"}}"#;
        whole += &frame(data, "content_block_delta");
    }
    whole += &frame(r#"{"type":"content_block_stop","index":0}"#, "content_block_stop");
    whole += &frame(
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"write","input":{}}}"#,
        "content_block_start",
    );
    let part = |text: &str| {
        let json = serde_json::Value::from(text);
        frame(
            &format!(
                r#"{{"type":"content_block_delta","index":1,"delta":{{"type":"input_json_delta","partial_json":{json}}}}}"#
            ),
            "content_block_delta",
        )
    };
    whole += &part(r#"{"text": ""#);
    while whole.len() < STREAM_BYTES {
        whole += &part(r#"let x = \"a few\";\n"#);
    }
    whole += &part(r#""}"#);
    whole += &frame(r#"{"type":"content_block_stop","index":1}"#, "content_block_stop");
    whole += &frame(
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
        "message_delta",
    );
    whole + &frame(r#"{"type":"message_stop"}"#, "message_stop")
}
