//! What devices' profilers report, written by the part of the recorder that listens to one. Not for hot paths: an
//! activity record takes a thread of the recorder's own about a tenth of a microsecond.

use super::{ThreadBuffer, truncated, with_buffer};
use crate::clock::ticks;
use crate::names::Name;
use crate::session::count_dropped;
use std::cell::Cell;
use stepscope_capture::DeviceActivity;
use stepscope_capture::device::{LONGEST, encode};
use stepscope_capture::layout::{Tag, padded};

/// Readings of both clocks, of which the shortest is taken.
const CLOCK_READINGS: usize = 5;

/// Writes an activity record. `name` is the text that the activity record's name stands for, whatever id it has.
pub fn device_activity(activity: &DeviceActivity, name: Option<&str>) {
    let mut record = activity.record;
    with_buffer(|buffer| {
        let mut text: &[u8] = &[];
        if let (Some(id), Some(name)) = (record.name_mut(), name) {
            text = truncated(name.as_bytes());
            // SAFETY: a text that lives during the call.
            *id = unsafe { buffer.name_id(Name::text(name)) };
        }
        let epoch = buffer.epoch;
        if !buffer.reserve(MOMENT_WORDS + LONGEST + padded(text.len()) / 8) {
            return;
        }
        repeat_moment(buffer);
        match record.name_mut() {
            // The id belongs to the capture before.
            Some(id) if buffer.epoch != epoch => *id = None,
            Some(Some(_)) => text = &[],
            _ => {}
        }
        // Where the table has no room for the name, the record has.
        let words = encode(&record, activity.device_type).with_text(text.len());
        buffer.write(ticks(), Tag::Device, words.as_slice(), text);
    });
}

/// Ties the clock of a device's profiler, which `read` reads in ns, to the capture's. Readings that fail do not count.
pub fn device_clock(mut read: impl FnMut() -> Option<i64>) {
    let reading = |_| {
        let before = ticks();
        let device_ns = read()?;
        let after = ticks();
        Some((after.wrapping_sub(before), before.wrapping_add(after.wrapping_sub(before) / 2), device_ns))
    };
    let Some((_, at_ticks, device_ns)) = (0..CLOCK_READINGS).filter_map(reading).min_by_key(|(took, ..)| *took) else {
        return;
    };
    with_buffer(|buffer| {
        buffer.append(at_ticks, Tag::DeviceClock, &[device_ns as u64], &[]);
        LAST_MOMENT.set(Moment { epoch: buffer.epoch, part: buffer.part, at_ticks, device_ns });
    });
}

/// A reading of both clocks, and in which part of the thread's records it stands.
#[derive(Clone, Copy)]
struct Moment {
    epoch: u64,
    part: u32,
    at_ticks: u64,
    device_ns: i64,
}

/// Words of its record.
const MOMENT_WORDS: usize = 2;

thread_local! {
    static LAST_MOMENT: Cell<Moment> = const { Cell::new(Moment { epoch: 0, part: 0, at_ticks: 0, device_ns: 0 }) };
}

/// Has the last reading of the clocks stand in the segment at hand, for which there is room: a ring may evict the one
/// where it stood, and without it no activity record could be placed.
fn repeat_moment(buffer: &mut ThreadBuffer) {
    let moment = LAST_MOMENT.get();
    if moment.epoch == buffer.epoch && moment.part != buffer.part {
        buffer.write(moment.at_ticks, Tag::DeviceClock, &[moment.device_ns as u64], &[]);
        LAST_MOMENT.set(Moment { part: buffer.part, ..moment });
    }
}

/// Writes a sampled quantity, whose name says the unit.
pub fn counter(name: &str, value: i64) {
    with_buffer(|buffer| {
        // SAFETY: a text that lives during the call.
        match unsafe { buffer.name_id(Name::text(name)) } {
            Some(id) => buffer.append(ticks(), Tag::Counter, &[u64::from(id), value as u64], &[]),
            // There is room in the capture, and none in the table of names.
            None if buffer.reserve(1) => count_dropped(),
            None => {}
        }
    });
}
