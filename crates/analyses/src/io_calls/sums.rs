//! Sums of calls on files.

use super::{IoCall, per_s};
use stepscope_base::percentiles::nearest_rank_of_unsorted;
use stepscope_trace::IoAction;

/// What some calls amount to.
#[derive(Clone, Default)]
pub(crate) struct IoSums {
    /// Number of calls.
    pub(crate) count: i64,
    /// Those that failed.
    pub(crate) errors: i64,
    /// Those that are major page faults, which read; and those that are page faults of any sort.
    pub(crate) page_faults: i64,
    faults: i64,
    /// Those that open.
    pub(crate) opens: i64,
    /// Time in all of them.
    pub(crate) total_ns: i64,
    /// What reads.
    pub(crate) reads: Moved,
    /// What writes.
    pub(crate) writes: Moved,
    /// Requests of which is known whether they begin where the one before ended, and those that do.
    judged: i64,
    sequential: i64,
}

/// One direction.
#[derive(Clone, Default)]
pub(crate) struct Moved {
    /// Number of calls.
    pub(crate) count: i64,
    /// Those whose bytes are known.
    pub(crate) sized: i64,
    /// Time in all of them.
    pub(crate) ns: i64,
    bytes: i128,
    /// Time of those whose bytes are known.
    sized_ns: i128,
    /// What was asked for, where that is known.
    asked: Option<i64>,
}

impl IoSums {
    /// Those of `calls`.
    pub(crate) fn of<'a>(calls: impl IntoIterator<Item = &'a IoCall>) -> Self {
        let mut sums = Self::default();
        calls.into_iter().for_each(|call| sums.add(call));
        sums
    }

    /// Adds a call.
    pub(crate) fn add(&mut self, call: &IoCall) {
        let dur_ns = call.span.duration_ns();
        self.count += 1;
        self.faults += i64::from(call.is_page_fault());
        self.page_faults += i64::from(call.is_major_page_fault());
        self.errors += i64::from(call.event.has_failed());
        self.total_ns = self.total_ns.saturating_add(dur_ns);
        match call.event.action {
            IoAction::Read => self.reads.add(call, dur_ns),
            IoAction::Write => self.writes.add(call, dur_ns),
            IoAction::Open => self.opens += 1,
            IoAction::Metadata => {}
        }
        self.judged += i64::from(call.is_sequential.is_some());
        self.sequential += i64::from(call.is_sequential == Some(true));
    }

    /// Those of two groups of calls together.
    pub(crate) fn and(self, other: &Self) -> Self {
        Self {
            count: self.count + other.count,
            errors: self.errors + other.errors,
            page_faults: self.page_faults + other.page_faults,
            faults: self.faults + other.faults,
            opens: self.opens + other.opens,
            total_ns: self.total_ns.saturating_add(other.total_ns),
            reads: self.reads.and(&other.reads),
            writes: self.writes.and(&other.writes),
            judged: self.judged + other.judged,
            sequential: self.sequential + other.sequential,
        }
    }

    /// Bytes moved; `None` where something moved and nothing says how much.
    pub(crate) fn bytes(&self) -> Option<i64> {
        let is_known = self.reads.sized + self.writes.sized > 0 || self.reads.count + self.writes.count == 0;
        let bytes = |moved: &Moved| moved.bytes().unwrap_or(0);
        is_known.then(|| bytes(&self.reads).saturating_add(bytes(&self.writes)))
    }

    /// Those that neither open nor move bytes.
    pub(crate) fn others(&self) -> i64 {
        self.count - self.opens - self.reads.count - self.writes.count
    }

    /// Those that are calls: page faults are none.
    pub(crate) fn without_faults(&self) -> i64 {
        self.count - self.faults
    }

    /// Those that move no bytes. A page that is found in memory is none.
    pub(crate) fn metadata(&self) -> i64 {
        self.count - self.reads.count - self.writes.count - (self.faults - self.page_faults)
    }

    /// Time in calls that move no bytes.
    pub(crate) fn metadata_ns(&self) -> i64 {
        self.total_ns.saturating_sub(self.reads.ns).saturating_sub(self.writes.ns)
    }

    /// Share of the calls that move no bytes.
    pub(crate) fn metadata_ratio(&self) -> Option<f64> {
        ratio(self.metadata(), self.without_faults())
    }

    /// Share of the time in calls that move no bytes.
    pub(crate) fn metadata_ns_ratio(&self) -> Option<f64> {
        ratio(self.metadata_ns(), self.total_ns)
    }

    /// Share of the requests that begin where the one before ended, of those of which that is known.
    pub(crate) fn sequential_ratio(&self) -> Option<f64> {
        ratio(self.sequential, self.judged)
    }

    /// Requests that begin elsewhere than where the one before ended.
    pub(crate) fn jumps(&self) -> i64 {
        self.judged - self.sequential
    }
}

/// How much each of some reads and writes moved, of those that moved something.
#[derive(Default)]
pub(crate) struct RequestSizes(Vec<i64>);

impl RequestSizes {
    /// Adds a call, if it is such a read or write.
    pub(crate) fn add(&mut self, call: &IoCall) {
        let IoCall { event, .. } = call;
        self.0.extend(event.bytes.filter(|bytes| *bytes > 0 && event.action.moves_bytes()));
    }

    /// The smallest.
    pub(crate) fn min(&self) -> Option<i64> {
        self.0.iter().min().copied()
    }

    /// The median, which is one that occurred.
    pub(crate) fn median(&mut self) -> Option<i64> {
        nearest_rank_of_unsorted(&mut self.0, 50)
    }

    /// The largest.
    pub(crate) fn max(&self) -> Option<i64> {
        self.0.iter().max().copied()
    }
}

/// A share of a whole; `None` of nothing.
pub(crate) fn ratio(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Moved {
    fn and(self, other: &Self) -> Self {
        let asked = self.asked.into_iter().chain(other.asked).reduce(i64::saturating_add);
        Self {
            count: self.count + other.count,
            sized: self.sized + other.sized,
            ns: self.ns.saturating_add(other.ns),
            bytes: self.bytes + other.bytes,
            sized_ns: self.sized_ns + other.sized_ns,
            asked,
        }
    }

    fn add(&mut self, call: &IoCall, dur_ns: i64) {
        self.count += 1;
        self.ns = self.ns.saturating_add(dur_ns);
        if let Some(asked) = call.event.asked_bytes {
            self.asked = Some(self.asked.unwrap_or(0).saturating_add(asked));
        }
        let Some(bytes) = call.event.bytes else { return };
        self.sized += 1;
        self.bytes += i128::from(bytes);
        self.sized_ns += i128::from(dur_ns) * if call.is_half() { 2 } else { 1 };
    }

    /// `None` where something moved and nothing says how much.
    pub(crate) fn bytes(&self) -> Option<i64> {
        (self.count == 0 || self.sized > 0).then(|| i64::try_from(self.bytes).unwrap_or(i64::MAX))
    }

    /// What was asked for, where any call says that.
    pub(crate) fn asked_bytes(&self) -> Option<i64> {
        self.asked.or_else(|| (self.count == 0).then_some(0))
    }

    /// Bytes over the time of the calls whose bytes are known.
    pub(crate) fn bytes_per_s(&self) -> Option<i64> {
        per_s(self.bytes, self.sized_ns).filter(|_| self.sized > 0)
    }
}
