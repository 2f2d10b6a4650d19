//! From bytes to a reply: server-sent events, bounded in size. It does not care where the bytes come from.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use convoke_kernel::{Failure, Reply};
use futures_util::{Stream, StreamExt};
use sse_stream::SseByteStream;

use crate::failures::{self, Asked};
use crate::reply::{Accumulator, Live, Progress, Show};

/// The most bytes that may come without completing an event; beyond it the stream is given up, not kept in
/// memory.
pub const MAX_FRAME_BYTES: usize = 32 * 1024 * 1024;

/// How long the end of the connection is waited for once the reply is whole. Reading it lets the connection
/// be used again.
const FAREWELL: Duration = Duration::from_millis(250);

/// Why bytes stopped coming.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// Nothing came for this long.
    #[error("nothing came for {0:?}")]
    Idle(Duration),
    /// The connection broke.
    #[error("{0}")]
    Cut(String),
    /// An event that does not end.
    #[error("an event is longer than {MAX_FRAME_BYTES} bytes")]
    TooLong,
}

/// Reads the reply a stream of bytes holds, as a client does with the body of a response.
pub async fn read_reply<S, E>(bytes: S, mut live: impl FnMut(Live<'_>) + Send) -> Result<Reply, Failure>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: std::error::Error,
{
    let bytes = bytes.map(|chunk| chunk.map_err(|error| ReadError::Cut(error.to_string())));
    let asked = Asked { model: "", base_url: "the server", credentials: true };
    read(bytes, &asked, &mut live).await
}

pub(crate) async fn read<S>(bytes: S, asked: &Asked<'_>, show: Show<'_>) -> Result<Reply, Failure>
where
    S: Stream<Item = Result<Bytes, ReadError>>,
{
    let waiting = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&waiting);
    let bounded = bytes.map(move |chunk| {
        let chunk = chunk?;
        let size = counted.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
        if size > MAX_FRAME_BYTES { Err(ReadError::TooLong) } else { Ok(chunk) }
    });
    let mut events = pin!(SseByteStream::new(bounded));
    let mut reply = Accumulator::default();
    loop {
        let event = match events.next().await {
            Some(Ok(event)) => event,
            Some(Err(error)) => return Err(broken(error)),
            None => return Err(failures::transport("the stream was cut before the reply was whole")),
        };
        waiting.store(0, Ordering::Relaxed);
        let progress = reply.frame(event.event.as_deref(), event.data.as_deref(), asked, &mut *show)?;
        if progress == Progress::Whole {
            break;
        }
    }
    let reply = reply.finish(asked)?;
    let rest = async { while let Some(Ok(_)) = events.next().await {} };
    // The reply is the same whether the connection ended in time or not.
    let _ = tokio::time::timeout(FAREWELL, rest).await;
    Ok(reply)
}

fn broken(error: sse_stream::Error) -> Failure {
    match &error {
        sse_stream::Error::Body(inner) => match inner.downcast_ref::<ReadError>() {
            Some(ReadError::Idle(idle)) => {
                failures::deadline(format!("the stream stalled: nothing came for {} s", idle.as_secs_f64()))
            }
            Some(ReadError::TooLong) => failures::transport(ReadError::TooLong),
            Some(ReadError::Cut(why)) => failures::transport(format!("the stream was cut ({why})")),
            None => failures::transport(format!("the stream was cut ({inner})")),
        },
        _ => failures::transport(format!("the stream holds a malformed frame ({error})")),
    }
}
