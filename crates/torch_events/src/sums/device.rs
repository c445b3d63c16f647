//! What devices' profilers reported, as far as averages need it: who launched what, in columns and not in lists of
//! events.

use super::groups::{Done, Group, Source, Sums};
use super::tree::Row;
use crate::NO_ROW;
use crate::device::Names;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::ops::Range;
use stepscope_capture::device::{ActivityList, ActivityRecord, DeviceWork, Synchronization, SynchronizationKind};
use stepscope_capture::{Capture, DeviceActivity};
use stepscope_run::{ExcludeDevice, RecordFilter};

/// What activity records about one thing have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Work on a stream.
    Work { device: u32, stream: Option<u32> },
    /// A wait, seen from the device.
    Synchronization,
    /// A call on a thread of the host.
    Call { thread: u32 },
    /// What else lies on such a thread.
    Overhead { thread: u32 },
    /// What is excluded, and of no use to what is not.
    Other,
}

/// The activity records of a capture that are selected.
#[derive(Debug)]
pub(super) struct JoinedActivities<'a> {
    activities: &'a ActivityList,
    spans: &'a [Range<i64>],
    /// By what it is about.
    kinds: Vec<Kind>,
    /// By what it is about: the name that it is listed by, [`NO_ROW`] for what is not listed.
    names: Vec<u32>,
    /// Names beyond those of the capture and that of all steps.
    pub(super) texts: Vec<String>,
    /// Rows of calls that may have launched something, by thread and time.
    calls: Vec<u32>,
    /// By call: the time on devices of what it launched; and the label around it, [`NO_ROW`] without one.
    device_ns: Vec<i64>,
    labels: Vec<u32>,
    /// The names of those labels.
    label_names: Vec<u32>,
    /// The call with each number, as the last one said it.
    by_number: ByNumber,
    /// Rows that lie on threads, by thread and place.
    nested: Vec<u32>,
}

/// A label on a stream.
struct Annotation {
    start_ns: i64,
    end_ns: i64,
    name: u32,
    /// Start, end and row of the first of its activity records.
    first: (i64, i64, u32),
}

/// What one thread called.
#[derive(Debug)]
pub(super) struct LaunchedOn<'a> {
    activities: &'a ActivityList,
    names: &'a [u32],
    calls: &'a [u32],
    device_ns: &'a [i64],
    labels: &'a mut [u32],
    label_names: &'a mut Vec<u32>,
    nested: &'a [u32],
}

impl<'a> JoinedActivities<'a> {
    /// `listed` has for each name of the capture the first that is listed alike.
    pub(super) fn of(
        capture: &'a Capture,
        filter: &RecordFilter,
        spans: &'a [Range<i64>],
        listed: &[Option<u32>],
    ) -> Self {
        let activities = &capture.device;
        let mut of = Self {
            activities,
            spans,
            kinds: activities.about().iter().map(|about| kind(about, filter.exclude.device)).collect(),
            names: Vec::new(),
            texts: Vec::new(),
            calls: Vec::new(),
            device_ns: Vec::new(),
            labels: Vec::new(),
            label_names: Vec::new(),
            by_number: ByNumber::default(),
            nested: Vec::new(),
        };
        of.name(&capture.names, filter.exclude.device, listed);
        of.join();
        of
    }

    /// Activity records that are selected and have times: their indexes, times and kinds.
    fn rows(&self) -> impl Iterator<Item = (u32, (i64, i64), Kind)> {
        (0..self.activities.len()).filter_map(|at| {
            let kind = self.kinds[self.activities.about_of(at)];
            let span = self.activities.span_of(at).filter(|_| kind != Kind::Other)?;
            let is_selected = self.spans.iter().any(|times| times.contains(&span.0));
            is_selected.then_some((at as u32, span, kind))
        })
    }

    /// Index into what activity records are about.
    fn about(&self, at: u32) -> usize {
        self.activities.about_of(at as usize)
    }

    fn name(&mut self, names: &[String], exclude: ExcludeDevice, listed: &[Option<u32>]) {
        // The latest work of each kind tells the device of its context.
        let mut latest: Vec<Option<(i64, i64, u32)>> = vec![None; self.kinds.len()];
        for (at, (start_ns, end_ns), kind) in self.rows() {
            if let Kind::Work { .. } = kind {
                let latest = &mut latest[self.about(at)];
                *latest = (*latest).max(Some((start_ns, end_ns, at)));
            }
        }
        let mut works: Vec<_> =
            latest.iter().zip(self.activities.about()).filter(|(latest, _)| latest.is_some()).collect();
        works.sort_by_key(|(latest, _)| **latest);
        let works = works.iter().filter_map(|(_, about)| match about.record {
            ActivityRecord::Work(work) => Some(work),
            _ => None,
        });
        let contexts: FxHashMap<u32, u32> =
            works.clone().filter_map(|work| Some((work.context?, work.device))).collect();
        let streams: FxHashSet<(u32, Option<u32>)> = works.map(|work| (work.device, work.stream)).collect();
        let mut found = Names::of(names, listed);
        let mut name = |about: &DeviceActivity| {
            let is_shown = match &about.record {
                record if exclude.excludes(record) => false,
                ActivityRecord::Synchronization(Synchronization {
                    kind: SynchronizationKind::StreamWaitEvent,
                    context,
                    stream,
                    ..
                }) => {
                    let device = context.and_then(|context| contexts.get(&context).copied()).unwrap_or(0);
                    stream.is_some() && streams.contains(&(device, *stream))
                }
                _ => true,
            };
            is_shown.then(|| found.name(about)).flatten().unwrap_or(NO_ROW)
        };
        self.names = self.activities.about().iter().map(&mut name).collect();
        self.texts = found.texts();
    }

    /// Finds the calls, and what each of them launched.
    fn join(&mut self) {
        let activities = self.activities;
        let correlation = |at: u32| activities.correlation_of(at as usize);
        let span = |at: u32| activities.span_of(at as usize).unwrap_or_default();
        let calls = self.rows().filter(|(at, _, kind)| matches!(kind, Kind::Call { .. }) && correlation(*at) != 0);
        let mut calls: Vec<u32> = calls.map(|(at, ..)| at).collect();
        calls.sort_by_key(|at| (self.thread(*at), middle_ns(span(*at)), span(*at), *at));
        self.by_number = ByNumber::of(calls.iter().map(|at| correlation(*at)));
        let mut device_ns = vec![0; calls.len()];
        let mut nested = Vec::new();
        for (at, (start_ns, end_ns), kind) in self.rows().filter(|(at, ..)| self.names[self.about(*at)] != NO_ROW) {
            match kind {
                Kind::Call { .. } | Kind::Overhead { .. } => nested.push(at),
                Kind::Work { .. } | Kind::Synchronization => {
                    if let Some(call) = self.by_number.get(correlation(at)) {
                        device_ns[call as usize] += end_ns - start_ns;
                    }
                }
                Kind::Other => {}
            }
        }
        nested.sort_by_key(|at| {
            let (start_ns, end_ns) = span(*at);
            (self.thread(*at), start_ns, Reverse(end_ns), *at)
        });
        self.labels = vec![NO_ROW; calls.len()];
        (self.calls, self.device_ns, self.nested) = (calls, device_ns, nested);
    }

    fn thread(&self, row: u32) -> u32 {
        match self.kinds[self.about(row)] {
            Kind::Call { thread } | Kind::Overhead { thread } => thread,
            _ => NO_ROW,
        }
    }

    /// What a thread called; `None` when it called nothing.
    pub(super) fn on_thread(&mut self, thread: u32) -> Option<LaunchedOn<'_>> {
        let of_thread = |rows: &[u32]| {
            rows.partition_point(|at| self.thread(*at) < thread)..rows.partition_point(|at| self.thread(*at) <= thread)
        };
        let (calls, nested) = (of_thread(&self.calls), of_thread(&self.nested));
        if calls.is_empty() && nested.is_empty() {
            return None;
        }
        // Who looks again begins again.
        self.labels[calls.clone()].fill(NO_ROW);
        Some(LaunchedOn {
            activities: self.activities,
            names: &self.names,
            calls: &self.calls[calls.clone()],
            device_ns: &self.device_ns[calls.clone()],
            labels: &mut self.labels[calls],
            label_names: &mut self.label_names,
            nested: &self.nested[nested],
        })
    }

    /// The sums of what ran on devices, in no order; of labels once all threads are known.
    pub(super) fn groups(&self, excludes_annotations: bool) -> Vec<Group> {
        let mut groups: Vec<Option<Group>> = vec![None; self.kinds.len()];
        for (at, (start_ns, end_ns), kind) in self.rows() {
            let name = self.names[self.about(at)];
            if matches!(kind, Kind::Work { .. } | Kind::Synchronization) && name != NO_ROW {
                let place = (start_ns, Reverse(end_ns), Source::DeviceActivity, at);
                add(&mut groups[self.about(at)], name, false, place);
            }
        }
        let mut groups: Vec<Group> = groups.into_iter().flatten().collect();
        if !excludes_annotations {
            groups.extend(self.annotations());
        }
        groups
    }

    /// Labels on the device: on each stream from the first to the last of what was launched in them.
    fn annotations(&self) -> Vec<Group> {
        let mut numbers: FxHashMap<(u32, u32, Option<u32>), u32> = FxHashMap::default();
        let mut found: Vec<Annotation> = Vec::new();
        for (at, (start_ns, end_ns), kind) in self.rows() {
            let Kind::Work { device, stream } = kind else { continue };
            let Some(call) = self.by_number.get(self.activities.correlation_of(at as usize)) else { continue };
            let label = self.labels[call as usize];
            if label == NO_ROW {
                continue;
            }
            let first = (start_ns, end_ns, at);
            let number = *numbers.entry((label, device, stream)).or_insert_with(|| {
                let name = self.label_names[label as usize];
                found.push(Annotation { start_ns, end_ns, name, first });
                found.len() as u32 - 1
            });
            let of = &mut found[number as usize];
            (of.start_ns, of.end_ns) = (of.start_ns.min(start_ns), of.end_ns.max(end_ns));
            of.first = of.first.min(first);
        }
        // As they would be numbered in a list.
        found.sort_by_key(|of| of.first);
        let mut groups: FxHashMap<u32, Option<Group>> = FxHashMap::default();
        for (number, Annotation { start_ns, end_ns, name, .. }) in (0..).zip(found) {
            let place = (start_ns, Reverse(end_ns), Source::Annotation, number);
            add(groups.entry(name).or_default(), name, true, place);
        }
        groups.into_values().flatten().collect()
    }
}

impl LaunchedOn<'_> {
    /// The middle of a call, by its place among the thread's.
    pub(super) fn middle_ns(&self, call: usize) -> Option<i64> {
        self.calls.get(call).and_then(|at| self.activities.span_of(*at as usize)).map(middle_ns)
    }

    /// The time on devices of what it launched.
    pub(super) fn device_ns(&self, call: usize) -> i64 {
        self.device_ns[call]
    }

    /// A number for a label in which something is launched.
    pub(super) fn new_label(&mut self, name: u32) -> u32 {
        self.label_names.push(name);
        self.label_names.len() as u32 - 1
    }

    /// The label around a call.
    pub(super) fn set_label(&mut self, call: usize, label: u32) {
        self.labels[call] = label;
    }

    /// An activity record of the thread, by its place among them.
    pub(super) fn activity(&self, at: usize) -> Option<Row> {
        let number = *self.nested.get(at)?;
        let span = self.activities.span_of(number as usize)?;
        let name = self.names[self.activities.about_of(number as usize)];
        Some(Row { name, ..Row::new(Source::DeviceActivity, number, span) })
    }
}

/// The kind of what is selected. Excluded calls still tell who launched what.
fn kind(about: &DeviceActivity, exclude: ExcludeDevice) -> Kind {
    match &about.record {
        ActivityRecord::Call(call) => Kind::Call { thread: call.thread },
        record if exclude.excludes(record) => Kind::Other,
        ActivityRecord::Work(DeviceWork { device, stream, .. }) => Kind::Work { device: *device, stream: *stream },
        ActivityRecord::Synchronization(_) => Kind::Synchronization,
        ActivityRecord::Overhead(overhead) => Kind::Overhead { thread: overhead.thread },
        ActivityRecord::EventRecorded(_) | ActivityRecord::Range(_) | ActivityRecord::Dropped(_) => Kind::Other,
    }
}

/// The middle lies inside of the operator also when the clock of the device's profiler is off by less than half a call.
fn middle_ns((start_ns, end_ns): (i64, i64)) -> i64 {
    start_ns.saturating_add(end_ns.saturating_sub(start_ns) / 2)
}

/// Adds what ran on a device.
fn add(group: &mut Option<Group>, name: u32, is_label: bool, place: super::groups::Place) {
    let first = Done {
        name,
        scope: 0,
        is_async: false,
        inputs: NO_ROW,
        place,
        children_ns: 0,
        own_device_ns: 0,
        children_device_ns: 0,
    };
    let group = group.get_or_insert(Group { first, is_label, is_on_device: true, sums: Sums::default() });
    if place < group.first.place {
        group.first = first;
    }
    group.sums.count += 1;
    group.sums.device_ns += first.dur_ns();
    group.sums.self_device_ns += first.dur_ns();
}

/// Places of calls by the numbers that join them with what they enqueued.
#[derive(Debug)]
enum ByNumber {
    /// Numbers that follow one another, as device profilers give them: from the first one on.
    Dense(u32, Vec<u32>),
    /// Others.
    Sparse(FxHashMap<u32, u32>),
}

/// The most empty places, for each one in use, where numbers count as following one another.
const MOST_EMPTY: usize = 4;

impl Default for ByNumber {
    fn default() -> Self {
        Self::Dense(0, Vec::new())
    }
}

impl ByNumber {
    /// Of calls in their order: of those with the same number the last one holds.
    fn of(numbers: impl ExactSizeIterator<Item = u32> + Clone) -> Self {
        let Some((first, last)) = numbers.clone().min().zip(numbers.clone().max()) else { return Self::default() };
        let len = (last - first) as usize + 1;
        let places = (0_u32..).zip(numbers.clone());
        if len / MOST_EMPTY > numbers.len() {
            return Self::Sparse(places.map(|(place, number)| (number, place)).collect());
        }
        let mut dense = vec![NO_ROW; len];
        places.for_each(|(place, number)| dense[(number - first) as usize] = place);
        Self::Dense(first, dense)
    }

    fn get(&self, number: u32) -> Option<u32> {
        match self {
            Self::Dense(first, places) => {
                let place = places.get(number.checked_sub(*first)? as usize).copied();
                place.filter(|place| *place != NO_ROW)
            }
            Self::Sparse(places) => places.get(&number).copied(),
        }
    }
}
