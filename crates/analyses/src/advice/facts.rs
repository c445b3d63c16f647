//! What rules judge by: the results of other analyses, each computed when a rule first asks for it.

use super::batch_waits::{BatchWaits, batch_waits};
use super::cases::Cases;
use super::kernel_work::{KernelWork, kernel_work};
use super::loops::{LEAST_STEPS, Loop, loops, median};
use super::pauses::{Pause, Pauses, pauses};
use super::step_calls::{StepCall, step_calls};
use super::step_operators::{StepOp, step_operators};
use super::{Advice, GainEstimate, Lacks, Place, first_step, late_gathers};
use crate::communication::Parts;
use crate::device_busy::DeviceBusy;
use crate::launch_statistics::{LaunchStatistics, launch_statistics};
use crate::memory_summary::{self, MemorySummary};
use crate::roofline::{self, RooflineRow};
use crate::temporal_breakdown::{self, TemporalBreakdown};
use crate::{AnalysisContext, GroupBy, Selection};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::cmp::Reverse;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span};
use stepscope_trace::{Device, DeviceEvent, DeviceEventClass, Iteration, SliceId, SliceKind, Step, Trace};

/// Devices that work for less are not judged.
const LEAST_WORK_NS: i64 = 1_000_000;
/// Less time is not worth a word, whatever share it is.
pub(super) const LEAST_NS: i64 = 100_000;

/// Why a device idles takes time to find; below this part of its window no rule asks.
const IDLE_PART_OF_WINDOW: i64 = 50;

/// Share of the window from which on a device waits too much for launches.
pub(super) const LAUNCH_WAIT_THRESHOLD: f64 = 0.10;
/// Share of device events from which on too many are shorter than their launch.
pub(super) const SHORT_EVENTS_THRESHOLD: f64 = 0.50;

/// A part of a trace, and what is known of it.
pub(super) struct Facts<'a> {
    /// By each analysis' own definition.
    pub(super) context: &'a AnalysisContext<'a>,
    /// What devices are judged by: their work for complete steps, where [`judged_steps`] says so.
    pub(super) of_devices: &'a AnalysisContext<'a>,
    pub(super) trace: &'a Trace,
    pub(super) selection: Selection,
    devices: Vec<TemporalBreakdown>,
    pauses: OnceCell<Vec<Pauses>>,
    launches: OnceCell<Vec<LaunchStatistics>>,
    kernels: OnceCell<Vec<KernelWork>>,
    rooflines: OnceCell<Vec<(u32, RooflineRow)>>,
    memory: OnceCell<Vec<MemorySummary>>,
    batch_waits: OnceCell<Vec<BatchWaits>>,
    ranks: OnceCell<Vec<u32>>,
    longest_communication: OnceCell<LongestEvents>,
    communication_kernels: OnceCell<FxHashMap<(u32, i64), Cases>>,
    loops: OnceCell<Vec<Loop>>,
    step_operators: OnceCell<Vec<Vec<StepOp>>>,
    step_calls: OnceCell<Vec<Vec<StepCall>>>,
    late_gathers: OnceCell<Vec<Advice>>,
}

/// What devices are judged by where every rank has enough complete steps: their work for these, without long first ones.
/// `None` where that is nearly all of their time. What is set up at first says nothing of a longer job.
pub(super) fn judged_steps(context: &AnalysisContext<'_>) -> Option<Selection> {
    let steps_of = |rank: u32| {
        let selection = context.selection.of_rank(rank);
        let steps: Vec<Span> = selection.complete_steps(context.trace).map(|step| step.span).collect();
        let most = steps.len().checked_sub(LEAST_STEPS)?;
        let usual_ns = median(steps.iter().map(|span| span.duration_ns()));
        let is_long = |span: &&Span| first_step::is_long(span.duration_ns(), usual_ns);
        Some(steps.iter().take(most).take_while(is_long).count()).map(|first| steps[first..].to_vec())
    };
    let (mut first_ns, mut is_less) = (i64::MAX, false);
    for device in temporal_breakdown::rows(context) {
        let steps = steps_of(device.rank)?;
        first_ns = steps.iter().map(|span| span.start_ns).fold(first_ns, i64::min);
        let steps_ns = IntervalSet::from_unsorted(steps).total_ns();
        is_less |= steps_ns < device.span_ns - device.span_ns / IDLE_PART_OF_WINDOW;
    }
    let window = Selection::window_of(Some(first_ns), None);
    is_less.then(|| Selection { complete_steps: true, window, ..context.selection.clone() })
}

/// The longest of some device events, by rank and device.
type LongestEvents = FxHashMap<(u32, i64), SliceId>;

impl<'a> Facts<'a> {
    /// Nothing computed yet but the time of devices, which are judged by a context of their own.
    pub(super) fn new(context: &'a AnalysisContext<'a>, of_devices: &'a AnalysisContext<'a>) -> Self {
        let is_judged = |device: &TemporalBreakdown| device.span_ns - device.idle_ns >= LEAST_WORK_NS;
        Self {
            context,
            of_devices,
            trace: context.trace,
            selection: context.selection.clone(),
            devices: temporal_breakdown::rows(of_devices).into_iter().filter(is_judged).collect(),
            pauses: OnceCell::new(),
            launches: OnceCell::new(),
            kernels: OnceCell::new(),
            rooflines: OnceCell::new(),
            memory: OnceCell::new(),
            batch_waits: OnceCell::new(),
            ranks: OnceCell::new(),
            longest_communication: OnceCell::new(),
            communication_kernels: OnceCell::new(),
            loops: OnceCell::new(),
            step_operators: OnceCell::new(),
            step_calls: OnceCell::new(),
            late_gathers: OnceCell::new(),
        }
    }

    /// Says that steps are to be compared with one another, which a server's passes are not.
    pub(super) fn steps_are_alike(&self) -> Result<(), Lacks> {
        let is_pass = |step: &Step| step.iteration != Iteration::default();
        match self.selection.steps(self.trace).any(is_pass) {
            true => Err(Lacks("steps are passes of a server, each of as much work as was asked for")),
            false => Ok(()),
        }
    }

    /// The devices that work long enough to be judged.
    pub(super) fn devices(&self) -> Result<&[TemporalBreakdown], Lacks> {
        match self.devices.as_slice() {
            [] if self.trace.device_events.is_empty() => Err(Lacks("no device events")),
            [] => Err(Lacks("no device works for a millisecond")),
            devices => Ok(devices),
        }
    }

    /// Those of the devices that idle for long enough to ask why, each with why it does.
    pub(super) fn pauses(&self) -> Result<impl Iterator<Item = (&TemporalBreakdown, &Pauses)>, Lacks> {
        let devices = self.devices()?;
        let is_asked = |device: &TemporalBreakdown| device.idle_ns > device.span_ns / IDLE_PART_OF_WINDOW;
        let is_any = devices.iter().any(is_asked);
        let rows = self.pauses.get_or_init(|| if is_any { pauses(self.of_devices, devices) } else { Vec::new() });
        Ok(devices.iter().zip(rows).filter(move |(device, _)| is_asked(device)))
    }

    /// The same devices, each with its kernels.
    pub(super) fn kernels(&self) -> Result<impl Iterator<Item = (&TemporalBreakdown, &KernelWork)>, Lacks> {
        let devices = self.devices()?;
        Ok(devices.iter().zip(self.kernels.get_or_init(|| kernel_work(self.of_devices, devices))))
    }

    /// All launches of a rank.
    pub(super) fn launches(&self, rank: u32) -> Option<&LaunchStatistics> {
        let rows = self.launches.get_or_init(|| launch_statistics(self.trace, self.of_devices.selection));
        rows.iter().find(|row| row.rank == rank && row.name.is_none())
    }

    /// The share of a rank's device events that are shorter than their launch, when that is beyond the threshold.
    pub(super) fn short_events_ratio(&self, rank: u32) -> Option<f64> {
        let launches = self.launches(rank)?;
        let ratio = launches.short_events as f64 / launches.device_events as f64;
        (ratio > SHORT_EVENTS_THRESHOLD).then_some(ratio)
    }

    /// A row about pauses, when they are a habit and more than `threshold_ratio` of the device's window: the device waits,
    /// and `how`.
    pub(super) fn pause_row(
        &self,
        device: &TemporalBreakdown,
        pause: &Pause,
        threshold_ratio: f64,
        how: impl FnOnce() -> String,
    ) -> Option<Advice> {
        self.any_pause_row(device, pause, threshold_ratio, how).filter(|row| pause.is_habit(row))
    }

    /// The same, also of a single one.
    pub(super) fn any_pause_row(
        &self,
        device: &TemporalBreakdown,
        pause: &Pause,
        threshold_ratio: f64,
        how: impl FnOnce() -> String,
    ) -> Option<Advice> {
        let row = share_of_device(device, pause.total_ns, threshold_ratio)?;
        let (gpu, window) = (gpu(device.device), format_ns(device.span_ns));
        let (idle, ratio) = (format_ns(pause.total_ns), format_ratio(row.measured_ratio?));
        Some(Advice {
            says: format!("{gpu} waits {idle} ({ratio}) of {window} {}.", how()),
            count: Some(pause.count),
            gain: Some((pause.total_ns, GainEstimate::Bound)),
            place: pause.place(self.trace),
            time: pause.spans.clone(),
            ..row
        })
    }

    /// The communication kernels of a device.
    pub(super) fn communication_kernels(&self, device: &TemporalBreakdown) -> Cases {
        let all = self.communication_kernels.get_or_init(|| {
            let mut all: FxHashMap<(u32, i64), Cases> = FxHashMap::default();
            let events = self.of_devices.selection.device_events(self.trace);
            for event in events.filter(|event| event.class == DeviceEventClass::Communication) {
                let of = &self.trace.devices[event.device.index()];
                all.entry((of.rank, of.ordinal)).or_default().add(self.trace.slices.dur_ns[event.slice.index()]);
            }
            all
        });
        all.get(&(device.rank, device.device)).copied().unwrap_or_default()
    }

    /// When a rank communicates with others: from when a collective begins to be carried out to its end.
    pub(super) fn communication(&self, rank: u32) -> IntervalSet {
        let of_rank = self.context.get::<Parts>().0.iter().filter(|part| part.rank == rank);
        IntervalSet::from_unsorted(of_rank.map(|part| Span::new(part.start_ns, part.end_ns)).collect::<Vec<Span>>())
    }

    /// When any device of a rank runs kernels.
    pub(super) fn computing(&self, rank: u32) -> IntervalSet {
        let devices = self.trace.devices.iter().zip(self.context.get::<Vec<DeviceBusy>>());
        let of_rank = devices.filter(|(device, _)| device.rank == rank);
        of_rank.fold(IntervalSet::default(), |sum, (_, busy)| sum.union(&busy.compute).union(&busy.comm))
    }

    /// The windows of a rank's devices together.
    pub(super) fn window_ns(&self, rank: u32) -> i64 {
        let devices = self.devices.iter().filter(|device| device.rank == rank);
        devices.fold(0, |sum: i64, device| sum.saturating_add(device.span_ns))
    }

    /// Device work beside what the devices could do, by rank, operator and shapes.
    pub(super) fn rooflines(&self) -> Result<&[(u32, RooflineRow)], Lacks> {
        self.devices()?;
        if !self.trace.has_shapes() {
            return Err(Lacks("no shapes of operators' inputs: `--shapes` or `record_shapes=True` records them"));
        }
        let rows = self.rooflines.get_or_init(|| roofline::rows_of_ranks(self.of_devices, GroupBy::Shapes));
        let is_modeled = rows.iter().any(|(_, row)| row.modeled_ns > 0);
        is_modeled.then_some(rows.as_slice()).ok_or(Lacks("no work whose roofline time is known"))
    }

    /// The memory of devices.
    pub(super) fn device_memory(&self) -> Result<impl Iterator<Item = &MemorySummary>, Lacks> {
        let rows = self.memory.get_or_init(|| memory_summary::rows(self.context));
        let of_devices = rows.iter().filter(|row| row.device.is_some());
        if of_devices.clone().next().is_none() {
            return Err(Lacks("no allocations on a device: `--memory` or `profile_memory=True` records them"));
        }
        Ok(of_devices)
    }

    /// What is known of a device itself.
    pub(super) fn device(&self, of: &TemporalBreakdown) -> Option<&'a Device> {
        self.trace.devices.iter().find(|device| device.rank == of.rank && device.ordinal == of.device)
    }

    /// How long each rank waits for its batches, and who makes them.
    pub(super) fn batch_waits(&self) -> Result<&[BatchWaits], Lacks> {
        if !self.trace.slices.kind.contains(&SliceKind::DataLoader) {
            return Err(Lacks("no waits for data are marked: `stepscope record` marks those of a `DataLoader`"));
        }
        Ok(self.batch_waits.get_or_init(|| batch_waits(self.context)))
    }

    /// The loops that have enough steps to be judged.
    pub(super) fn loops(&self) -> Result<&[Loop], Lacks> {
        match self.loops.get_or_init(|| loops(self.context, &self.selection)).as_slice() {
            [] => Err(Lacks("fewer than five complete steps: record more")),
            loops => Ok(loops),
        }
    }

    /// The same, each with the outermost operators of its steps.
    pub(super) fn step_operators(&self) -> Result<impl Iterator<Item = (&Loop, &[StepOp])>, Lacks> {
        let loops = self.loops()?;
        let of_loops = || loops.iter().map(|of| step_operators(self.context, of)).collect();
        let operators = self.step_operators.get_or_init(of_loops);
        if operators.iter().all(Vec::is_empty) {
            return Err(Lacks("no operators in steps"));
        }
        Ok(loops.iter().zip(operators.iter().map(Vec::as_slice)))
    }

    /// The same, of the loops that leave nothing to a device.
    pub(super) fn host_operators(&self) -> Result<Vec<(&Loop, &[StepOp])>, Lacks> {
        let of_hosts: Vec<_> = self.step_operators()?.filter(|(of, _)| of.device.is_empty()).collect();
        if of_hosts.is_empty() { Err(Lacks("no steps without a device")) } else { Ok(of_hosts) }
    }

    /// The loops, each with the collectives that its steps ask for.
    pub(super) fn step_calls(&self) -> Result<impl Iterator<Item = (&Loop, &[StepCall])>, Lacks> {
        let loops = self.loops()?;
        let of_loops = || loops.iter().map(|of| step_calls(self.context, of)).collect();
        let calls = self.step_calls.get_or_init(of_loops);
        if calls.iter().all(Vec::is_empty) {
            return Err(Lacks("no collectives in steps"));
        }
        Ok(loops.iter().zip(calls.iter().map(Vec::as_slice)))
    }

    /// What is said of gathers that come too late.
    pub(super) fn late_gathers(&self) -> &[Advice] {
        self.late_gathers.get_or_init(|| late_gathers::rows(self))
    }

    /// The ranks asked for.
    pub(super) fn ranks(&self) -> &[u32] {
        let asked = || self.trace.ranks().into_iter().filter(|rank| self.selection.has_rank(*rank)).collect();
        self.ranks.get_or_init(asked)
    }

    /// The steps asked for of a rank, together.
    pub(super) fn steps_of(&self, rank: u32) -> IntervalSet {
        if !self.selection.has_rank(rank) {
            return IntervalSet::default();
        }
        let of_rank = self.selection.of_rank(rank);
        let steps = of_rank.steps(self.trace);
        steps.map(|step| step.span).collect::<Vec<Span>>().into_iter().collect()
    }

    /// The longest device event of each device, of those asked for that are wanted; of several the first. All devices at
    /// once: a run may have thousands.
    fn longest_events(&self, is_wanted: impl Fn(&DeviceEvent) -> bool) -> LongestEvents {
        let trace = self.trace;
        let place = |slice: SliceId| (trace.slices.dur_ns[slice.index()], Reverse(slice));
        let mut longest = LongestEvents::default();
        for event in self.selection.device_events(trace).filter(is_wanted) {
            let device = &trace.devices[event.device.index()];
            let known = longest.entry((device.rank, device.ordinal)).or_insert(event.slice);
            if place(event.slice) > place(*known) {
                *known = event.slice;
            }
        }
        longest
    }

    /// Where the longest device event of a device is, of those asked for that are wanted.
    pub(super) fn longest_event(
        &self,
        device: &TemporalBreakdown,
        is_wanted: impl Fn(&DeviceEvent) -> bool,
    ) -> Option<Place> {
        self.place_on(device, &self.longest_events(is_wanted))
    }

    /// The longest communication kernel of a device.
    pub(super) fn longest_communication(&self, device: &TemporalBreakdown) -> Option<Place> {
        let communicates = |event: &DeviceEvent| event.class == DeviceEventClass::Communication;
        self.place_on(device, self.longest_communication.get_or_init(|| self.longest_events(communicates)))
    }

    fn place_on(&self, device: &TemporalBreakdown, longest: &LongestEvents) -> Option<Place> {
        longest.get(&(device.rank, device.device)).map(|slice| Place::of(self.trace, *slice))
    }

    /// The longest slice of a kind on a rank, of those asked for; of several the first.
    pub(super) fn longest(&self, rank: u32, kind: SliceKind) -> Option<SliceId> {
        let of_rank = self.selection.of_rank(rank);
        let ids = of_rank.slices(self.trace).filter(|id| self.trace.slices.kind(*id) == kind);
        ids.max_by_key(|id| (self.trace.slices.dur_ns[id.index()], Reverse(*id)))
    }
}

/// A device in words.
pub(super) fn gpu(device: i64) -> String {
    format!("GPU {device}")
}

/// A row about `ns` of a window, when that is more than `threshold_ratio` of it, and enough to be worth a word.
pub(super) fn share(ns: i64, window_ns: i64, threshold_ratio: f64) -> Option<Advice> {
    let ratio = (window_ns > 0).then(|| ns as f64 / window_ns as f64)?;
    (ns >= LEAST_NS && ratio > threshold_ratio).then(|| Advice {
        measured_ratio: Some(ratio),
        threshold_ratio: Some(threshold_ratio),
        measured_ns: Some(ns),
        window_ns: Some(window_ns),
        ..Advice::default()
    })
}

/// The same about a device's window.
pub(super) fn share_of_device(device: &TemporalBreakdown, ns: i64, threshold_ratio: f64) -> Option<Advice> {
    let row = share(ns, device.span_ns, threshold_ratio)?;
    Some(Advice { rank: Some(device.rank), device: Some(device.device), ..row })
}

/// Inputs of operators, for tests.
#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use stepscope_trace::{OpInfo, OpInputs, OpInputsId};

    /// A trace in which operators of these names have inputs of these shapes.
    pub(in crate::advice) fn with_inputs(mut trace: Trace, of: &[(&str, &str)]) -> Trace {
        trace.ops.inputs = vec![OpInputs::UNKNOWN];
        let ops: Vec<SliceId> = trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::Op).collect();
        for op in ops {
            let Some((_, dims)) = of.iter().find(|(name, _)| *name == trace.slice_name(op)) else { continue };
            let inputs = OpInputs { dims: trace.strings.intern(dims), ..OpInputs::UNKNOWN };
            let known = trace.ops.inputs.iter().position(|known| *known == inputs);
            let row = known.unwrap_or_else(|| {
                trace.ops.inputs.push(inputs);
                trace.ops.inputs.len() - 1
            });
            trace.ops.slice.push(op);
            trace.ops.info.push(OpInfo { inputs: OpInputsId(row as u32), ..OpInfo::default() });
        }
        trace
    }
}
