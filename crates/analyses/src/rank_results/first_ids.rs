//! Where the ids of one trace begin in a merged one.

use stepscope_trace::Trace;

/// Where the ids of one trace begin in a merged one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FirstIds {
    /// Its first process.
    pub process: u32,
    /// Its first track.
    pub track: u32,
    /// Its first slice.
    pub slice: u32,
}

impl FirstIds {
    /// Where what follows begins, of something that would end at `size` if it were the first.
    pub fn plus(self, size: Self) -> Self {
        Self { process: self.process + size.process, track: self.track + size.track, slice: self.slice + size.slice }
    }

    /// Where the trace behind `trace` begins.
    pub fn after(self, trace: &Trace) -> Self {
        let sum = |first: u32, len: usize| first + u32::try_from(len).expect("ids are of 32 bits");
        Self {
            process: sum(self.process, trace.processes.len()),
            track: sum(self.track, trace.tracks.len()),
            slice: sum(self.slice, trace.slices.len()),
        }
    }
}
