//! Rows that no reader knows: which of them are work of a device, and so missing in what is told of devices.

use super::super::categories::Category;
use super::super::tracks::Row;
use super::Rows;
use stepscope_base::StringId;
use stepscope_trace::FindingCode;

/// The rows without a known category of one track.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnknownWork {
    rows: u64,
    ns: i64,
    /// Those of them that say that they are a device's.
    device_rows: u64,
    device_ns: i64,
    first: StringId,
}

impl Rows {
    /// Counts a row of `category`, if that is not known.
    #[inline]
    pub(super) fn count_unknown_work(&mut self, category: Category, row: Row, name: StringId, dur_ns: i64) {
        let is_of_device = category == Category::UnknownDeviceWork;
        if !is_of_device && category != Category::Other {
            return;
        }
        let none = UnknownWork { rows: 0, ns: 0, device_rows: 0, device_ns: 0, first: name };
        let work = self.unknown_work.entry(row).or_insert(none);
        (work.rows, work.ns) = (work.rows + 1, work.ns.saturating_add(dur_ns));
        if is_of_device {
            (work.device_rows, work.device_ns) = (work.device_rows + 1, work.device_ns.saturating_add(dur_ns));
        }
    }

    /// Tells of work of devices that is not known, once all names of processes are; true when there is any.
    pub(super) fn tell_unknown_work(&mut self) -> bool {
        let mut found: Vec<(u64, i64, String)> = Vec::new();
        for (row, work) in &self.unknown_work {
            let is_device = self.tracks.is_named_as_device(*row);
            let (rows, ns) = if is_device { (work.rows, work.ns) } else { (work.device_rows, work.device_ns) };
            if rows > 0 {
                let name = self.builder.strings.get(work.first).chars().take(80).collect();
                found.push((rows, ns, name));
            }
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        for (rows, ns, name) in &found {
            let example = || format!("{rows} rows of {ns} ns in all, such as {name:?}");
            self.builder.findings.add(FindingCode::UnknownDeviceWork, example);
            self.builder.findings.add_count(FindingCode::UnknownDeviceWork, rows - 1);
        }
        !found.is_empty()
    }
}
