//! # Definition
//! For each line of the program's source: the time of the operators that were called from it, on the host and in the
//! device work that they launched. Total counts an operator for every line of its call stack, once a line; self for the
//! innermost line only. An operator counts with its own time, without operators inside it, so that self times add up to
//! the time of all operators. The count is of operators that lie in no other and were called from the line itself. Samples
//! of stacks are counted in the same way: they are moments, not times.
//!
//! By file, a row stands for all lines of a file: an operator counts once for every file of its stack.
//!
//! # Units
//! Nanoseconds; counts of operators and of samples; the line is a number in its file.
//!
//! # Source
//! An operator's recorded call stack; without one, the calls of Python around it; without those, the stack of the operator
//! around it. A node of the backward pass without any has the stack of its forward operator. Functions that have no file
//! are passed over. Where stacks are made of calls, the line is that of the function, as their source tells no other.
//! Samples of the stacks of Python's threads.
//!
//! # Edge cases
//! What has no stack stands in a row without file, as do samples whose stack could not be read. For one step, operators
//! that begin in it, device work launched in it, and samples taken in it. Device work without a known operator is left out.

use crate::context::Shared;
use crate::joined::Joinable;
use crate::op_tree::{NONE, OpTree};
use crate::windows::Windows;
use crate::{Analysis, AnalysisContext, GroupBy, Joined, Needs, Options, Outcome, Selection};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::StringTable;
use stepscope_trace::{FlowKind, Frame, SliceId, SliceKind, StackId, Trace};

columns! {
    /// One line of the program's source, or one file.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    pub struct SourceLine {
        /// The source file. Absent for operators without a call stack.
        file: Option<String> => Text,
        /// The number of the line. Absent when a row is a file.
        line: Option<u32> => Count,
        /// The function that the line is in. Absent when a row is a file.
        function: Option<String> => Text,
        /// Number of operators that are called from the line and are inside of no other operator.
        count: i64 => Count,
        /// Time on the host of operators called from the line, or through it.
        host_total_ns: i64 => Nanoseconds,
        /// Time on the host of operators called from the line.
        host_self_ns: i64 => Nanoseconds,
        /// Sum of the durations of the device work of operators called from the line, or through it.
        device_total_ns: i64 => Nanoseconds,
        /// Sum of the durations of the device work of operators called from the line.
        device_self_ns: i64 => Nanoseconds,
        /// Number of samples of stacks that have the line in them, on all threads.
        samples: i64 => Count,
        /// Number of samples of stacks of which it is the innermost line.
        self_samples: i64 => Count,
    }
}

/// Lines by the time that operators and devices spend for them, the most first.
pub fn source_lines(trace: &Trace, selection: &Selection) -> Vec<SourceLine> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<SourceLine> {
    let mut rows = context.get::<LineSums>().0.clone();
    rows.retain(|row| row.count != 0 || row.host_total_ns != 0 || row.device_total_ns != 0 || row.samples != 0);
    let order = |row: &SourceLine| row.host_total_ns.saturating_add(row.device_total_ns);
    let samples = |row: &SourceLine| std::cmp::Reverse((row.self_samples, row.samples));
    rows.sort_by(|a, b| {
        order(b).cmp(&order(a)).then_with(|| samples(a).cmp(&samples(b))).then_with(|| a.place().cmp(&b.place()))
    });
    rows
}

/// Every line, in no particular order.
pub(crate) struct LineSums(Vec<SourceLine>);

impl Shared for LineSums {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self(sums(context))
    }
}

impl Joinable for LineSums {
    fn joined(of_ranks: Vec<Self>) -> Self {
        let mut rows: Vec<SourceLine> = of_ranks.into_iter().flat_map(|of| of.0).collect();
        rows.sort_by(|a, b| a.place().cmp(&b.place()));
        rows.dedup_by(|row, sum| {
            let is_same = row.place() == sum.place();
            if is_same {
                sum.add(row);
            }
            is_same
        });
        Self(rows)
    }
}

impl SourceLine {
    /// What it is.
    fn place(&self) -> (Option<&str>, Option<u32>, Option<&str>) {
        (self.file.as_deref(), self.line, self.function.as_deref())
    }

    fn add(&mut self, other: &Self) {
        for (sum, value) in [
            (&mut self.count, other.count),
            (&mut self.host_total_ns, other.host_total_ns),
            (&mut self.host_self_ns, other.host_self_ns),
            (&mut self.device_total_ns, other.device_total_ns),
            (&mut self.device_self_ns, other.device_self_ns),
            (&mut self.samples, other.samples),
            (&mut self.self_samples, other.self_samples),
        ] {
            *sum = sum.saturating_add(value);
        }
    }
}

fn sums(context: &AnalysisContext<'_>) -> Vec<SourceLine> {
    let (trace, tree) = (context.trace, context.get::<OpTree>());
    let mut stacks = Stacks::of(trace, tree, context.selection.group_by == Some(GroupBy::File));
    let samples = stacks.add_samples(trace, context.selection);
    let is_asked = Windows::of(trace, context.selection).ops(trace, tree);
    let mut rows = vec![SourceLine::default(); stacks.lines.len()];
    for (row, line) in rows.iter_mut().zip(&stacks.lines) {
        row.file = line.file.map(str::to_string);
        row.line = line.line;
        row.function = line.file.filter(|_| !stacks.is_by_file).map(|_| line.function.to_string());
    }
    let mut own_ns: Vec<i64> = tree.slice.iter().map(|slice| trace.slices.dur_ns[slice.index()]).collect();
    for op in (0..tree.len()).rev() {
        let (dur_ns, parent) = (trace.slices.dur_ns[tree.slice[op].index()], tree.parent[op]);
        if let Some(around_ns) = own_ns.get_mut(parent as usize) {
            *around_ns -= dur_ns;
        }
        if is_asked[op] {
            let lines = stacks.lines_of(op);
            let own = &mut rows[lines[0] as usize];
            own.count += i64::from(parent == NONE);
            own.host_self_ns = own.host_self_ns.saturating_add(own_ns[op]);
            add_to_all(&mut rows, lines, |row| &mut row.host_total_ns, own_ns[op]);
        }
    }
    for (stack, count) in samples {
        let lines = &stacks.stacks[stack as usize];
        rows[lines[0] as usize].self_samples += count;
        lines.iter().for_each(|line| rows[*line as usize].samples += count);
    }
    for event in context.selection.device_events(trace) {
        let Some(op) = tree.row(event.op) else { continue };
        let (dur_ns, lines) = (trace.slices.dur_ns[event.slice.index()], stacks.lines_of(op as usize));
        let own = &mut rows[lines[0] as usize];
        own.device_self_ns = own.device_self_ns.saturating_add(dur_ns);
        add_to_all(&mut rows, lines, |row| &mut row.device_total_ns, dur_ns);
    }
    rows
}

fn add_to_all(rows: &mut [SourceLine], lines: &[u32], of: fn(&mut SourceLine) -> &mut i64, ns: i64) {
    for line in lines {
        let sum = of(&mut rows[*line as usize]);
        *sum = sum.saturating_add(ns);
    }
}

/// For each operator of `tree` the line that called it, the innermost of its stack; `None` without one.
pub(crate) fn calling_lines<'a>(trace: &'a Trace, tree: &OpTree) -> Vec<Option<Frame<'a>>> {
    let stacks = Stacks::of(trace, tree, false);
    let line = |op: usize| Some(stacks.lines_of(op)[0]).filter(|line| *line != UNKNOWN);
    (0..tree.len()).map(|op| line(op).map(|line| stacks.lines[line as usize])).collect()
}

/// The lines of every operator's stack.
struct Stacks<'a> {
    /// True when a line stands for all of its file.
    is_by_file: bool,
    /// Every line; the first is that of what has no stack.
    lines: Vec<Frame<'a>>,
    /// Distinct stacks: lines, innermost first, each once. The first is that of what has none.
    stacks: Vec<Vec<u32>>,
    of_op: Vec<u32>,
    known_lines: FxHashMap<Frame<'a>, u32>,
}

const UNKNOWN: u32 = 0;

impl<'a> Stacks<'a> {
    fn of(trace: &'a Trace, tree: &OpTree, is_by_file: bool) -> Self {
        let nowhere = Frame { file: None, line: None, function: "" };
        let mut stacks = Self {
            is_by_file,
            lines: vec![nowhere],
            stacks: vec![vec![UNKNOWN]],
            of_op: vec![UNKNOWN; tree.len()],
            known_lines: FxHashMap::default(),
        };
        stacks.read(trace, tree);
        stacks.inherit(trace, tree);
        stacks
    }

    /// The lines of an operator's stack, at least one.
    fn lines_of(&self, op: usize) -> &[u32] {
        &self.stacks[self.of_op[op] as usize]
    }

    /// Stacks that operators have themselves, or by the calls of Python around them.
    fn read(&mut self, trace: &'a Trace, tree: &OpTree) {
        let has_calls = trace.slices.kind.contains(&SliceKind::PythonFunction);
        let (mut of_text, mut of_call) = (FxHashMap::default(), FxHashMap::default());
        let mut infos = trace.ops.slice.iter().zip(&trace.ops.info).peekable();
        for (op, slice) in tree.slice.iter().enumerate() {
            while infos.next_if(|(of, _)| *of < slice).is_some() {}
            let text = infos.next_if(|(of, _)| *of == slice).map_or(StringTable::EMPTY, |(_, info)| info.stack);
            self.of_op[op] = if text != StringTable::EMPTY {
                *of_text.entry(text).or_insert_with(|| self.add(Frame::of_stack(trace.strings.get(text))))
            } else if has_calls {
                let is_call = |id: &SliceId| trace.slices.kind(*id) == SliceKind::PythonFunction;
                let calls = || trace.slices.with_ancestors(*slice).filter(is_call);
                let frames = || calls().map(|call| Frame::parse(trace.slice_name(call)));
                let innermost = calls().next();
                innermost.map_or(UNKNOWN, |call| *of_call.entry(call).or_insert_with(|| self.add(frames())))
            } else {
                UNKNOWN
            };
        }
    }

    /// The stacks of the samples that are asked for, with the number of samples of each.
    fn add_samples(&mut self, trace: &'a Trace, selection: &Selection) -> Vec<(u32, i64)> {
        let windows = Windows::of(trace, selection);
        let mut counts: BTreeMap<Option<StackId>, i64> = BTreeMap::new();
        for sample in &trace.stack_samples {
            let track = windows.track(trace, &trace.tracks[sample.track.index()]);
            if track.is_some_and(|track| track.contains(sample.time_ns)) {
                *counts.entry(sample.stack).or_default() += 1;
            }
        }
        let frames = |stack: StackId| trace.stacks.frames(stack).map(|frame| Frame::parse(trace.strings.get(frame)));
        let counts =
            counts.into_iter().map(|(stack, count)| (stack.map_or(UNKNOWN, |stack| self.add(frames(stack))), count));
        counts.collect()
    }

    /// Operators without a stack have that of their forward operator, else of the operator around them.
    fn inherit(&mut self, trace: &Trace, tree: &OpTree) {
        let flows = trace.flows.iter().filter(|flow| flow.kind == FlowKind::ForwardBackward);
        let forward: FxHashMap<SliceId, SliceId> = flows.map(|flow| (flow.to, flow.from)).collect();
        // What is around an operator stands before it; forward operators keep what they have by themselves.
        let own = self.of_op.clone();
        for op in 0..tree.len() {
            if self.of_op[op] != UNKNOWN {
                continue;
            }
            let linked = forward.get(&tree.slice[op]).and_then(|from| tree.row(Some(*from)));
            let linked =
                linked.and_then(|from| tree.with_enclosing(from).map(|op| own[op as usize]).find(|of| *of != UNKNOWN));
            let around = self.of_op.get(tree.parent[op] as usize).copied();
            self.of_op[op] = linked.or(around).unwrap_or(UNKNOWN);
        }
    }

    fn add(&mut self, frames: impl Iterator<Item = Frame<'a>>) -> u32 {
        let mut stack: Vec<u32> = Vec::new();
        for frame in frames.filter(|frame| frame.file.is_some()) {
            let frame = if self.is_by_file { Frame { line: None, function: "", ..frame } } else { frame };
            let lines = &mut self.lines;
            let line = *self.known_lines.entry(frame).or_insert_with(|| {
                lines.push(frame);
                lines.len() as u32 - 1
            });
            // A function that calls itself counts once.
            if !stack.contains(&line) {
                stack.push(line);
            }
        }
        if stack.is_empty() {
            return UNKNOWN;
        }
        self.stacks.push(stack);
        self.stacks.len() as u32 - 1
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis {
    options: Options { group_by: &[GroupBy::Line, GroupBy::File], ..Options::NONE },
    ..Analysis::of(outcome)
}
.needing(Needs::Joined(Joined::by::<LineSums>()));

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::of(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::{Device, DeviceEvent, DeviceEventClass, OpInfo, Process, TraceBuilder, Track, TrackKind};

    /// Ops as (name, start, end, stack) on one thread, each launching a kernel of 10 ns; links from forward to backward.
    fn trace_of(ops: &[(&str, i64, i64, &str)], calls: &[(&str, i64, i64)], links: &[(usize, usize)]) -> Trace {
        let mut builder = TraceBuilder::new("lines");
        let process = builder.add_process(Process::default());
        let device = builder.add_device(Device::default());
        let thread = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        let stream = builder.add_track(Track::new(TrackKind::Stream, process, "stream"));
        for (name, start, end) in calls {
            let name = builder.strings.intern(name);
            builder.add_slice(thread, SliceKind::PythonFunction, name, *start, end - start);
        }
        let mut slices = Vec::new();
        for (at, (name, start, end, stack)) in ops.iter().enumerate() {
            let name = builder.strings.intern(name);
            let slice = builder.add_slice(thread, SliceKind::Op, name, *start, end - start);
            if !stack.is_empty() {
                let stack = builder.strings.intern(stack);
                builder.add_op(slice, OpInfo { stack, ..OpInfo::default() });
            }
            let launch = builder.add_slice(thread, SliceKind::Runtime, name, end - 1, 1);
            let kernel = builder.add_slice(stream, SliceKind::Kernel, name, 1_000 + 20 * at as i64, 10);
            builder.add_device_event(DeviceEvent::new(kernel, device, DeviceEventClass::Compute));
            builder.add_launch_link(launch, kernel);
            slices.push(slice);
        }
        for (from, to) in links {
            let kind = FlowKind::ForwardBackward;
            builder.add_flow(stepscope_trace::Flow { from: slices[*from], to: slices[*to], kind });
        }
        builder.finish()
    }

    fn lines(trace: &Trace) -> Vec<String> {
        let line = |row: &SourceLine| {
            let place = row.file.as_ref().map_or("–".to_string(), |file| format!("{file}:{}", row.line.unwrap_or(0)));
            let numbers = [row.host_total_ns, row.host_self_ns, row.device_total_ns, row.device_self_ns];
            format!("{place} x{} {numbers:?}", row.count)
        };
        source_lines(trace, &Selection::default()).iter().map(line).collect()
    }

    #[test]
    fn an_operator_counts_for_every_line_of_its_stack() {
        let trace = trace_of(
            &[
                ("linear", 0, 20, "m.py(3): forward;<built-in call>;t.py(9): main"),
                ("addmm", 5, 15, ""),
                ("loss", 30, 34, "t.py(10): main"),
            ],
            &[],
            &[],
        );
        // The inner operator has the stack of the one around it.
        let expected = ["m.py:3 x1 [20, 20, 20, 20]", "t.py:9 x1 [20, 0, 20, 0]", "t.py:10 x1 [4, 4, 10, 10]"];
        let found = lines(&trace);
        assert_eq!(found[0], expected[0]);
        assert!(found.contains(&"t.py:9 x0 [20, 0, 20, 0]".to_string()), "{found:?}");
        assert!(found.contains(&expected[2].to_string()), "{found:?}");
    }

    #[test]
    fn samples_are_counted_for_every_line_of_their_stack() {
        let trace = stepscope_trace::drawn::drawn(
            "rank 0 step 0000011111\nrank 0 cpu 1 aaa.......\nrank 0 samples 1 .a...f.G.f",
        );
        let counts = |selection: &Selection| -> Vec<String> {
            let row = |row: &SourceLine| {
                let file = row.file.as_deref().unwrap_or("–");
                format!("{file} {} {} {}", row.samples, row.self_samples, row.host_total_ns)
            };
            source_lines(&trace, selection).iter().map(row).collect()
        };
        let all = ["– 0 0 3000", "f.py 2 2 0", "a.py 1 1 0", "g.py 1 1 0", "main.py 4 0 0"];
        assert_eq!(counts(&Selection::default()), all);
        let first = Selection { step: Some(0), ..Selection::default() };
        assert_eq!(counts(&first), ["– 0 0 3000", "a.py 1 1 0", "main.py 1 0 0"]);
    }

    #[test]
    fn a_file_counts_an_operator_once_however_many_of_its_lines_called_it() {
        let trace = trace_of(
            &[
                ("linear", 0, 20, "m.py(3): forward;m.py(9): call;t.py(9): main"),
                ("loss", 30, 34, "t.py(10): main"),
                ("bare", 40, 41, ""),
            ],
            &[],
            &[],
        );
        let by_file = Selection { group_by: Some(GroupBy::File), ..Selection::default() };
        let files = source_lines(&trace, &by_file);
        let found = files.iter().map(|row| (row.file.as_deref(), row.count, row.host_total_ns, row.host_self_ns));
        let expected = [(Some("t.py"), 1, 24, 4), (Some("m.py"), 1, 20, 20), (None, 1, 1, 1)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert!(files.iter().all(|row| row.line.is_none() && row.function.is_none()));
    }

    #[test]
    fn a_backward_node_has_the_line_of_its_forward_operator() {
        let trace = trace_of(
            &[("mul", 0, 10, "m.py(3): forward"), ("MulBackward0", 20, 30, ""), ("mul", 22, 28, "")],
            &[],
            &[(0, 1)],
        );
        assert_eq!(lines(&trace), ["m.py:3 x2 [20, 20, 30, 30]"]);
    }

    #[test]
    fn calls_of_python_are_stacks_and_what_has_none_is_told() {
        let trace = trace_of(
            &[("a", 2, 4, ""), ("b", 20, 25, "")],
            &[("t.py(1): main", 0, 10), ("f.py(7): f", 1, 5), ("<built-in method a>", 2, 5)],
            &[],
        );
        assert_eq!(lines(&trace), ["– x1 [5, 5, 10, 10]", "f.py:7 x1 [2, 2, 10, 10]", "t.py:1 x0 [2, 0, 10, 0]"]);
    }

    proptest! {
        /// Whatever the stacks: nothing of the operators' time is lost, nor counted twice.
        #[test]
        fn own_times_add_up(ops in prop::collection::vec((0_i64..900, 1_i64..60, "(a.py\\([1-3]\\): f;?){0,3}"), 0..25)) {
            let rows: Vec<(&str, i64, i64, &str)> = ops.iter().map(|(at, dur, stack)| ("op", *at, at + dur, stack.as_str())).collect();
            let trace = trace_of(&rows, &[], &[]);
            let found = source_lines(&trace, &Selection::default());
            let by_file = Selection { group_by: Some(GroupBy::File), ..Selection::default() };
            let files = source_lines(&trace, &by_file);
            let host: i64 = crate::operators::operators(&trace, &Selection::default()).iter().map(|row| row.host_self_ns).sum();
            let device: i64 = crate::operators::operators(&trace, &Selection::default()).iter().map(|row| row.device_self_ns).sum();
            prop_assert_eq!(found.iter().map(|row| row.host_self_ns).sum::<i64>(), host);
            prop_assert_eq!(found.iter().map(|row| row.device_self_ns).sum::<i64>(), device);
            prop_assert_eq!(files.iter().map(|row| row.host_self_ns).sum::<i64>(), host);
            for row in found.iter().chain(&files) {
                prop_assert!(row.host_self_ns <= row.host_total_ns && row.host_total_ns <= host);
                prop_assert!(row.device_self_ns <= row.device_total_ns && row.device_total_ns <= device);
            }
        }
    }
}
