//! PyTorch's snapshots of its CUDA allocator, as `torch.cuda.memory._dump_snapshot` writes them: a pickle of what is
//! allocated at one moment, and, where it was recorded, the history of allocations and frees before it.
//!
//! [`document`] finds segments, blocks and entries in the pickle, [`entries`] reads one each, `call_stacks` their
//! call stacks, [`replay`] makes events of them with totals, [`annotations`] the labels of the program.
//!
//! All events lie on one track: a snapshot does not tell threads apart. Sizes are those that were asked for; PyTorch's
//! `memory_allocated()` counts blocks, which are rounded up.

mod annotations;
mod document;
mod entries;
mod replay;
#[cfg(test)]
mod tests;

use crate::pickle::{self, PickleError, Plain};
use crate::window::Blocks;
use crate::{ImportError, flight_recorder};
use document::{Document, Keys};
use std::path::Path;
use stepscope_trace::{FindingCode, Process, Trace, TraceBuilder, Track, TrackKind};

/// Reads a pickle, also one that is a dump of the Flight Recorder.
///
/// # Errors
/// When it is none, or neither of both.
pub(crate) fn read(path: &Path, name: String, blocks: impl Blocks) -> Result<Trace, ImportError> {
    let mut builder = TraceBuilder::new(name);
    builder.sources.push(path.display().to_string());
    let mut plain = Plain::default();
    let keys = Keys::of(&mut plain.texts);
    let refused = |found: String, at_byte: Option<u64>| {
        let place = at_byte.map_or(String::new(), |at_byte| format!(" at byte {at_byte}"));
        ImportError::NotASnapshot { path: path.into(), found: found + &place }
    };
    match pickle::read(blocks, &mut plain) {
        Ok(()) => {}
        Err(PickleError::Damaged { at_byte, found }) => return Err(refused(found, Some(at_byte))),
        Err(PickleError::Cut { at_byte, reason }) => {
            let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
            builder.findings.add(FindingCode::TruncatedInput, || format!("at byte {at_byte}{reason}"));
        }
    }
    report_oddities(&plain, &mut builder);
    if flight_recorder::is_dump(&plain) {
        return Ok(flight_recorder::of_plain(path, &plain, builder));
    }
    let document = Document::of(&plain, &keys, &mut builder).map_err(|found| refused(found, None))?;
    let process = builder.add_process(Process { name: "PyTorch".into(), ..Process::default() });
    let track = builder.add_track(Track::new(TrackKind::Thread, process, "all threads"));
    document.add_to(track, &mut builder);
    builder.findings.add(FindingCode::NoDeviceEvents, || builder.name.clone());
    Ok(builder.finish())
}

fn report_oddities(plain: &Plain, builder: &mut TraceBuilder) {
    let names = &plain.foreign_names;
    names.iter().for_each(|name| builder.findings.add(FindingCode::ForeignObject, || name.clone()));
    builder.findings.add_count(FindingCode::ForeignObject, plain.foreign_count - names.len() as u64);
    builder.findings.add_count(FindingCode::RepairedText, plain.repaired_texts);
}
