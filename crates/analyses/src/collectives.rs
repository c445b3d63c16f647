//! # Definition
//! For each rank, collective, group, element type and size: how often it was called, what it carried, and what it took
//! on the host and on devices. It is what one rank knows: time of a kernel includes waiting for other ranks.
//!
//! - A *call* is an operator that says that it is a collective, with what lies in it; the host's time is that of the
//!   operators. It ends when the work is enqueued, unless the operator waits.
//! - A *kernel* of communication belongs to the call that it was launched in, else to what it says itself. The device's
//!   time is the sum of the kernels' durations, of kernels that run at the same time both; the exposed part is the sum of
//!   those parts of each in which no computing kernel runs on its device.
//! - A *work* is a range in which a thread of the backend carries a collective out on the host, as Gloo's do.
//!
//! The size is what nccl-tests call so: bytes that go in or that come out, whatever is more. The algorithm bandwidth is
//! the size over the time of the call's kernels, or where there is none, of its work. Waiting for other ranks is in that
//! time: a low bandwidth need not be the fault of the links. The bus bandwidth is that of nccl-tests: with n ranks
//! 2(n-1)/n times the algorithm bandwidth for all-reduce, (n-1)/n times for all-gather, reduce-scatter, all-to-all, gather
//! and scatter, and the same for broadcast, reduce, and what goes from one rank to another.
//!
//! `--compat tb` gives the operators of the distributed view of the TensorBoard plugin of PyTorch's profiler, for each rank
//! and name: the latency is the time of operators and kernels, of those that overlap once, and the transfer that of
//! `stragglers --compat tb`. The size is that of the input alone, 0 in the plugin where it is not known.
//!
//! `--compat deepspeed` gives the table of DeepSpeed's comms logger, for each rank, kind of collective and message size: the
//! bytes of the tensor that a call is given. The latency of a call is the time of its kernels, else of its work, else of
//! the call on the host; the logger's own waits for devices are in none of them. Its formulas for bandwidths count all
//! ranks of the job where a group may have fewer, and gigabits.
//!
//! # Units
//! Elements and size are of one call, input and output bytes of all calls of the row. Counts of calls, works and kernels.
//! Nanoseconds. Bytes in a second, rounded.
//!
//! # Source
//! What operators, ranges and kernels say of the collectives that they are: `record_param_comms` and the kernels of NCCL
//! in traces of `torch.profiler`; the operators of `c10d` and the ranges of Gloo in runs of our own, which are one call
//! where they have the same process, group and number. Of operators and labels of backends that say nothing, as those of
//! oneCCL's bindings, of Gloo, and older ones of NCCL, the name and the only input: no group is stated then. A label inside
//! of an operator is the operator's; one on a thread of the backend is a work. What lies one in the other is one call.
//! Kernels of communication as in `overlap`.
//!
//! # Edge cases
//! Kernels of communication of which nothing is said make a row without a name, so that the device's time of a device's
//! rows is the time of all its communication kernels. A call whose work has no number, as where several are under way at
//! once, has a row of its own, without a size. A work may be another collective than the call, as Gloo does a
//! reduce-scatter by an all-reduce: the row is the call's, with what goes in. Of an all-gather that does not say what
//! comes out, the size is what goes in times the ranks of the group. What is not known is absent: calls where none was recorded on the host,
//! kernels where none is linked. Where only kernels or works are known, each counts as a call's bytes. Elements of an
//! unknown type have no bytes. What took no time has no part in the bandwidth. For one step, calls that begin in it and
//! kernels launched in it.

mod comms_logger;

use crate::device_busy::DeviceBusy;
use crate::windows::Windows;
use crate::{Analysis, AnalysisContext, Compat, Needs, Options, Outcome, Selection, tensorboard_views};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use stepscope_align::{Call, Calls};
use stepscope_base::{Span, StringId, StringTable};
use stepscope_trace::{Collective, CollectiveKind, DeviceEventClass, SliceId, Trace};

columns! {
    /// All collectives of one kind, size and group, on one rank.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    pub struct Collectives {
        /// The rank that takes part.
        rank: u32 => Count,
        /// The collective, as the source calls it: `allreduce`, `_allgather_base`. Absent for kernels whose
        /// collective is not known.
        name: Option<String> => Text,
        /// The name of the process group.
        group: Option<String> => Text,
        /// Number of ranks in the process group.
        group_size: Option<i64> => Count,
        /// The type of the elements.
        dtype: Option<String> => Text,
        /// Bytes that go into one call or come out of it, whichever are more.
        size_bytes: Option<i64> => Bytes,
        /// Number of calls: operators that start the collective.
        calls: Option<i64> => Count,
        /// Sum of the durations of the kernels.
        device_ns: Option<i64> => Nanoseconds,
        /// The part of `device_ns` in which no computing kernel runs on the device.
        exposed_ns: Option<i64> => Nanoseconds,
        /// Sum of the durations of the works.
        work_ns: Option<i64> => Nanoseconds,
        /// Sum of the durations of the calls on the host.
        host_ns: Option<i64> => Nanoseconds,
        /// `size_bytes` over the mean time of a call's kernels, or of its work where there is no kernel.
        algorithm_bandwidth_bytes_per_s: Option<i64> => BytesPerSecond,
        /// `algorithm_bandwidth_bytes_per_s` times the share of the size that crosses a link of each rank, as nccl-tests
        /// count it. It does not depend on the number of ranks, so it can be compared with the speed of the links.
        bus_bandwidth_bytes_per_s: Option<i64> => BytesPerSecond,
        /// Number of kernels that carry the collective out on devices.
        kernels: Option<i64> => Count,
        /// Number of ranges in which threads of the backend carry the collective out on the host.
        works: Option<i64> => Count,
        /// Bytes that went in, of all calls.
        input_bytes: Option<i64> => Bytes,
        /// Bytes that came out, of all calls.
        output_bytes: Option<i64> => Bytes,
        /// Number of elements that go into one call.
        input_elements: Option<i64> => Count,
        /// Number of elements that come out of one call.
        output_elements: Option<i64> => Count,
        /// What the process group is for.
        group_description: Option<String> => Text,
    }
}

/// Every kind of collective asked for, ordered by rank, then the longest on devices, in works and on the host first.
pub fn collectives(trace: &Trace, selection: &Selection) -> Vec<Collectives> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<Collectives> {
    let (trace, busy) = (context.trace, context.get::<Vec<DeviceBusy>>());
    let calls = context.get::<Calls>();
    let mut sums = Sums { trace, of_key: FxHashMap::default(), rows: Vec::new() };
    let windows = Windows::of(trace, context.selection);
    for call in &calls.calls {
        if windows.has_slice(trace, call.slice) {
            sums.add_call(call);
        }
    }
    let mut kernels_ns = vec![0_i64; calls.calls.len()];
    for event in context.selection.device_events(trace) {
        if event.class != DeviceEventClass::Communication {
            continue;
        }
        let call = event.op.and_then(|op| calls.around(trace, op));
        let said = call.map(|at| &calls.calls[at].said).or_else(|| calls.of_kernel(trace, event.slice));
        let row = sums.row(trace.devices[event.device.index()].rank, said);
        let span = trace.slices.span(event.slice);
        sums.rows[row].1.add_kernel(span, &busy[event.device.index()]);
        match call {
            Some(at) => kernels_ns[at] = kernels_ns[at].saturating_add(span.duration_ns()),
            None => sums.rows[row].1.kernels_timed.add(span.duration_ns()),
        }
    }
    for (call, ns) in calls.calls.iter().zip(kernels_ns).filter(|(_, ns)| *ns > 0) {
        let row = sums.row_of_call(call);
        sums.rows[row].1.kernels_timed.add(ns);
    }
    sums.finish()
}

/// What the rows are told apart by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    rank: u32,
    name: StringId,
    kind: Option<CollectiveKind>,
    group: StringId,
    group_description: StringId,
    group_size: Option<i64>,
    dtype: StringId,
    input_elements: Option<i64>,
    output_elements: Option<i64>,
}

#[derive(Default)]
struct Sum {
    /// Calls, and works that nobody is known to have asked for.
    messages: i64,
    calls: i64,
    works: i64,
    kernels: i64,
    host_ns: i64,
    work_ns: i64,
    device_ns: i64,
    exposed_ns: i64,
    kernels_timed: Timed,
    works_timed: Timed,
}

/// Calls that took time, and that time.
#[derive(Default)]
struct Timed {
    calls: i64,
    ns: i64,
}

impl Timed {
    fn add(&mut self, ns: i64) {
        if ns > 0 {
            (self.calls, self.ns) = (self.calls + 1, self.ns.saturating_add(ns));
        }
    }
}

struct Sums<'a> {
    trace: &'a Trace,
    of_key: FxHashMap<Key, usize>,
    rows: Vec<(Key, Sum)>,
}

impl Sums<'_> {
    fn row(&mut self, rank: u32, said: Option<&Collective>) -> usize {
        let empty = StringTable::EMPTY;
        let text = |of: fn(&Collective) -> StringId| said.map_or(empty, of);
        let key = Key {
            rank,
            name: text(|said| said.name),
            kind: said.and_then(|said| said.kind),
            group: text(|said| said.group),
            group_description: text(|said| said.group_description),
            group_size: said.and_then(|said| said.group_size),
            dtype: text(|said| said.dtype),
            input_elements: said.and_then(|said| said.input_elements),
            output_elements: said.and_then(|said| said.output_elements),
        };
        let rows = &mut self.rows;
        *self.of_key.entry(key).or_insert_with(|| {
            rows.push((key, Sum::default()));
            rows.len() - 1
        })
    }

    fn row_of_call(&mut self, call: &Call) -> usize {
        let rank = self.trace.rank_of_track(self.trace.slices.track[call.slice.index()]);
        self.row(rank, Some(&call.said))
    }

    fn add_call(&mut self, call: &Call) {
        let row = self.row_of_call(call);
        let sum = &mut self.rows[row].1;
        let dur_ns = |slice: SliceId| self.trace.slices.dur_ns[slice.index()];
        sum.messages += 1;
        if call.is_asked() {
            sum.calls += 1;
            sum.host_ns = sum.host_ns.saturating_add(dur_ns(call.slice));
        }
        if let Some(work) = call.work {
            sum.works += 1;
            sum.work_ns = sum.work_ns.saturating_add(dur_ns(work));
            sum.works_timed.add(dur_ns(work));
        }
    }

    fn finish(self) -> Vec<Collectives> {
        let mut rows: Vec<Collectives> = self.rows.iter().map(|(key, sum)| row(self.trace, key, sum)).collect();
        rows.sort_by(|a, b| {
            let place = |row: &Collectives| (row.rank, Reverse((row.device_ns, row.work_ns, row.host_ns)));
            let text = |row: &Collectives| (row.name.clone(), row.group.clone(), row.dtype.clone(), row.input_elements);
            place(a).cmp(&place(b)).then_with(|| text(a).cmp(&text(b)))
        });
        rows
    }
}

impl Sum {
    fn add_kernel(&mut self, span: Span, busy: &DeviceBusy) {
        let hidden_ns = busy.compute.clip(span).total_ns();
        self.kernels += 1;
        self.device_ns = self.device_ns.saturating_add(span.duration_ns());
        self.exposed_ns = self.exposed_ns.saturating_add(span.duration_ns() - hidden_ns);
    }
}

fn row(trace: &Trace, key: &Key, sum: &Sum) -> Collectives {
    let text = |id: StringId| trace.text(id);
    let bytes = |elements| bytes_of(trace, key.dtype, elements);
    let (input, output) = (bytes(key.input_elements), bytes(key.output_elements));
    let size_bytes = size(key.kind, key.group_size, input, output);
    let some = |count: i64, value: i64| (count > 0).then_some(value);
    let messages = if sum.messages > 0 { sum.messages } else { sum.kernels };
    Collectives {
        rank: key.rank,
        name: text(key.name),
        group: text(key.group),
        group_description: text(key.group_description),
        group_size: key.group_size,
        dtype: text(key.dtype),
        input_elements: key.input_elements,
        output_elements: key.output_elements,
        size_bytes,
        calls: some(sum.calls, sum.calls),
        works: some(sum.works, sum.works),
        kernels: some(sum.kernels, sum.kernels),
        input_bytes: input.map(|bytes| bytes.saturating_mul(messages)),
        output_bytes: output.map(|bytes| bytes.saturating_mul(messages)),
        host_ns: some(sum.calls, sum.host_ns),
        work_ns: some(sum.works, sum.work_ns),
        device_ns: some(sum.kernels, sum.device_ns),
        exposed_ns: some(sum.kernels, sum.exposed_ns),
        algorithm_bandwidth_bytes_per_s: size_bytes.and_then(|size| bandwidth(size, sum, (1, 1))),
        bus_bandwidth_bytes_per_s: size_bytes
            .zip(key.kind.and_then(|kind| on_links(kind, key.group_size)))
            .and_then(|(size, share)| bandwidth(size, sum, share)),
    }
}

/// What nccl-tests call the size of a collective, in bytes; `None` where it is not known.
pub(crate) fn size_bytes(trace: &Trace, said: &Collective) -> Option<i64> {
    let bytes = |elements| bytes_of(trace, said.dtype, elements);
    size(said.kind, said.group_size, bytes(said.input_elements), bytes(said.output_elements))
}

/// Bytes that go into a collective; `None` where they are not known.
pub(crate) fn input_bytes(trace: &Trace, said: &Collective) -> Option<i64> {
    bytes_of(trace, said.dtype, said.input_elements)
}

/// Bytes that come out of a collective; `None` where they are not known.
fn output_bytes(trace: &Trace, said: &Collective) -> Option<i64> {
    bytes_of(trace, said.dtype, said.output_elements)
}

fn size(kind: Option<CollectiveKind>, group_size: Option<i64>, input: Option<i64>, output: Option<i64>) -> Option<i64> {
    // Gloo's work says only what goes in.
    let is_all_gather = kind == Some(CollectiveKind::AllGather);
    let gathered = || input?.checked_mul(group_size.filter(|size| *size > 0)?);
    if is_all_gather && output.is_none() { gathered() } else { input.max(output) }
}

/// Bytes of as many elements of a type.
fn bytes_of(trace: &Trace, dtype: StringId, elements: Option<i64>) -> Option<i64> {
    elements.filter(|count| *count >= 0)?.checked_mul(element_bytes(trace.strings.get(dtype))?)
}

/// `share` of the bytes in a second, rounded: in kernels where there are any, else in works.
fn bandwidth(size_bytes: i64, sum: &Sum, (over, under): (i64, i64)) -> Option<i64> {
    let timed = [&sum.kernels_timed, &sum.works_timed].into_iter().find(|timed| timed.calls > 0)?;
    if size_bytes == 0 {
        return None;
    }
    let bytes = i128::from(size_bytes) * i128::from(timed.calls) * i128::from(over);
    per_second(bytes, i128::from(timed.ns) * i128::from(under))
}

/// The bandwidth on the links of each rank of a group when a collective of this size takes `ns`, rounded; `None` where
/// nothing is carried, or the share of the links is not known.
pub(crate) fn bus_bandwidth(kind: CollectiveKind, group_size: i64, size_bytes: i64, ns: i64) -> Option<i64> {
    let (over, under) = on_links(kind, Some(group_size)).filter(|_| size_bytes > 0 && ns > 0)?;
    per_second(i128::from(size_bytes) * i128::from(over), i128::from(ns) * i128::from(under))
}

fn per_second(bytes: i128, ns: i128) -> Option<i64> {
    i64::try_from(bytes.saturating_mul(1_000_000_000).saturating_add(ns / 2) / ns).ok()
}

/// The share of the size that crosses a link of each rank of a group, as a fraction; `None` when the group's size decides
/// it and is not known. Source: "Performance reported by NCCL tests", in the documents of nccl-tests.
fn on_links(kind: CollectiveKind, group_size: Option<i64>) -> Option<(i64, i64)> {
    let size = group_size.filter(|size| *size > 0);
    match kind {
        CollectiveKind::AllReduce => size.map(|size| (size.saturating_sub(1).saturating_mul(2), size)),
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter | CollectiveKind::AllToAll => {
            size.map(|size| (size - 1, size))
        }
        CollectiveKind::Broadcast
        | CollectiveKind::Reduce
        | CollectiveKind::Send
        | CollectiveKind::Receive
        | CollectiveKind::PointToPoint => Some((1, 1)),
        CollectiveKind::Gather | CollectiveKind::Scatter => size.map(|size| (size - 1, size)),
        CollectiveKind::Barrier => None,
    }
}

/// Bytes of an element of a type as PyTorch's collectives name it.
fn element_bytes(dtype: &str) -> Option<i64> {
    Some(match dtype {
        "Byte" | "Char" | "Bool" | "QInt8" | "QUInt8" | "Bits8" => 1,
        "Short" | "Half" | "BFloat16" | "UInt16" | "Bits16" => 2,
        "Int" | "Float" | "UInt32" | "QInt32" | "ComplexHalf" => 4,
        "Long" | "Double" | "UInt64" | "ComplexFloat" => 8,
        "ComplexDouble" => 16,
        name if name.starts_with("Float8_") => 1,
        _ => return None,
    })
}

pub(crate) const ANALYSIS: Analysis = Analysis {
    options: Options { compat: &[Compat::Tb, Compat::DeepSpeed], ..Options::NONE },
    ..Analysis::of(outcome)
}
.needing(Needs::EachRankKept)
.needing_for_compat(Needs::Condensed);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    match context.selection.compat {
        Some(Compat::Tb) => Outcome::of(context, &tensorboard_views::operations(context)),
        Some(Compat::DeepSpeed) => Outcome::of(context, &comms_logger::rows(context)),
        _ => Outcome::of(context, &rows(context)),
    }
}

#[cfg(test)]
mod tests;
