//! The grammar of the stream: line ends, comments, splits, sizes, and what is ignored.

use convoke_claude::MAX_FRAME_BYTES;
use convoke_kernel::{FailureKind, Retry};

use crate::server::{END, START, STOP, TEXT_BLOCK, frames, message, read, rich};

#[tokio::test]
async fn a_stream_split_at_any_byte_gives_the_same_reply() {
    let whole = rich();
    let whole = whole.as_bytes();
    let expected = read(&[whole]).await.unwrap();
    for at in 0..=whole.len() {
        let (front, back) = whole.split_at(at);
        assert_eq!(read(&[front, back]).await.unwrap(), expected, "split at {at}");
    }
    let bytes: Vec<&[u8]> = whole.chunks(1).collect();
    assert_eq!(read(&bytes).await.unwrap(), expected);
}

#[tokio::test]
async fn every_line_end_is_understood() {
    let expected = read(&[rich().as_bytes()]).await.unwrap();
    for end in ["\r\n", "\r"] {
        let whole = rich().replace('\n', end);
        assert_eq!(read(&[whole.as_bytes()]).await.unwrap(), expected, "{end:?}");
        let bytes: Vec<&[u8]> = whole.as_bytes().chunks(1).collect();
        assert_eq!(read(&bytes).await.unwrap(), expected, "{end:?} byte by byte");
    }
}

#[tokio::test]
async fn comments_unknown_fields_unknown_events_and_pings_are_ignored() {
    let expected = read(&[rich().as_bytes()]).await.unwrap();
    let noise = [
        ": keep-alive\n\n",
        "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        "event: novel\ndata: {\"type\":\"novel\",\"delta\":\"odd\",\"index\":\"x\"}\n\n",
        "event: novel\ndata: not json\n\n",
        "data: {\"no\":\"type\"}\n\n",
        "id: 7\nretry: 10\n\n",
        "strange: field\n\n",
        "\n\n",
    ];
    for noise in noise {
        let whole: String = rich().split_inclusive("\n\n").map(|frame| format!("{noise}{frame}")).collect();
        assert_eq!(read(&[whole.as_bytes()]).await.unwrap(), expected, "{noise:?}");
    }
}

#[tokio::test]
async fn data_over_several_lines_is_one_text() {
    let mut whole = message(&TEXT_BLOCK);
    whole[2] = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\ndata:  \
        \"index\":0,\ndata:\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n"
        .to_owned();
    assert_eq!(read(&[whole.concat().as_bytes()]).await.unwrap().text, "Hello");
}

#[tokio::test]
async fn a_stream_without_event_names_is_understood() {
    let whole: String =
        rich().lines().filter(|line| !line.starts_with("event:")).map(|line| format!("{line}\n")).collect();
    assert_eq!(read(&[whole.as_bytes()]).await.unwrap(), read(&[rich().as_bytes()]).await.unwrap());
}

#[tokio::test]
async fn what_comes_after_the_end_changes_nothing() {
    let whole = format!("{}data: [DONE]\n\nevent: error\ndata: {{}}\n\n", rich());
    assert_eq!(read(&[whole.as_bytes()]).await.unwrap(), read(&[rich().as_bytes()]).await.unwrap());
}

#[tokio::test]
async fn a_stream_cut_after_any_event_is_a_transport_failure() {
    let whole = rich();
    let frames: Vec<&str> = whole.split_inclusive("\n\n").collect();
    for kept in 0..frames.len() {
        let failure = read(&[frames[..kept].concat().as_bytes()]).await.unwrap_err();
        assert_eq!((failure.kind, failure.retry), (FailureKind::Transport, Retry::Soon), "cut after {kept}");
        assert!(failure.message.contains("send the whole request again"), "{}", failure.message);
    }
    let unfinished = whole.strip_suffix('\n').unwrap();
    assert_eq!(read(&[unfinished.as_bytes()]).await.unwrap_err().kind, FailureKind::Transport);
}

#[tokio::test]
async fn a_malformed_frame_is_a_transport_failure() {
    let check = async |frame: &[u8]| {
        let start = frames(&[START]).concat();
        let end = frames(&[END, STOP]).concat();
        let failure = read(&[start.as_bytes(), frame, end.as_bytes()]).await.unwrap_err();
        assert_eq!((failure.kind, failure.retry), (FailureKind::Transport, Retry::Soon), "{failure:?}");
        assert!(failure.message.contains("malformed"), "{}", failure.message);
    };
    check(b"event: content_block_start\ndata: {\"type\":\n\n").await;
    check(b"event: content_block_start\ndata: \n\n").await;
    check(b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":-1}\n\n").await;
    check(b"event: content_block_stop\ndata: {\"type\":\"content_block_stop\"}\n\n").await;
    check(b"data: <html>\n\n").await;
    check(b"event: ping\ndata: \xff\xfe\n\n").await;
}

#[tokio::test]
async fn an_event_that_does_not_end_is_given_up() {
    let filler = vec![b'x'; 1024 * 1024];
    let mut pieces: Vec<&[u8]> = vec![b"data: "];
    pieces.extend(std::iter::repeat_n(filler.as_slice(), MAX_FRAME_BYTES / filler.len() + 1));
    let failure = read(&pieces).await.unwrap_err();
    assert_eq!((failure.kind, failure.retry), (FailureKind::Transport, Retry::Soon));
    assert!(failure.message.contains("longer than"), "{}", failure.message);
}

#[tokio::test]
async fn an_error_in_mid_stream_is_judged_by_its_type() {
    let check = async |error: &str, kind: FailureKind, retry: Retry, said: &str| {
        for before in [&[][..], &[START], &[START, TEXT_BLOCK[0], TEXT_BLOCK[1]]] {
            let whole = format!("{}event: error\ndata: {error}\n\n", frames(before).concat());
            let failure = read(&[whole.as_bytes()]).await.unwrap_err();
            assert_eq!((failure.kind, failure.retry), (kind, retry), "{error}");
            assert!(failure.message.contains(said), "{error}: {}", failure.message);
        }
    };
    let error = |kind: &str, message: &str| {
        format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}","details":null}}}}"#)
    };
    use FailureKind::{Api, ContextFull, RateLimited};
    let again = "send the whole request again";
    check(&error("overloaded_error", "Overloaded"), Api, Retry::Soon, again).await;
    check(&error("api_error", "Internal server error"), Api, Retry::Soon, again).await;
    check(&error("timeout_error", "too slow"), Api, Retry::Soon, again).await;
    check(&error("novel_error", "who knows"), Api, Retry::Soon, "who knows").await;
    check(&error("rate_limit_error", "slow down"), RateLimited, Retry::Soon, again).await;
    check(&error("invalid_request_error", "bad"), Api, Retry::Never, "bad").await;
    check(&error("invalid_request_error", "prompt is too long: 3 > 2"), ContextFull, Retry::Never, "3 > 2")
        .await;
    check(&error("authentication_error", "bad key"), Api, Retry::Never, "ANTHROPIC_API_KEY").await;
    check("not json at all", Api, Retry::Soon, "not json at all").await;
}
