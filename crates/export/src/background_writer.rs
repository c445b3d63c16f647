//! A separate thread writes text to a file, while more of it is produced.

use crate::block::Block;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Blocks that wait at most.
const WAITING: usize = 2;

/// Writes what `write` writes into `out`. Text of less than a block needs no thread.
///
/// # Errors
/// When `out` cannot be written to, or `write` says so.
pub(crate) fn write_in_background(
    out: &mut (dyn Write + Send),
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    std::thread::scope(|scope| {
        let mut writer = BackgroundWriter { scope, target: Target::Inline(out), text: Block::default() };
        let written = write(&mut writer);
        // What stopped the thread is why `write` could not go on.
        writer.finish().and(written)
    })
}

struct BackgroundWriter<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    target: Target<'scope>,
    text: Block,
}

/// Who writes.
enum Target<'scope> {
    Inline(&'scope mut (dyn Write + Send)),
    Thread {
        blocks: SyncSender<Block>,
        recycled: Receiver<Block>,
        thread: ScopedJoinHandle<'scope, io::Result<()>>,
    },
    /// None any more: it has failed.
    Stopped,
}

impl BackgroundWriter<'_, '_> {
    /// Sends what has gathered.
    fn send_block(&mut self) -> io::Result<()> {
        if let Target::Inline(_) = &self.target
            && let Target::Inline(out) = std::mem::replace(&mut self.target, Target::Stopped)
        {
            let (blocks, waiting) = sync_channel::<Block>(WAITING);
            let (empty, recycled) = sync_channel::<Block>(WAITING + 2);
            let thread = std::thread::Builder::new().spawn_scoped(self.scope, move || {
                waiting.iter().try_for_each(|mut block| {
                    out.write_all(block.bytes())?;
                    block.clear();
                    // Nobody takes it when the text has ended.
                    let _ = empty.try_send(block);
                    Ok(())
                })
            })?;
            self.target = Target::Thread { blocks, recycled, thread };
        }
        let Target::Thread { blocks, recycled, .. } = &self.target else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let next = recycled.try_recv().unwrap_or_default();
        let block = std::mem::replace(&mut self.text, next);
        // It has stopped: `finish` says why.
        blocks.send(block).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Waits until everything is written; says what went wrong meanwhile.
    fn finish(mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.target, Target::Stopped) {
            Target::Inline(out) => out.write_all(self.text.bytes()),
            Target::Thread { blocks, thread, .. } => {
                // Nobody receives it when writing has failed.
                let _ = blocks.send(std::mem::take(&mut self.text));
                drop(blocks);
                thread.join().expect("it only writes")
            }
            Target::Stopped => Ok(()),
        }
    }
}

impl Write for BackgroundWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Sent only when more comes: the end needs no thread.
        if self.text.is_full() {
            self.send_block()?;
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
    use crate::block::BLOCK_BYTES;
    use crate::save::tests::Full;

    #[test]
    fn everything_arrives_in_order() {
        for len in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 9 * BLOCK_BYTES + 77] {
            let text: Vec<u8> = (0..len).map(|at| ((at / 3) ^ (at / 1_000)) as u8).collect();
            for block in [1_000, 70_001, 3 * BLOCK_BYTES] {
                let mut found = Vec::new();
                write_in_background(&mut found, |out| text.chunks(block).try_for_each(|block| out.write_all(block)))
                    .unwrap();
                assert!(found == text, "{len} bytes in pieces of {block}");
            }
        }
    }

    #[test]
    fn what_went_wrong_is_told_wherever_it_did() {
        let text = vec![7; 9 * BLOCK_BYTES];
        for (room, len) in [(0, 1), (BLOCK_BYTES, 2 * BLOCK_BYTES), (3 * BLOCK_BYTES, 9 * BLOCK_BYTES)] {
            let error = write_in_background(&mut Full(room), |out| {
                let _ = text[..len].chunks(100_000).try_for_each(|block| out.write_all(block));
                Ok(())
            });
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull, "{room} of {len}");
            let error = write_in_background(&mut Full(room), |out| {
                text[..len].chunks(100_000).try_for_each(|block| out.write_all(block))
            });
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull, "{room} of {len}");
        }
        let own = write_in_background(&mut Vec::new(), |_| Err(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(own.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
