//! Activity records in a list: when each was, and once for many what they are about.

use super::DeviceActivity;
use std::collections::HashMap;
use std::ops::Range;

/// One activity record. 24 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Row {
    /// The least of all times for what has none.
    start_ns: i64,
    end_ns: i64,
    correlation: u32,
    /// Index into what the list is about.
    about: u32,
}

/// A list of activity records. A job runs the same kernels over and over: what is the same in all but its times and its
/// correlation is held once.
#[derive(Clone, Default, Debug)]
pub struct ActivityList {
    about: Vec<DeviceActivity>,
    rows: Vec<Row>,
    /// Those that were added one by one.
    known: HashMap<DeviceActivity, u32>,
}

impl ActivityList {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The activity record at `index`.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline]
    pub fn at(&self, index: usize) -> DeviceActivity {
        self.unpacked(&self.rows[index])
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = DeviceActivity> + ExactSizeIterator + Clone + '_ {
        self.rows.iter().map(|row| self.unpacked(row))
    }

    /// What those about the same thing have in common, without times and correlations.
    pub fn about(&self) -> &[DeviceActivity] {
        &self.about
    }

    /// Which of [`about`](Self::about) the activity record at `index` is about.
    #[inline]
    pub fn about_of(&self, index: usize) -> usize {
        self.rows[index].about as usize
    }

    /// Start and end of the activity record at `index`, ns; `None` for what has no time of its own.
    #[inline]
    pub fn span_of(&self, index: usize) -> Option<(i64, i64)> {
        let Row { start_ns, end_ns, .. } = self.rows[index];
        (start_ns != i64::MIN).then_some((start_ns, end_ns))
    }

    /// What joins the call at `index` with what it enqueued; 0 without one.
    #[inline]
    pub fn correlation_of(&self, index: usize) -> u32 {
        self.rows[index].correlation
    }

    /// Adds an activity record.
    pub fn push(&mut self, activity: DeviceActivity) {
        let mut about = activity;
        let (start_ns, end_ns) = match about.record.span_mut() {
            Some((start_ns, end_ns)) => (std::mem::take(start_ns).max(i64::MIN + 1), std::mem::take(end_ns)),
            None => (i64::MIN, i64::MIN),
        };
        let correlation = about.record.correlation_mut().map_or(0, std::mem::take);
        let about = self.intern(about);
        self.rows.push(Row { start_ns, end_ns, correlation, about });
    }

    /// Which of [`about`](Self::about) this is, without times and correlation.
    pub(crate) fn intern(&mut self, about: DeviceActivity) -> u32 {
        *self.known.entry(about).or_insert_with(|| {
            self.about.push(about);
            self.about.len() as u32 - 1
        })
    }

    /// Adds an activity record that is about the same as an earlier one.
    #[inline]
    pub(crate) fn push_about(&mut self, about: u32, (start_ns, end_ns): (i64, i64), correlation: u32) {
        self.rows.push(Row { start_ns, end_ns, correlation, about });
    }

    /// Keeps those for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&DeviceActivity) -> bool) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.retain(|row| keep(&self.unpacked(row)));
        self.rows = rows;
    }

    #[inline]
    fn unpacked(&self, row: &Row) -> DeviceActivity {
        let mut activity = self.about[row.about as usize];
        if let Some((start_ns, end_ns)) = activity.record.span_mut() {
            (*start_ns, *end_ns) = (row.start_ns, row.end_ns);
        }
        activity.record.correlation_mut().into_iter().for_each(|correlation| *correlation = row.correlation);
        activity
    }

    /// What those about the same thing have in common, to be changed.
    pub(crate) fn about_mut(&mut self) -> impl Iterator<Item = &mut DeviceActivity> {
        // What is pushed later is not compared with what it was.
        self.known.clear();
        self.about.iter_mut()
    }

    /// Gives each that has times the ones that `times` makes of them.
    pub(crate) fn set_times(&mut self, mut times: impl FnMut(&DeviceActivity, (i64, i64)) -> (i64, i64)) {
        for row in &mut self.rows {
            if row.start_ns != i64::MIN {
                (row.start_ns, row.end_ns) = times(&self.about[row.about as usize], (row.start_ns, row.end_ns));
            }
        }
    }

    /// Keeps these ranges, one after the other.
    pub(crate) fn select(&mut self, ranges: impl Iterator<Item = Range<usize>>) {
        self.rows = ranges.flat_map(|range| self.rows[range].iter().copied()).collect();
    }

    /// Orders them by start and end; what has no times comes first, and what has the same stays in its order.
    pub fn sort(&mut self) {
        self.rows.sort_by_key(|row| (row.start_ns, row.end_ns));
    }
}

impl PartialEq for ActivityList {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ActivityList {}

impl Extend<DeviceActivity> for ActivityList {
    fn extend<I: IntoIterator<Item = DeviceActivity>>(&mut self, activities: I) {
        activities.into_iter().for_each(|activity| self.push(activity));
    }
}

impl FromIterator<DeviceActivity> for ActivityList {
    fn from_iter<I: IntoIterator<Item = DeviceActivity>>(activities: I) -> Self {
        let mut list = Self::default();
        list.extend(activities);
        list
    }
}

impl From<Vec<DeviceActivity>> for ActivityList {
    fn from(activities: Vec<DeviceActivity>) -> Self {
        activities.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        ActivityRecord, Api, Call, DeviceWork, Dropped, EventRecorded, Kernel, Overhead, Synchronization, WorkKind,
    };
    use super::*;

    fn kernel(name: u32, stream: u32, correlation: u32) -> ActivityRecord {
        let kind = WorkKind::Kernel(Kernel { name: Some(name), grid: Some([1; 3]), ..Kernel::default() });
        let (start_ns, stream) = (10 * i64::from(correlation), Some(stream));
        ActivityRecord::Work(DeviceWork { kind, start_ns, end_ns: 15, stream, correlation, ..DeviceWork::default() })
    }

    fn list(records: &[ActivityRecord]) -> ActivityList {
        records.iter().map(|record| DeviceActivity { device_type: 1, record: *record }).collect()
    }

    #[test]
    fn nothing_is_lost_of_what_is_held_once() {
        let call = |thread, correlation| {
            let (api, name, start_ns, end_ns) = (Api::Runtime, Some(4), -3, 4);
            ActivityRecord::Call(Call { api, name, start_ns, end_ns, thread, correlation, status: correlation })
        };
        let records = [
            kernel(1, 7, 1),
            kernel(1, 7, 2),
            kernel(2, 7, 3),
            kernel(1, 8, 4),
            call(5, 0),
            call(5, 1),
            call(6, 1),
            ActivityRecord::Synchronization(Synchronization { event: 3, correlation: 8, ..Default::default() }),
            ActivityRecord::Overhead(Overhead { name: Some(3), start_ns: 1, end_ns: 2, thread: 7 }),
            ActivityRecord::EventRecorded(EventRecorded { correlation: 9, ..EventRecorded::default() }),
            ActivityRecord::EventRecorded(EventRecorded { correlation: 10, ..EventRecorded::default() }),
            ActivityRecord::Dropped(Dropped { count: 3 }),
            ActivityRecord::Dropped(Dropped { count: 4 }),
        ];
        let mut list = list(&records);
        assert!(list.iter().map(|activity| activity.record).eq(records));
        assert_eq!(list.about().len(), records.len() - 2, "a kernel and an event are there twice");
        assert_eq!((list.span_of(1), list.span_of(11), list.correlation_of(10)), (Some((20, 15)), None, 10));
        list.sort();
        let starts: Vec<_> = list.iter().map(|activity| activity.record.span().map(|(start_ns, _)| start_ns)).collect();
        assert!(starts.is_sorted(), "{starts:?}");
        list.retain(|activity| matches!(activity.record, ActivityRecord::Call(_)));
        assert_eq!(list.len(), 3);
    }
}
