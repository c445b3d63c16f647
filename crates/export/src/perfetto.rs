//! Perfetto's own protobuf: a track for each lane, slices as begin and end, counters, arrows, samples of stacks.
//!
//! Times are nanoseconds since the start of the trace on Perfetto's trace clock; one snapshot says which Unix time that
//! is. Names and categories are written once and referred to by number.

mod counters;
mod descriptors;
mod details;
mod interned;
mod samples;
mod slices;

use crate::numbering::Numbering;
use crate::protobuf::Message;
use interned::Interned;
use std::io::{self, Write};
use stepscope_trace::Trace;

/// Bytes are handed on when this many are there.
const CHUNK_BYTES: usize = 1 << 16;
/// Everything comes from one writer.
const SEQUENCE: u64 = 1;

/// Numbers of fields, as Perfetto's `trace_packet.proto` has them.
mod packet {
    pub(super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const INTERNED_DATA: u32 = 12;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
    /// The only field of a whole trace.
    pub(super) const IN_TRACE: u32 = 1;
    /// Values of the flags.
    pub(super) const STATE_CLEARED: u64 = 1;
    pub(super) const NEEDS_STATE: u64 = 2;
}

/// Writes `trace` as a Perfetto trace. Memory beyond the trace does not grow with what is written.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_perfetto(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let numbers = Numbering::new(trace, 1..=i64::from(i32::MAX));
    let mut document = Document { trace, numbers, bytes: Message::default(), interned: Interned::new(trace), out };
    document.write_clock()?;
    descriptors::write(&mut document)?;
    slices::write(&mut document)?;
    counters::write(&mut document)?;
    samples::write(&mut document)?;
    document.flush()
}

/// A trace under way.
struct Document<'a> {
    trace: &'a Trace,
    numbers: Numbering,
    bytes: Message,
    interned: Interned,
    out: &'a mut dyn Write,
}

impl Document<'_> {
    /// Adds a packet; what has gathered is handed on when it is enough.
    fn packet(&mut self, packet: &Message) -> io::Result<()> {
        self.bytes.message(packet::IN_TRACE, packet);
        if self.bytes.len() >= CHUNK_BYTES { self.flush() } else { Ok(()) }
    }

    /// Adds a track's event with what it refers to and was not written before.
    fn event(&mut self, time_ns: i64, event: &Message) -> io::Result<()> {
        let mut packet = Message::default();
        packet.int(packet::TIMESTAMP, time_ns);
        packet.number(packet::SEQUENCE_ID, SEQUENCE);
        packet.number(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
        let interned = self.interned.take();
        if interned.len() > 0 {
            packet.message(packet::INTERNED_DATA, &interned);
        }
        packet.message(packet::TRACK_EVENT, event);
        self.packet(&packet)
    }

    /// The first packet: a new state, and what time it is at time 0.
    fn write_clock(&mut self) -> io::Result<()> {
        const CLOCKS: u32 = 1;
        const PRIMARY: u32 = 2;
        const REALTIME: u64 = 1;
        const BOOTTIME: u64 = 6;
        let mut first = Message::default();
        first.number(packet::SEQUENCE_ID, SEQUENCE);
        first.number(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
        if let Some(start_ns) = self.trace.start_unix_ns.filter(|ns| *ns >= 0) {
            let clock = |id: u64, time_ns: i64| {
                let mut clock = Message::default();
                clock.number(1, id);
                clock.int(2, time_ns);
                clock
            };
            let mut snapshot = Message::default();
            snapshot.message(CLOCKS, &clock(BOOTTIME, 0));
            snapshot.message(CLOCKS, &clock(REALTIME, start_ns));
            snapshot.number(PRIMARY, BOOTTIME);
            first.int(packet::TIMESTAMP, 0);
            first.message(packet::CLOCK_SNAPSHOT, &snapshot);
        }
        self.packet(&first)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(self.bytes.bytes())?;
        self.bytes.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
