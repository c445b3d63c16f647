//! Our own recorder's runs: captures and the parts made from them.
//!
//! Every process kept its own clock; those of one host share its monotonic clock and are placed by it, exactly. Hosts
//! are placed by their Unix time.

mod calls;
mod counters;
mod dataflow;
mod device;
mod devices;
mod host_clocks;
mod io;
mod memory;
mod ops;
mod processes;
mod range_numbers;
mod recording_findings;
mod rows;
mod run_ranks;
mod stack_samples;
mod torch_session;
mod unseen_io;
mod window;

use crate::ImportError;
use crate::collectives;
use crate::labels::{Label, label_kind};
use crate::name_tables::{is_communication_call, roles};
use calls::{ModuleKinds, ModuleNames, kind_of_call};
use ops::OpInfos;
use processes::{ProcessKey, add_other_tracks, add_tracks, process_key, process_of, used_threads};
pub use rows::{RecordingRows, SliceRow, SliceSink};
pub use run_ranks::RunRanks;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use stepscope_base::{Span, StringId};
use stepscope_capture::layout::scope;
use stepscope_capture::{Capture, Event, State, StepRange};
use stepscope_run::{Compaction, RecordFilter, Recovered, ResolvedFilter, RunError, kept_in};
use stepscope_trace::{FindingCode, SliceId, SliceKind, Trace, TraceBuilder, TrackId};
pub use torch_session::DEVICE_SESSION;

/// The scope of a label.
const USER_SCOPE: u8 = 7;
/// PyTorch's record of a collective.
const COLLECTIVE_RECORD: &str = "record_param_comms";
/// Metadata that describe one process and not the run.
const PROCESS_METADATA_KEYS: [&str; 40] = [
    "process_name",
    "rank",
    "local_rank",
    "local_world_size",
    "node_rank",
    "restart_count",
    "cpu_cores",
    "cpu_cores_allowed",
    "numa_nodes_of_cpus",
    "numa_nodes_of_memory",
    "thread_variables",
    "debug_variables",
    "library_files",
    "anomaly_mode",
    "parameters",
    "parameters_float64",
    "hook_refused",
    "framework_refused",
    "steps_are_marked",
    "steps_failed",
    "disturbed_by",
    "inputs_refused",
    "stacks_refused",
    "stack_samples_refused",
    "options_not_recorded",
    "kept_because",
    "windows_not_kept",
    "profiler_state_refused",
    "memory_not_recorded",
    "process_groups",
    "collectives_refused",
    "devices",
    "device_refused",
    "device_remarks",
    "page_faults_refused",
    "page_faults_lost",
    "io_bytes_of_system",
    "io_programs_not_seen",
    "io_refused",
    "io_sockets",
];

/// Opens what `filter` selects of what one process recorded at `raw`. Gives also when that was recorded, in times of
/// the trace.
pub(crate) fn open_filtered(raw: &Path, filter: &RecordFilter) -> Result<(Trace, Option<Span>), ImportError> {
    let (mut capture, warnings) = read_of(raw, filter).map_err(|source| ImportError::Run { source })?;
    let mut builder = TraceBuilder::new(raw.file_stem().unwrap_or_default().to_string_lossy());
    add_warnings(warnings, &mut builder);
    let resolved = filter.resolve(&capture.windows);
    filter.apply(&mut capture);
    filter.exclude_device_calls(&mut capture);
    builder.sources.push(raw.display().to_string());
    builder.clock_zero_unix_ns = Some(0);
    add_all(&[&capture], &|capture| capture.unix_offset_ns, true, &mut builder);
    let unix_offset_ns = capture.unix_offset_ns;
    // Putting a trace together takes as much memory again.
    drop(capture);
    let trace = builder.finish();
    let window = window_of(&resolved, unix_offset_ns, &trace);
    Ok((trace, window))
}

/// The time that is selected, in times of `trace`.
fn window_of(resolved: &ResolvedFilter, unix_offset_ns: i64, trace: &Trace) -> Option<Span> {
    let times = resolved.times()?;
    let place = |time_ns: i64| shifted_ns(time_ns, unix_offset_ns).saturating_sub(trace.start_unix_ns.unwrap_or(0));
    Some(Span::new(place(times.start), place(times.end)))
}

/// Closes a run: every capture of a process that has ended becomes a part, with what sessions of PyTorch's own profiler
/// told of its devices.
///
/// # Errors
/// When the folder is no run, is of a newer version, or cannot be written.
pub fn recover(path: &Path) -> Result<Recovered, RunError> {
    compact(path)?;
    kept_in(path).iter().try_for_each(|folder| compact(folder))?;
    stepscope_run::recover(path)
}

/// As [`recover`], of the processes of a run that have ended while others record.
///
/// # Errors
/// As [`recover`].
pub fn close_ended(path: &Path) -> Result<(), RunError> {
    carry_out(Compaction::of_ended(path)?, path)
}

fn compact(path: &Path) -> Result<(), RunError> {
    carry_out(Compaction::begin(path)?, path)
}

/// What could not be read is said by each who opens the run.
fn carry_out(mut compaction: Compaction, path: &Path) -> Result<(), RunError> {
    while let Some(mut ended) = compaction.next_ended()? {
        torch_session::merge_torch_sessions(path, &mut ended.capture, None);
        ended.compact()?;
    }
    compaction.finish();
    Ok(())
}

/// What a process records, or has recorded, into the capture at `raw`, with what sessions of PyTorch's own profiler
/// told of its devices while what `filter` selects was recorded. Nothing is removed yet.
///
/// # Errors
/// When neither the capture nor the part that it has become can be read.
pub fn read_capture(raw: &Path, filter: &RecordFilter) -> Result<Capture, RunError> {
    read_of(raw, filter).map(|(capture, _)| capture)
}

/// As [`read_capture`]; gives also what could not be read of the sessions, in words.
fn read_of(raw: &Path, filter: &RecordFilter) -> Result<(Capture, Vec<String>), RunError> {
    let mut capture = stepscope_run::read_capture(raw, filter)?;
    let times = filter.resolve(&capture.windows).times().unwrap_or_default();
    let run = run_of(raw).unwrap_or_default();
    let warnings = torch_session::merge_torch_sessions(&run, &mut capture, Some(times));
    Ok((capture, warnings))
}

/// The run of a raw capture, which may be named by an open file: its own name is gone when it has become a part.
fn run_of(raw: &Path) -> Option<PathBuf> {
    let named = std::fs::read_link(raw).ok().filter(|named| named.is_absolute()).unwrap_or_else(|| raw.into());
    named.parent().and_then(Path::parent).map(PathBuf::from)
}

fn add_warnings(warnings: Vec<String>, builder: &mut TraceBuilder) {
    for warning in warnings {
        builder.findings.add(FindingCode::DeviceNotRecorded, || warning);
    }
}

/// `offset_ns` gives the Unix time minus monotonic clock of a capture's host. `is_listed`: modules are called as a profile
/// lists them, too.
fn add_all(captures: &[&Capture], offset_ns: &dyn Fn(&Capture) -> i64, is_listed: bool, builder: &mut TraceBuilder) {
    builder.facts = run_metadata(captures);
    host_clocks::report(captures, offset_ns, &mut builder.findings);
    let pids: Vec<_> = captures.iter().map(|capture| process_key(capture, capture.process.pid)).collect();
    let (mut devices, mut known) = (devices::Devices::default(), io::KnownProcesses::default());
    // What is of files alone follows what it is added to.
    let (of_files, others): (Vec<&Capture>, Vec<&Capture>) =
        captures.iter().partition(|capture| io::is_of_files(capture));
    for capture in others.into_iter().chain(of_files) {
        let offset_ns = offset_ns(capture);
        AlignedCapture { capture, offset_ns, is_listed }.add_to(builder, &pids, &mut known, &mut devices);
    }
    builder.roles = roles(&builder.strings);
}

/// False for processes that only started others: they imported PyTorch, ran no op, and left in good order.
fn has_something_to_say(capture: &Capture) -> bool {
    let is_collection = |event: &Event| event.scope == scope::GARBAGE_COLLECTION;
    let is_empty = capture.events.iter().all(|event| is_collection(&event))
        && capture.steps.is_empty()
        && capture.memory.is_empty()
        && capture.io.is_empty()
        && capture.device.is_empty();
    let is_in_order = capture.state == State::Closed && capture.dropped == 0 && capture.damaged.is_empty();
    !is_empty || !is_in_order || metadata_value(capture, "hook_refused").is_some()
}

/// The metadata of the process that recorded most: the one that everything else belongs to.
fn run_metadata(captures: &[&Capture]) -> Vec<(String, String)> {
    let most = captures.iter().rev().max_by_key(|capture| capture.events.len());
    let metadata = most.map(|capture| capture.metadata.as_slice()).unwrap_or_default();
    let is_of_run = |(key, _): &&(String, String)| {
        !PROCESS_METADATA_KEYS.contains(&key.as_str()) && !key.starts_with(DEVICE_SESSION)
    };
    // A command's words are kept apart by zeros.
    let mut of_run: Vec<(String, String)> =
        metadata.iter().filter(is_of_run).map(|(key, value)| (key.clone(), value.replace('\0', " "))).collect();
    of_run.extend(most.map(|capture| devices::versions(capture)).unwrap_or_default());
    // What the program's profiler object wrote itself stays.
    if !of_run.iter().any(|(key, _)| key.starts_with("distributedInfo.")) {
        let groups = most.and_then(|capture| metadata_value(capture, "process_groups"));
        of_run.extend(groups.map(crate::process_groups::distributed_info).unwrap_or_default());
    }
    of_run
}

fn metadata_value<'a>(capture: &'a Capture, key: &str) -> Option<&'a str> {
    capture.metadata.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str())
}

/// A capture, and what turns its times into Unix time.
pub(crate) struct AlignedCapture<'a> {
    capture: &'a Capture,
    offset_ns: i64,
    is_listed: bool,
}

impl AlignedCapture<'_> {
    fn add_to(
        &self,
        builder: &mut TraceBuilder,
        process_keys: &[ProcessKey],
        known: &mut io::KnownProcesses,
        devices: &mut devices::Devices,
    ) {
        let capture = self.capture;
        if let Some((process, tracks)) = known.of(capture) {
            let tracks = add_other_tracks(capture, process, tracks, builder);
            return self.add_io(process, &tracks, builder);
        }
        let process = process_of(capture, process_keys);
        let rank = process.rank;
        let process = builder.add_process(process);
        if capture.is_cut() && !io::is_of_files(capture) {
            builder.set_cut(process);
        }
        recording_findings::report(capture, builder);
        self.add_windows(process, builder);
        let tracks = add_tracks(capture, process, builder);
        known.learn(capture, process, &tracks);
        self.add_io(process, &tracks, builder);
        let names = intern_names(capture, builder);
        let op_infos = OpInfos::of(capture, builder);
        let dataflow = dataflow::Dataflow::of(capture, builder);
        let mut modules = if self.is_listed { ModuleNames::listed(capture) } else { ModuleNames::new(&capture.names) };
        let mut kinds = ModuleKinds::default();
        let mut numbers = range_numbers::of(capture).into_iter().peekable();
        for (at, event) in capture.events.iter().enumerate() {
            match kind_of_call(event.scope) {
                Some(SliceKind::Module) => {
                    let name = modules.name(&event, &mut builder.strings);
                    let slice = self.add_call(&event, &tracks, SliceKind::Module, name, builder);
                    kinds.add(capture, event.name, slice, builder);
                }
                Some(kind) => {
                    self.add_call(&event, &tracks, kind, names[event.name as usize].0, builder);
                }
                None => {
                    let slice = self.add_event(&event, &tracks, &names, &op_infos, builder);
                    dataflow.add(&event, slice, builder);
                    let number = numbers.next_if(|(of, _)| *of == at);
                    number.into_iter().for_each(|(_, number)| builder.add_range_number(slice, number));
                }
            }
        }
        devices.learn(capture, rank, builder);
        counters::add_counters(self, (process, rank), devices, builder);
        for step in &capture.steps {
            let name = builder.strings.intern(&format!("ProfilerStep#{}", step.number));
            let (start_ns, dur_ns) = self.align(step.start_ns, step.end_ns);
            let slice = builder.add_slice(tracks[&step.thread], SliceKind::Step, name, start_ns, dur_ns);
            builder.add_step_label(slice, step.number);
            if step.is_unfinished {
                builder.set_unfinished(slice);
            }
        }
        for mark in &capture.optimizer_steps {
            builder.add_step_mark(tracks[&mark.thread], self.align(mark.time_ns, mark.time_ns).0, mark.number);
        }
        self.add_device_activities((process, rank), &tracks, devices, builder);
        self.add_memory(rank, &tracks, devices, builder);
        self.add_stack_samples(&tracks, builder);
    }

    /// Start in Unix time, and duration.
    fn align(&self, start_ns: i64, end_ns: i64) -> (i64, i64) {
        let start_ns = shifted_ns(start_ns, self.offset_ns);
        (start_ns, shifted_ns(end_ns, self.offset_ns).max(start_ns) - start_ns)
    }

    fn add_call(
        &self,
        event: &Event,
        tracks: &BTreeMap<u32, TrackId>,
        kind: SliceKind,
        name: StringId,
        builder: &mut TraceBuilder,
    ) -> SliceId {
        let (start_ns, dur_ns) = self.align(event.start_ns, event.end_ns);
        let slice = builder.add_slice(tracks[&event.thread], kind, name, start_ns, dur_ns);
        if event.is_unfinished {
            builder.set_unfinished(slice);
        }
        slice
    }

    fn add_event(
        &self,
        event: &Event,
        tracks: &BTreeMap<u32, TrackId>,
        names: &[(StringId, SliceKind)],
        op_infos: &OpInfos,
        builder: &mut TraceBuilder,
    ) -> SliceId {
        let (name, label) = names[event.name as usize];
        let kind = kind_of_event(event, label, &self.capture.steps);
        let (start_ns, dur_ns) = self.align(event.start_ns, event.end_ns);
        let slice = builder.add_slice(tracks[&event.thread], kind, name, start_ns, dur_ns);
        if event.is_unfinished {
            builder.set_unfinished(slice);
        }
        if kind == SliceKind::Op || event.inputs.is_some() {
            builder.add_op(slice, op_infos.info(event));
        }
        if is_communication_call(builder.strings.get(name)) {
            builder.add_communication_call(slice);
        }
        match event.collective {
            Some(recorded) => collectives::add(recorded, self.capture, slice, builder),
            None if kind == SliceKind::Op && builder.strings.get(name) == COLLECTIVE_RECORD => {
                builder.findings.add(FindingCode::CollectiveWithoutMetadata, || COLLECTIVE_RECORD.to_string());
            }
            None => {}
        }
        if matches!(kind, SliceKind::Step | SliceKind::Annotation) {
            match (kind, label_kind(builder.strings.get(name))) {
                (SliceKind::Step, Label::Step(number)) => builder.add_step_label(slice, number),
                (_, Label::Iteration(iteration)) => builder.add_iteration(slice, iteration),
                _ => {}
            }
        }
        slice
    }
}

/// What an event is that is no call, by the kind of label that its name would be.
fn kind_of_event(event: &Event, label: SliceKind, steps: &[StepRange]) -> SliceKind {
    // Beside a step that our own profiler object marked, another profiler's label of the same step is a label.
    let is_marked = || steps.iter().any(|step| step.start_ns < event.end_ns && event.start_ns < step.end_ns);
    match label {
        _ if event.scope != USER_SCOPE => SliceKind::Op,
        SliceKind::Step if is_marked() => SliceKind::Annotation,
        label => label,
    }
}

/// A capture's names as the trace's, with the kind of label that each would be. Where a framework says where steps end, the
/// labels of profilers do not.
fn intern_names(capture: &Capture, builder: &mut TraceBuilder) -> Vec<(StringId, SliceKind)> {
    let are_marked = metadata_value(capture, "steps_are_marked").is_some();
    let kind = |name: &str| match kind_of_label(name) {
        SliceKind::Step if are_marked => SliceKind::Annotation,
        kind => kind,
    };
    capture.names.iter().map(|name| (builder.strings.intern(name), kind(name))).collect()
}

/// Unix time; numbers that only damage can explain are cut to what arithmetic can bear.
fn shifted_ns(time_ns: i64, offset_ns: i64) -> i64 {
    const FARTHEST_NS: i64 = 1 << 61;
    time_ns.saturating_add(offset_ns).clamp(-FARTHEST_NS, FARTHEST_NS)
}

fn kind_of_label(name: &str) -> SliceKind {
    match label_kind(name) {
        Label::Step(_) => SliceKind::Step,
        Label::DataLoader => SliceKind::DataLoader,
        Label::Optimizer => SliceKind::Optimizer,
        Label::Annotation | Label::Iteration(_) => SliceKind::Annotation,
    }
}
