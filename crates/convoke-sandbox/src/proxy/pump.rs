//! Moves bytes between a client and the host it may reach, until both have said all or neither says anything.
//! Never looks at them.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::head::Forward;

/// Both directions, each until its end: when one side has said all, the other may go on.
pub(super) async fn tunnel(mut client: TcpStream, mut upstream: TcpStream, first: &[u8], idle: Duration) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_upstream, mut to_upstream) = upstream.split();
    let moves = AtomicU64::new(0);
    let out = async {
        to_upstream.write_all(first).await?;
        pour(&mut from_client, &mut to_upstream, u64::MAX, &moves).await?;
        to_upstream.shutdown().await
    };
    let back = async {
        pour(&mut from_upstream, &mut to_client, u64::MAX, &moves).await?;
        to_client.shutdown().await
    };
    tokio::select! {
        // An error in one direction means that a side is gone, and so is the other direction.
        _ = async { tokio::try_join!(out, back) } => {}
        () = silence(&moves, idle) => {}
    }
}

/// One request and its answer, which ends when the host hangs up. Whatever the client sends behind its
/// request goes nowhere.
pub(super) async fn exchange(
    mut client: TcpStream,
    mut upstream: TcpStream,
    forward: &Forward,
    first: &[u8],
    idle: Duration,
) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_upstream, mut to_upstream) = upstream.split();
    let moves = AtomicU64::new(0);
    let here = first.len().min(usize::try_from(forward.body).unwrap_or(usize::MAX));
    let left = forward.body - here as u64;
    let send = async {
        to_upstream.write_all(&forward.head).await?;
        to_upstream.write_all(&first[..here]).await?;
        if pour(&mut from_client, &mut to_upstream, left, &moves).await? < left {
            // Without the whole body there is nothing that the host could answer.
            to_upstream.shutdown().await?;
        }
        io::Result::Ok(())
    };
    let back = async {
        pour(&mut from_upstream, &mut to_client, u64::MAX, &moves).await?;
        to_client.shutdown().await
    };
    let sending = async {
        // A host that wants no more of the body may have answered already, so a failure to send is not the
        // end.
        drop(send.await);
        std::future::pending::<()>().await;
    };
    let answered = tokio::select! {
        answered = back => answered.is_ok(),
        () = sending => false,
        () = silence(&moves, idle) => false,
    };
    if answered {
        // What the client still sends would otherwise take the end of the answer away from it.
        drop(timeout(FAREWELL, swallow(&mut from_client)).await);
    }
}

/// For a client to take the end of an answer.
const FAREWELL: Duration = Duration::from_secs(2);

/// Copies at most `limit` bytes and says how many there were.
async fn pour(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    limit: u64,
    moves: &AtomicU64,
) -> io::Result<u64> {
    let mut buffer = vec![0; 16 * 1024];
    let mut count = 0;
    while count < limit {
        let room = buffer.len().min(usize::try_from(limit - count).unwrap_or(usize::MAX));
        let read = from.read(&mut buffer[..room]).await?;
        if read == 0 {
            break;
        }
        moves.fetch_add(1, Ordering::Relaxed);
        to.write_all(&buffer[..read]).await?;
        moves.fetch_add(1, Ordering::Relaxed);
        count += read as u64;
    }
    Ok(count)
}

/// Reads to the end and drops what it reads.
async fn swallow(from: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut ignored = [0; 4096];
    while from.read(&mut ignored).await? > 0 {}
    Ok(())
}

/// Ends when nothing has moved for `idle`, at the latest when nothing has for twice as long.
async fn silence(moves: &AtomicU64, idle: Duration) {
    let mut before = None;
    loop {
        let now = moves.load(Ordering::Relaxed);
        if before == Some(now) {
            return;
        }
        before = Some(now);
        sleep(idle).await;
    }
}
