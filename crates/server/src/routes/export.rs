//! A trace, or what lies in a window, as a file for other programs. It is sent while it is written.

use super::timeline::OF_RANK;
use super::{Answer, file};
use crate::app_state::AppState;
use crate::failure::Failure;
use crate::query::Query;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use futures_util::stream::{StreamExt, unfold};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use stepscope_export::{Format, write_trace};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::timeout;

/// Pieces that wait to be sent at most.
const WAITING: usize = 8;
/// Bytes are sent when this many are there.
const PIECE_BYTES: usize = 1 << 16;
/// How long a client may take for a piece.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// `api/runs/RUN/export`.
pub(super) async fn export(
    State(state): State<Arc<AppState>>,
    Path(run): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer {
    let query = Query::parse(raw.as_deref(), &["format", "start_ns", "end_ns", OF_RANK])?;
    let (format, ending, kind) = match query.needed_text("format")? {
        "chrome" => (Format::Chrome { is_packed: false }, ".json", "application/json"),
        "perfetto" => (Format::Perfetto { is_packed: false }, ".pftrace", "application/octet-stream"),
        _ => {
            let failure = Failure::bad_request("unknown trace format");
            return Err(failure.hint("use chrome or perfetto"));
        }
    };
    let (window, rank) = (query.window()?, query.number(OF_RANK)?);
    let (run, loaded) = state.runs.loaded(&run)?;
    let (pool, of_run) = (state.pool.clone(), loaded.clone());
    let all = pool.long(move || of_run.events(rank)).await??;
    let (pieces, waiting) = channel(WAITING);
    let (broken, runtime) = (pieces.clone(), Handle::current());
    let write = move || {
        let part = window.map(|window| Arc::new(all.part(window)));
        let trace = part.unwrap_or(all);
        let mut out = Pieces { pieces, runtime, gathered: Vec::new() };
        if let Err(error) = write_trace(&trace, format, &mut out).and_then(|()| out.flush()) {
            // The client then sees that the answer breaks off. When it went away itself, the error is dropped.
            out.send(Err(error)).ok();
        }
    };
    tokio::spawn(async move {
        if pool.sent(write).await.is_err() {
            // An answer that just ended would be taken for a whole one.
            broken.send(Err(io::Error::other("writing met a defect"))).await.ok();
        }
    });
    let body = unfold(waiting, async |mut waiting| waiting.recv().await.map(|piece| (piece, waiting)));
    // The layer that compresses the answer polls once more after its end.
    let of_rank = rank.filter(|_| !loaded.shows_all()).map_or(String::new(), |rank| format!(".rank{rank}"));
    Ok(file(run.name(), &(of_rank + ending), kind, Body::from_stream(body.fuse())))
}

/// Where a file is written to: the client. Writing waits while the client is slow, and ends when it is gone.
struct Pieces {
    pieces: Sender<io::Result<Bytes>>,
    /// Large traces are written by a thread that knows of none.
    runtime: Handle,
    gathered: Vec<u8>,
}

impl Write for Pieces {
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

impl Pieces {
    /// Hands a piece on; an error when nobody takes it.
    fn send(&self, piece: io::Result<Bytes>) -> io::Result<()> {
        let sent = self.runtime.block_on(async { timeout(CLIENT_TIMEOUT, self.pieces.send(piece)).await });
        sent.ok().and_then(Result::ok).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}
