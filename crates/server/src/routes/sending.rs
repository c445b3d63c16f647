//! Files that are sent while they are written.

use crate::pool::Pool;
use axum::body::{Body, Bytes};
use futures_util::stream::{StreamExt, unfold};
use std::io::{self, Write};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::timeout;

/// Pieces that wait to be sent at most.
const WAITING: usize = 8;
/// Bytes are sent when this many are there.
const PIECE_BYTES: usize = 1 << 16;
/// How long a client may take for a piece.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Where the pieces of an answer go.
pub(super) type Pieces = Sender<io::Result<Bytes>>;

/// An answer, and where its pieces go. It ends when nobody can add a piece any more.
pub(super) fn pieces() -> (Pieces, Body) {
    let (pieces, waiting) = channel(WAITING);
    let body = unfold(waiting, async |mut waiting| waiting.recv().await.map(|piece| (piece, waiting)));
    // The layer that compresses the answer polls once more after its end.
    (pieces, Body::from_stream(body.fuse()))
}

/// Adds a piece to an answer. An error among them makes the answer break off: one that just ended would be taken for a
/// whole one.
///
/// # Errors
/// When nobody takes it.
pub(super) async fn send(pieces: &Pieces, piece: io::Result<Bytes>) -> io::Result<()> {
    let sent = timeout(CLIENT_TIMEOUT, pieces.send(piece)).await;
    sent.ok().and_then(Result::ok).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
}

/// What `write` writes, sent meanwhile.
pub(super) fn written(pool: Pool, write: impl FnOnce(&mut Client) -> io::Result<()> + Send + 'static) -> Body {
    let (pieces, body) = pieces();
    let (broken, runtime) = (pieces.clone(), Handle::current());
    let work = move || {
        let mut out = Client { pieces, runtime, gathered: Vec::new() };
        if let Err(error) = write(&mut out).and_then(|()| out.flush()) {
            // When the client went away itself, the error is dropped.
            out.send(Err(error)).ok();
        }
    };
    tokio::spawn(async move {
        if pool.sent(work).await.is_err() {
            broken.send(Err(io::Error::other("writing met a defect"))).await.ok();
        }
    });
    body
}

/// Where a file is written to. Writing waits while the client is slow, and ends when it is gone.
pub(super) struct Client {
    pieces: Pieces,
    /// Large traces are written by a thread that knows of none.
    runtime: Handle,
    gathered: Vec<u8>,
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.gathered);
        if piece.is_empty() {
            return Ok(());
        }
        self.send(Ok(piece.into()))
    }
}

impl Client {
    fn send(&self, piece: io::Result<Bytes>) -> io::Result<()> {
        self.runtime.block_on(send(&self.pieces, piece))
    }
}
