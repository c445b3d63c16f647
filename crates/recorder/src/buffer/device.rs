//! What devices' profilers report, written by whoever listens to one. Not for hot paths: a report takes a thread of the
//! recorder's own about a tenth of a microsecond.

use super::with_buffer;
use crate::clock::ticks;
use crate::names::Name;
use stepscope_capture::DeviceReport;
use stepscope_capture::device::{LONGEST, encode};
use stepscope_capture::layout::Tag;

/// Readings of both clocks, of which the shortest is taken.
const CLOCK_READINGS: usize = 5;

/// Writes a report. `name` is the text that the report's name stands for, whatever id it has.
pub fn device_report(report: &DeviceReport, name: Option<&str>) {
    let mut record = report.record;
    with_buffer(|buffer| {
        if let (Some(id), Some(name)) = (record.name_mut(), name) {
            // SAFETY: a text that lives during the call.
            *id = unsafe { buffer.name_id(Name::text(name)) };
        }
        let epoch = buffer.epoch;
        if !buffer.reserve(LONGEST) {
            return;
        }
        if buffer.epoch != epoch {
            // The id belongs to the capture before.
            record.name_mut().into_iter().for_each(|id| *id = None);
        }
        buffer.write(ticks(), Tag::Device, encode(&record, report.device_type).as_slice(), &[]);
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
    with_buffer(|buffer| buffer.append(at_ticks, Tag::DeviceClock, &[device_ns as u64], &[]));
}

/// Writes a sampled quantity, whose name says the unit.
pub fn device_counter(name: &str, value: i64) {
    with_buffer(|buffer| {
        // SAFETY: a text that lives during the call.
        let Some(id) = (unsafe { buffer.name_id(Name::text(name)) }) else { return };
        buffer.append(ticks(), Tag::Counter, &[u64::from(id), value as u64], &[]);
    });
}
