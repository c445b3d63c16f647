//! What holds for the whole process, whichever thread wrote it down.

use super::inputs::InputsTable;
use super::paths::text_of_path;
use super::record::Record;
use crate::clock::ClockPoint;
use crate::layout::{BeginWord, Tag};
use crate::ring::SNAPSHOT_REASON;
use std::collections::BTreeMap;

/// What the records of no thread in particular say.
#[derive(Default, Debug)]
pub(crate) struct ProcessRecords {
    /// By id: those that are defined, then those that stand in activity records.
    pub(crate) names: Vec<String>,
    /// How many are defined.
    pub(super) defined_names: u32,
    /// By the id of their name; there are as many as the last one needs.
    pub(crate) overloads: Vec<String>,
    pub(crate) inputs: InputsTable,
    /// Paths of files, by number; those that are not defined are empty.
    pub(crate) files: Vec<String>,
    /// Stacks as they are defined: id, id of the caller's stack, name of the frame.
    pub(crate) stacks: Vec<(u32, Option<u32>, u32)>,
    pub(crate) clock_points: Vec<ClockPoint>,
    /// Ticks, on or off, cycle.
    pub(crate) windows: Vec<(u64, bool, u64)>,
    /// Moments of the device profiler's clock: ns there, and ticks.
    pub(crate) device_moments: Vec<(i64, u64)>,
    /// Ticks at which calls were recorded no longer, in order.
    pub(super) call_stops: Vec<u64>,
    /// Each with the moment it was said: the last one holds.
    metadata: BTreeMap<String, (u64, String)>,
}

/// Whether a record is taken in by [`ProcessRecords`], before any thread is replayed.
pub(super) fn is_of_process(tag: Tag) -> bool {
    let is_of_inputs = matches!(tag, Tag::Inputs | Tag::InputsInPlace);
    is_of_inputs
        || matches!(
            tag,
            Tag::Name
                | Tag::Overload
                | Tag::Fact
                | Tag::Clock
                | Tag::Window
                | Tag::CallsStop
                | Tag::DeviceClock
                | Tag::File
                | Tag::Stack
        )
}

impl ProcessRecords {
    pub(super) fn learn(&mut self, record: &Record) {
        let (low, high) = record.halves(0);
        match record.tag {
            Tag::Name => set_text(&mut self.names, low, record.text(8, high as usize)),
            Tag::File => set_text(&mut self.files, low, text_of_path(record.bytes(8, high as usize))),
            Tag::Stack => self.stacks.push((low, high.checked_sub(1), record.halves(1).0)),
            Tag::Overload => set_text(&mut self.overloads, low, record.text(8, high as usize)),
            Tag::Inputs => self.inputs.learn(low, record.bytes(8, high as usize)),
            Tag::InputsInPlace => self.inputs.learn_in_place(record.bytes(8, low as usize)),
            Tag::Fact => {
                let (key, value) = (record.text(8, low as usize), record.text(8 + low as usize, high as usize));
                let fact = self.metadata.entry(key).or_default();
                if record.ticks >= fact.0 {
                    *fact = (record.ticks, value);
                }
            }
            Tag::Clock => self.clock_points.push(ClockPoint {
                ticks: record.ticks,
                monotonic_ns: record.word(0) as i64,
                unix_ns: record.word(1) as i64,
            }),
            Tag::Window => self.windows.push((record.ticks, record.word(0) != 0, record.word(1))),
            Tag::DeviceClock => self.device_moments.push((record.word(0) as i64, record.ticks)),
            Tag::CallsStop => self.call_stops.push(record.ticks),
            _ => {}
        }
    }

    /// When this copy of a ring was requested.
    pub(crate) fn snapshot_ticks(&self) -> Option<u64> {
        self.metadata.get(SNAPSHOT_REASON).map(|(ticks, _)| *ticks)
    }

    /// Metadata about the process, sorted by key; an empty value took its key back.
    pub(crate) fn metadata(&self) -> Vec<(String, String)> {
        let known = self.metadata.iter().filter(|(_, (_, value))| !value.is_empty());
        known.map(|(key, (_, value))| (key.clone(), value.clone())).collect()
    }
}

/// Puts a text in the place of its id.
fn set_text(texts: &mut Vec<String>, id: u32, text: String) {
    if id < BeginWord::NAMES {
        texts.resize(texts.len().max(id as usize + 1), String::new());
        texts[id as usize] = text;
    }
}
