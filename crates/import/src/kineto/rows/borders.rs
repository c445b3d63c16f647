//! Events that are written as a begin and an end: one stack of begins a row.

use super::{Rows, Translation};
use crate::json::text;
use stepscope_trace::{FindingCode, SliceId};

impl Rows {
    /// Pairs begins with ends.
    pub(super) fn add_borders(&mut self, translation: &mut Translation<'_>) {
        for border in &translation.chunk.borders {
            let row = translation.rows[border.row as usize];
            if let Some(slice) = border.begun {
                let slice = SliceId::from_index(translation.first_slice + slice as usize);
                self.open.entry(row).or_default().push((slice, border.time_ns, border.at));
                continue;
            }
            let Some((slice, start_ns, _)) = self.open.get_mut(&row).and_then(Vec::pop) else {
                let name = text::decode(translation.chunk.texts.get(border.name)).text;
                let shown: String = name.chars().take(80).collect();
                let example = || format!("{shown:?} (phase \"E\") at byte {}", border.at);
                self.builder.findings.add(FindingCode::UnmatchedBegin, example);
                continue;
            };
            if border.time_ns < start_ns {
                self.builder.findings.add(FindingCode::NegativeDuration, || format!("end at byte {}", border.at));
            }
            self.builder.set_duration(slice, (border.time_ns - start_ns).max(0));
            self.last_ns = self.last_ns.max(border.time_ns);
        }
    }

    /// What has begun and not ended reaches to the last moment.
    pub(super) fn close_begins(&mut self) {
        let mut open: Vec<(SliceId, i64, u64)> = self.open.values().flatten().copied().collect();
        open.sort_unstable();
        for (slice, start_ns, at_byte) in open {
            self.builder
                .findings
                .add(FindingCode::UnmatchedBegin, || format!("begin without an end at byte {at_byte}"));
            self.builder.set_duration(slice, (self.last_ns - start_ns).max(0));
            self.builder.set_unfinished(slice);
        }
    }
}
