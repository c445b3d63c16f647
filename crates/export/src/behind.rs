//! Text is handed to the system by a thread of its own, while more of it is written.

use crate::piece::Piece;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Pieces that wait at most.
const WAITING: usize = 2;

/// Writes what `write` writes into `out`. Text of less than a piece needs no thread.
///
/// # Errors
/// When `out` cannot be written to, or `write` says so.
pub(crate) fn write_behind(
    out: &mut (dyn Write + Send),
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    std::thread::scope(|scope| {
        let mut behind = Behind { scope, place: Place::Here(out), text: Piece::default() };
        let written = write(&mut behind);
        // What stopped the thread is why `write` could not go on.
        behind.finish().and(written)
    })
}

struct Behind<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    place: Place<'scope>,
    text: Piece,
}

/// Who writes.
enum Place<'scope> {
    Here(&'scope mut (dyn Write + Send)),
    Thread {
        pieces: SyncSender<Piece>,
        emptied: Receiver<Piece>,
        thread: ScopedJoinHandle<'scope, io::Result<()>>,
    },
    /// Nobody any more: it was told why.
    Gone,
}

impl Behind<'_, '_> {
    /// Hands on what has gathered.
    fn hand_on(&mut self) -> io::Result<()> {
        if let Place::Here(_) = &self.place
            && let Place::Here(out) = std::mem::replace(&mut self.place, Place::Gone)
        {
            let (pieces, waiting) = sync_channel::<Piece>(WAITING);
            let (empty, emptied) = sync_channel::<Piece>(WAITING + 2);
            let thread = std::thread::Builder::new().spawn_scoped(self.scope, move || {
                waiting.iter().try_for_each(|mut piece| {
                    out.write_all(piece.bytes())?;
                    piece.clear();
                    // Nobody takes it when the text has ended.
                    let _ = empty.try_send(piece);
                    Ok(())
                })
            })?;
            self.place = Place::Thread { pieces, emptied, thread };
        }
        let Place::Thread { pieces, emptied, .. } = &self.place else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let next = emptied.try_recv().unwrap_or_default();
        let piece = std::mem::replace(&mut self.text, next);
        // It has stopped: `finish` says why.
        pieces.send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Waits until everything is written; says what went wrong meanwhile.
    fn finish(mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.place, Place::Gone) {
            Place::Here(out) => out.write_all(self.text.bytes()),
            Place::Thread { pieces, thread, .. } => {
                // Nobody receives it when writing has failed.
                let _ = pieces.send(std::mem::take(&mut self.text));
                drop(pieces);
                thread.join().expect("it only writes")
            }
            Place::Gone => Ok(()),
        }
    }
}

impl Write for Behind<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Handed on only when more comes: the end needs no thread.
        if self.text.is_full() {
            self.hand_on()?;
        }
        Ok(self.text.add(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::piece::PIECE_BYTES;
    use crate::save::tests::Full;

    #[test]
    fn everything_arrives_in_order() {
        for len in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 9 * PIECE_BYTES + 77] {
            let text: Vec<u8> = (0..len).map(|at| ((at / 3) ^ (at / 1_000)) as u8).collect();
            for piece in [1_000, 70_001, 3 * PIECE_BYTES] {
                let mut found = Vec::new();
                write_behind(&mut found, |out| text.chunks(piece).try_for_each(|piece| out.write_all(piece))).unwrap();
                assert!(found == text, "{len} bytes in pieces of {piece}");
            }
        }
    }

    #[test]
    fn what_went_wrong_is_told_wherever_it_did() {
        let text = vec![7; 9 * PIECE_BYTES];
        for (room, len) in [(0, 1), (PIECE_BYTES, 2 * PIECE_BYTES), (3 * PIECE_BYTES, 9 * PIECE_BYTES)] {
            let error = write_behind(&mut Full(room), |out| {
                let _ = text[..len].chunks(100_000).try_for_each(|piece| out.write_all(piece));
                Ok(())
            });
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull, "{room} of {len}");
            let error = write_behind(&mut Full(room), |out| {
                text[..len].chunks(100_000).try_for_each(|piece| out.write_all(piece))
            });
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull, "{room} of {len}");
        }
        let own = write_behind(&mut Vec::new(), |_| Err(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(own.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
