//! What has no duration: names of rows, ends of arrows, memory, instants, counters.

use super::{Rows, Translation};
use crate::json::text;
use crate::kineto::entries::ChunkStackSample;
use stepscope_base::StringId;
use stepscope_trace::{Counter, FindingCode, MemoryEvent, StackSample};

/// Instants that our own export writes where it knows of steps that no label marks: an optimizer's step was running …
const STEP_MARK: &str = "Stepscope: optimizer step";
/// … and the recording of this process ended while it was at work.
const CUT_MARK: &str = "Stepscope: step cut";

impl Rows {
    /// Adds those of a chunk.
    pub(super) fn add_moments(&mut self, translation: &mut Translation<'_>) {
        let chunk = translation.chunk;
        for named in &chunk.row_names {
            let name = text::decode(chunk.texts.get(named.name)).text.trim().to_string();
            let row = translation.rows[named.row as usize];
            match named.is_of_process {
                true => self.tracks.name_process(row, name),
                false => self.tracks.name_row(row, name),
            }
        }
        let mut rows_of_arrows = vec![None; chunk.rows.len()];
        for arrow in &chunk.arrows {
            let at = arrow.row as usize;
            let row = *rows_of_arrows[at].get_or_insert_with(|| self.arrows.row(translation.rows[at]));
            let point = (row, arrow.time_ns);
            self.arrows.add(arrow.is_start, arrow.category, arrow.id, point, &mut self.builder.findings);
        }
        for event in &chunk.memory {
            let track = self.thread(translation, event.row);
            let device = event.device.map(|ordinal| self.tracks.device(&mut self.builder, ordinal));
            self.last_ns = self.last_ns.max(event.time_ns);
            let seen = MemoryEvent {
                time_ns: event.time_ns,
                track,
                device,
                address: event.address,
                bytes: event.bytes,
                allocated_bytes: event.allocated_bytes,
                reserved_bytes: event.reserved_bytes,
                op: None,
                stream: None,
                stack: None,
            };
            if event.address == 0 && event.bytes != 0 && !event.is_out_of_memory {
                let example = || format!("{} bytes at {} ns", event.bytes, event.time_ns);
                self.builder.findings.add(FindingCode::MemoryWithoutAddresses, example);
            }
            match event.is_out_of_memory {
                true => self.builder.add_out_of_memory(seen),
                false => self.builder.add_memory_event(seen),
            }
        }
        for instant in &chunk.instants {
            let name_at = self.name(translation, instant.name);
            if self.name_infos[name_at].is_repaired {
                self.report_repair(name_at);
            }
            self.last_ns = self.last_ns.max(instant.time_ns);
            let row = translation.rows[instant.row as usize];
            self.instants.push((row, self.name_infos[name_at].name, instant.time_ns, instant.is_on_thread));
        }
        for sample in &chunk.stack_samples {
            let track = self.thread(translation, sample.row);
            self.last_ns = self.last_ns.max(sample.time_ns);
            let &ChunkStackSample { time_ns, doing, ran_ns, runnable_ns, .. } = sample;
            let of = StackSample { track, time_ns, stack: None, doing, ran_ns, runnable_ns };
            self.stack_samples.push((of, sample.frame));
        }
        for sample in &chunk.samples {
            let (name, series) = (self.text(translation, sample.name), self.text(translation, sample.series));
            let row = translation.rows[sample.row as usize];
            let key = (row, self.counter_name(name, series));
            let process = self.tracks.process_of_row(&mut self.builder, row);
            let counter = self.counters.entry(key).or_insert_with(|| {
                self.counter_order.push(key);
                Counter { name: key.1, process, device: None, time_ns: Vec::new(), value: Vec::new() }
            });
            counter.time_ns.push(sample.time_ns);
            counter.value.push(sample.value);
        }
    }

    /// A counter's name and its series', or one of them where the other says nothing more.
    fn counter_name(&mut self, name: StringId, series: StringId) -> StringId {
        let strings = &mut self.builder.strings;
        if name == series {
            return name;
        }
        let whole = format!("{} {}", strings.get(name), strings.get(series));
        strings.intern(whole.trim())
    }

    /// Instants lie on the thread of their row when there is one: only known once all slices are.
    pub(super) fn place_instants(&mut self) {
        for (row, name, time_ns, is_on_thread) in std::mem::take(&mut self.instants) {
            let track = match self.tracks.known_thread(row) {
                Some(thread) => thread,
                None if is_on_thread => self.tracks.thread(&mut self.builder, row),
                None => self.tracks.other(&mut self.builder, row, None),
            };
            match self.builder.strings.get(name) {
                STEP_MARK => self.builder.add_step_mark(track, time_ns, None),
                CUT_MARK => self.builder.set_cut(self.builder.process_of(track)),
                _ => self.builder.add_instant(track, name, time_ns),
            }
        }
    }
}
