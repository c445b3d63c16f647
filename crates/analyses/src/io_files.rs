//! # Definition
//! For each file, what the job did with it: calls that opened, read and wrote it and all others, the bytes that were
//! read and written, the time in calls, and how fast and in what sizes data moved. Times are sums of the calls'
//! durations, so calls of several threads at the same time all count. A bandwidth is the bytes of reads, or of writes,
//! over the time in them. A request is a read or write that moved something; of its sizes there are the smallest, the
//! median and the largest, each one that occurred. What reads asked for and writes were given stands beside what moved: less
//! moves at the end of a file, and where calls fail.
//!
//! A request is sequential when it begins where the one before of the same process on the same file ended. The first since
//! the process opened the file, and those whose offset is not known, are neither sequential nor random.
//!
//! A call inside another call on a file of the same thread is how that was done, as where MPI or a stream of C calls the
//! system: only the outer one counts, so that each byte counts once.
//!
//! A major page fault is a read: a page of a mapped file was touched that had to be read first. How much the system read
//! for it, and how long that took, it does not say. A minor one, which found its page in memory, is an other call; of
//! those the recorder records one in 64.
//!
//! The format of a file is what the ending of its name says; nothing looks into the file. One `.bin` is of `mmap_index`, as
//! Megatron writes it, where the trace has one `.idx` of the same name.
//!
//! Grouped by process, a row is a process with all of its files. A helper is a process that another one of its rank
//! started: a worker of a `DataLoader`. Beside that is what the process moved over sockets, which is no part of the rest:
//! over the network, which is all that goes by the Internet protocols, also to the host itself; and over Unix sockets.
//!
//! Where calls on sockets are recorded, whom a socket leads to is a row as a file is: `tcp:10.0.0.1:443`, `unix:/run/a`, and
//! `tcp`, `udp` or `unix` of those that are not connected, or to nobody with a name.
//!
//! # Units
//! Counts of calls, files and processes; bytes; nanoseconds; bytes in a second.
//!
//! # Source
//! Calls on files as the source recorded them, with the file and the bytes that it says.
//!
//! # Edge cases
//! A call that failed moved nothing. Reads and writes whose bytes are not known are counted, as `unsized`, too, and take time,
//! but have no part in bytes, sizes and bandwidth; where no read, or no write, says its bytes they are not known. Of
//! requests that say what they asked for, that is summed, of others it is not. What
//! is called with a descriptor whose file the source does not tell is a row without a file. The longest call is the
//! first of several. For one step, or a window, the calls that begin inside it. Sockets are counted over all of the
//! recording, so that rows of a part of the time do not have them. A process that used sockets and no file has a row where
//! they are counted, without a longest call.

mod formats;

use crate::io_calls::{IoCall, IoSums, RequestSizes, socket_calls};
use crate::{Analysis, AnalysisContext, GroupBy, Needs, Options, Outcome, Selection};
use formats::format_of;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use stepscope_base::{Span, StringId, StringTable};
use stepscope_trace::{Process, ProcessId, SliceId, Sockets, Trace};

columns! {
    /// What was done with one file, or by one process.
    #[derive(Clone, PartialEq, Debug)]
    pub struct FileUse {
        /// The rank.
        rank: u32 => Count,
        /// The file. Absent when it is not known, and when rows are processes.
        file: Option<StringId> => Text,
        /// The format that the ending of its name says, such as `parquet`. Absent where it says none, and when rows are
        /// processes.
        format: Option<&'static str> => Text,
        /// The process, when rows are processes.
        process: Option<ProcessId>,
        /// The name of the process. Absent unless rows are processes.
        process => Text with |row, trace| row.process.map(|process| trace.processes[process.index()].name.as_str()),
        /// The id of the process on its host. Absent unless rows are processes.
        pid => Count with |row, trace| row.process.and_then(|process| trace.processes[process.index()].pid),
        /// Whether another recorded process of the rank started the process. Absent unless rows are processes.
        is_helper: Option<bool> => Flag,
        /// Number of known files that the process used. Absent unless rows are processes.
        files: Option<i64> => Count,
        /// Processes that used it.
        processes: i64,
        /// Number of processes that used the file. Absent when rows are processes.
        processes => Count = |row| row.process.is_none().then_some(row.processes),
        /// Number of calls.
        count: i64 => Count,
        /// Time in calls.
        total_ns: i64 => Nanoseconds,
        /// Bytes read.
        read_bytes: Option<i64> => Bytes,
        /// Bytes written.
        write_bytes: Option<i64> => Bytes,
        /// Bytes read over the time of reads, of the reads whose bytes are known.
        read_bytes_per_s: Option<i64> => BytesPerSecond,
        /// Bytes written over the time of writes, of the writes whose bytes are known.
        write_bytes_per_s: Option<i64> => BytesPerSecond,
        /// Number of calls that failed.
        errors: i64 => Count,
        /// Number of calls that open or create a file.
        opens: i64 => Count,
        /// Number of calls that read.
        reads: i64 => Count,
        /// Number of reads that are major page faults.
        page_faults: i64 => Count,
        /// Number of calls that write.
        writes: i64 => Count,
        /// Number of all other calls.
        others: i64 => Count,
        /// Reads and writes whose bytes are not known.
        unsized_count: i64,
        /// Number of reads and writes whose bytes are not known.
        unsized => Count = |row| row.unsized_count,
        /// Share of the reads and writes that begin where the one before of the same process on the same file ended.
        /// Absent where no offsets are known.
        sequential_ratio: Option<f64> => Ratio,
        /// Share of the calls that neither read nor write, without page faults.
        metadata_ratio: Option<f64> => Ratio,
        /// Share of the time in calls that neither read nor write.
        metadata_ns_ratio: Option<f64> => Ratio,
        /// Bytes that reads asked for. Absent where it is not known.
        read_asked_bytes: Option<i64> => Bytes,
        /// Bytes that writes were given. Absent where it is not known.
        write_asked_bytes: Option<i64> => Bytes,
        /// Time in reads.
        read_ns: i64 => Nanoseconds,
        /// Time in writes.
        write_ns: i64 => Nanoseconds,
        /// Bytes of the smallest read or write that moved any.
        request_bytes_min: Option<i64> => Bytes,
        /// Median bytes of the reads and writes that moved any.
        request_bytes_median: Option<i64> => Bytes,
        /// Bytes of the largest read or write.
        request_bytes_max: Option<i64> => Bytes,
        /// What the process moved over sockets, in all of the recording.
        sockets: Option<Sockets>,
        /// Number of calls that moved bytes over the network. Absent where sockets were not counted.
        network_calls => Count if (counts_sockets) = |row| row.sockets.map(|sockets| sockets.network.count),
        /// Bytes received over the network.
        network_received_bytes => Bytes if (counts_sockets) = |row| row.sockets.map(|of| of.network.received_bytes),
        /// Bytes sent over the network.
        network_sent_bytes => Bytes if (counts_sockets) = |row| row.sockets.map(|of| of.network.sent_bytes),
        /// Number of calls that moved bytes over Unix sockets, to processes of the same host.
        unix_socket_calls => Count if (counts_sockets) = |row| row.sockets.map(|of| of.unix.count),
        /// Bytes received over Unix sockets.
        unix_socket_received_bytes => Bytes if (counts_sockets) = |row| row.sockets.map(|of| of.unix.received_bytes),
        /// Bytes sent over Unix sockets.
        unix_socket_sent_bytes => Bytes if (counts_sockets) = |row| row.sockets.map(|of| of.unix.sent_bytes),
        /// The call that took longest. Absent without any.
        longest: Option<SliceId>,
        /// Duration of the longest call.
        longest_ns => Nanoseconds with |row, trace| row.longest.map(|slice| trace.slices.dur_ns[slice.index()]),
        /// When the longest call starts, counted from the start of the trace.
        longest_start_ns => Nanoseconds with |row, trace| row.longest.map(|slice| trace.slices.start_ns[slice.index()]),
        /// The name of the longest call.
        longest_call => Text = |row| row.longest,
    }
}

/// Sockets are counted for a process, and not for when.
fn counts_sockets(selection: &Selection) -> bool {
    selection.group_by == Some(GroupBy::Process) && !selection.is_part()
}

/// Every file, by rank, the longest time in calls first.
pub fn io_files(trace: &Trace, selection: &Selection) -> Vec<FileUse> {
    rows(&AnalysisContext::new(trace, selection))
}

fn rows(context: &AnalysisContext<'_>) -> Vec<FileUse> {
    let trace = context.trace;
    let by_process = context.selection.group_by == Some(GroupBy::Process);
    let mut known: FxHashMap<(u32, usize), usize> = FxHashMap::default();
    let mut sums: Vec<Sums> = Vec::new();
    // A process has its sockets apart.
    let on_sockets = if by_process { Vec::new() } else { socket_calls(context) };
    let calls = || context.get::<Vec<IoCall>>().iter().chain(&on_sockets);
    for call in calls() {
        let group = if by_process { call.process.index() } else { call.event.file.index() };
        let at = *known.entry((call.rank, group)).or_insert(sums.len());
        if at == sums.len() {
            sums.push(Sums::of(call, by_process));
        }
        sums[at].add(call);
    }
    if counts_sockets(context.selection) {
        let used_sockets = |(_, process): &(usize, &Process)| {
            process.sockets.is_some_and(has_moved) && context.selection.has_rank(process.rank)
        };
        for (at, process) in trace.processes.iter().enumerate().filter(used_sockets) {
            if !known.contains_key(&(process.rank, at)) {
                sums.push(Sums::without_calls(process.rank, None, Some(ProcessId::from_index(at))));
            }
        }
    }
    let mut rows: Vec<FileUse> = sums.into_iter().map(Sums::row).collect();
    let helpers = helpers(trace);
    for row in &mut rows {
        row.format = row.file.and_then(|file| format_of(trace.strings.get(file), &trace.strings));
        row.is_helper = row.process.map(|process| helpers[process.index()]);
        row.sockets = row.process.and_then(|process| trace.processes[process.index()].sockets);
    }
    let name = |row: &FileUse| row.file.map(|file| trace.strings.get(file));
    rows.sort_by(|a, b| {
        (a.rank, Reverse(a.total_ns)).cmp(&(b.rank, Reverse(b.total_ns))).then_with(|| name(a).cmp(&name(b)))
    });
    assert_eq!(rows.iter().map(|row| row.count).sum::<i64>(), calls().count() as i64, "each call is in one row");
    rows
}

fn has_moved(sockets: Sockets) -> bool {
    sockets.network.count > 0 || sockets.unix.count > 0
}

struct Sums {
    rank: u32,
    file: Option<StringId>,
    process: Option<ProcessId>,
    calls: IoSums,
    requests: RequestSizes,
    processes: Vec<ProcessId>,
    files: Vec<StringId>,
    longest: Option<(SliceId, Span)>,
}

impl Sums {
    fn of(first: &IoCall, by_process: bool) -> Self {
        let file = Some(first.event.file).filter(|file| *file != StringTable::EMPTY && !by_process);
        Self::without_calls(first.rank, file, by_process.then_some(first.process))
    }

    fn without_calls(rank: u32, file: Option<StringId>, process: Option<ProcessId>) -> Self {
        Self {
            rank,
            file,
            process,
            calls: IoSums::default(),
            requests: RequestSizes::default(),
            processes: Vec::new(),
            files: Vec::new(),
            longest: None,
        }
    }

    fn add(&mut self, call: &IoCall) {
        let IoCall { event, process, span, .. } = *call;
        self.calls.add(call);
        self.requests.add(call);
        let order = |span: Span| (Reverse(span.duration_ns()), span.start_ns);
        if self.longest.is_none_or(|(_, longest)| order(span) < order(longest)) {
            self.longest = Some((event.slice, span));
        }
        // Calls come thread by thread, so that most repeat what the one before said.
        if self.processes.last() != Some(&process) {
            self.processes.push(process);
        }
        if self.process.is_some() && self.files.last() != Some(&event.file) {
            self.files.push(event.file);
        }
    }

    fn row(mut self) -> FileUse {
        self.processes.sort_unstable();
        self.processes.dedup();
        self.files.sort_unstable();
        self.files.dedup();
        let files = self.files.iter().filter(|file| **file != StringTable::EMPTY).count() as i64;
        let IoSums { reads, writes, count, errors, opens, page_faults, total_ns, .. } = &self.calls;
        FileUse {
            rank: self.rank,
            file: self.file,
            format: None,
            process: self.process,
            is_helper: None,
            files: self.process.map(|_| files),
            processes: self.processes.len() as i64,
            count: *count,
            errors: *errors,
            opens: *opens,
            page_faults: *page_faults,
            reads: reads.count,
            writes: writes.count,
            others: self.calls.others(),
            unsized_count: reads.count - reads.sized + writes.count - writes.sized,
            read_bytes: reads.bytes(),
            write_bytes: writes.bytes(),
            read_asked_bytes: reads.asked_bytes(),
            write_asked_bytes: writes.asked_bytes(),
            sequential_ratio: self.calls.sequential_ratio(),
            metadata_ratio: self.calls.metadata_ratio(),
            metadata_ns_ratio: self.calls.metadata_ns_ratio(),
            total_ns: *total_ns,
            read_ns: reads.ns,
            write_ns: writes.ns,
            read_bytes_per_s: reads.bytes_per_s(),
            write_bytes_per_s: writes.bytes_per_s(),
            request_bytes_min: self.requests.min(),
            request_bytes_median: self.requests.median(),
            request_bytes_max: self.requests.max(),
            sockets: None,
            longest: self.longest.map(|(slice, _)| slice),
        }
    }
}

/// For each process whether another one of its rank started it.
pub(crate) fn helpers(trace: &Trace) -> Vec<bool> {
    let known: FxHashSet<(u32, i64)> =
        trace.processes.iter().filter_map(|process| Some((process.rank, process.pid?))).collect();
    let is_helper = |process: &Process| process.parent_pid.is_some_and(|pid| known.contains(&(process.rank, pid)));
    trace.processes.iter().map(is_helper).collect()
}

pub(crate) const ANALYSIS: Analysis = Analysis {
    options: Options { group_by: &[GroupBy::File, GroupBy::Process], ..Options::NONE },
    ..Analysis::of(outcome)
}
.needing(Needs::EachRankKept);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    Outcome::without_coverage(context, &rows(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io_calls::tests::with_calls;
    use proptest::prelude::*;
    use stepscope_trace::{IoAction, IoLayer, SocketSums};

    /// Rows as `rank/file calls=opens+reads+writes+others bytes read/written in time read/written`.
    fn lines(trace: &Trace, selection: Selection) -> Vec<String> {
        let shown = |value: Option<i64>| value.map_or("-".into(), |value| value.to_string());
        let line = |row: &FileUse| {
            let FileUse { rank, count, opens, reads, writes, others, .. } = row;
            let file = row.file.map_or("-", |file| trace.strings.get(file));
            let (read, written) = (shown(row.read_bytes), shown(row.write_bytes));
            let us = [row.total_ns, row.read_ns, row.write_ns].map(|ns| ns / 1_000);
            format!(
                "{rank}/{file} {count}={opens}+{reads}+{writes}+{others} {read}/{written}B {}={}/{}us",
                us[0], us[1], us[2]
            )
        };
        io_files(trace, &selection).iter().map(line).collect()
    }

    const JOB: &str = "rank 0 step    0000000011111
                       rank 0 label 1 aaaaaaaabbb...
                       rank 0 io 1    orr.wwxr..R.w.
                       rank 1 io 7    c.rrr.........";

    #[test]
    fn a_file_has_its_calls_bytes_and_times() {
        let trace = with_calls(JOB);
        let expected =
            ["0/a 5=1+2+1+1 300/200B 7=3/2us", "0/b 1=0+1+0+0 -/0B 1=1/0us", "0/file 1=0+0+1+0 0/100B 1=0/1us"];
        assert_eq!(lines(&trace, Selection { ranks: 0.into(), ..Selection::default() }), expected);
        assert_eq!(lines(&trace, Selection::default())[3..], ["1/file 2=0+1+0+1 300/0B 4=3/0us"]);
        let second = Selection { ranks: 0.into(), step: Some(1), ..Selection::default() };
        assert_eq!(lines(&trace, second), [expected[1], expected[2]]);
    }

    #[test]
    fn bandwidth_and_sizes_are_of_what_says_its_bytes() {
        let trace = with_calls("rank 0 io 1 rrr.r.R.ww|ww.RRRRR");
        let row = &io_files(&trace, &Selection::default())[0];
        assert_eq!((row.read_bytes, row.read_bytes_per_s, row.unsized_count), (Some(400), Some(100_000_000), 2));
        assert_eq!((row.write_bytes, row.write_bytes_per_s), (Some(400), Some(100_000_000)));
        let sizes = (row.request_bytes_min, row.request_bytes_median, row.request_bytes_max);
        assert_eq!(sizes, (Some(100), Some(200), Some(300)));
        assert_eq!(row.longest.map(|slice| trace.slices.start_ns[slice.index()]), Some(13_000));
        let nothing = &io_files(&with_calls("rank 0 io 1 R"), &Selection::default())[0];
        assert_eq!((nothing.read_bytes, nothing.write_bytes, nothing.read_bytes_per_s), (None, Some(0), None));
        assert_eq!(nothing.request_bytes_median, None);
    }

    #[test]
    fn page_faults_are_reads_of_unknown_size() {
        let mut trace = with_calls("rank 0 io 1 rR|Rc");
        trace.io[1..].iter_mut().for_each(|event| event.layer = IoLayer::PageFault);
        let row = &io_files(&trace, &Selection::default())[0];
        assert_eq!((row.reads, row.page_faults, row.unsized_count, row.others), (3, 2, 2, 1));
        assert_eq!(row.read_bytes, Some(100));
    }

    #[test]
    fn files_have_formats_and_processes_do_not() {
        let mut trace = with_calls("rank 0 io 1 r.r");
        trace.io[0].file = trace.strings.intern("/data/a.parquet");
        let formats = |group_by| {
            let rows = io_files(&trace, &Selection { group_by, ..Selection::default() });
            rows.iter().map(|row| row.format).collect::<Vec<_>>()
        };
        assert_eq!(formats(None), [Some("parquet"), None]);
        assert_eq!(formats(Some(GroupBy::Process)), [None]);
    }

    #[test]
    fn a_call_that_moved_nothing_is_no_request() {
        let mut trace = with_calls("rank 0 io 1 rr.r");
        trace.io[1].bytes = Some(0);
        let row = &io_files(&trace, &Selection::default())[0];
        assert_eq!((row.reads, row.unsized_count, row.request_bytes_min), (2, 0, Some(200)));
    }

    #[test]
    fn errors_jumps_and_what_was_asked_for_are_counted() {
        let mut trace = with_calls("rank 0 io 1 o|r|r|rR|ww|c|c");
        for (at, event) in trace.io.iter_mut().filter(|event| event.action == IoAction::Read).enumerate() {
            event.offset = Some([0, 100, 0, 100][at]);
        }
        // The last read asks for more than there is; the last call fails.
        (trace.io[4].bytes, trace.io[4].asked_bytes) = (Some(0), Some(500));
        trace.io.last_mut().expect("a call").errno = Some(stepscope_trace::IoEvent::UNKNOWN_ERROR);
        let row = &io_files(&trace, &Selection::default())[0];
        assert_eq!((row.count, row.errors, row.others), (8, 1, 2));
        assert_eq!((row.read_bytes, row.read_asked_bytes), (Some(300), Some(800)));
        assert_eq!((row.write_bytes, row.write_asked_bytes), (Some(200), Some(200)));
        assert_eq!(row.sequential_ratio, Some(2.0 / 3.0), "one of three begins elsewhere");
        assert_eq!((row.metadata_ratio, row.metadata_ns_ratio), (Some(3.0 / 8.0), Some(3.0 / 9.0)));
    }

    #[test]
    fn processes_and_what_they_are() {
        let mut trace = with_calls("rank 0 label 1 aabb.\nrank 0 io 1 r.r.r\nrank 1 io 1 rr..");
        // What was drawn as another rank becomes a worker of the first.
        (trace.processes[0].pid, trace.processes[1].pid) = (Some(7), Some(8));
        (trace.processes[1].rank, trace.processes[1].parent_pid) = (0, Some(7));
        let selection = Selection { group_by: Some(GroupBy::Process), ..Selection::default() };
        let rows = io_files(&trace, &selection);
        let found = |row: &FileUse| (row.process.map(|id| helpers(&trace)[id.index()]), row.files, row.count);
        assert_eq!(rows.iter().map(found).collect::<Vec<_>>(), [(Some(false), Some(3), 3), (Some(true), Some(1), 1)]);
        let files = io_files(&trace, &Selection::default());
        let found = |row: &FileUse| (row.file.map(|file| trace.strings.get(file)), row.processes);
        assert_eq!(files.iter().map(found).collect::<Vec<_>>(), [(Some("file"), 2), (Some("a"), 1), (Some("b"), 1)]);
    }

    #[test]
    fn sockets_are_of_processes_and_of_all_of_the_time() {
        let mut trace = with_calls("rank 0 step 00112\nrank 0 io 1 r.r.r\nrank 1 io 1 rr..");
        let network = SocketSums { count: 3, received_bytes: 100, sent_bytes: 10 };
        trace.processes[0].sockets = Some(Sockets { network, unix: SocketSums::default() });
        let selection = Selection { group_by: Some(GroupBy::Process), ..Selection::default() };
        let rows = io_files(&trace, &selection);
        assert_eq!(rows.iter().map(|row| row.sockets.map(|of| of.network)).collect::<Vec<_>>(), [Some(network), None]);
        assert!(counts_sockets(&selection) && !counts_sockets(&Selection { step: Some(1), ..selection }));
        assert!(!counts_sockets(&Selection::default()));
        assert!(io_files(&trace, &Selection::default()).iter().all(|row| row.sockets.is_none()));
    }

    #[test]
    fn a_process_that_used_sockets_alone_has_a_row() {
        let mut trace = with_calls("rank 0 io 1 r.r\nrank 1 label 1 aaa\nrank 2 label 1 aaa");
        let (moved, nothing) = (SocketSums { count: 3, received_bytes: 100, sent_bytes: 10 }, SocketSums::default());
        trace.processes[1].sockets = Some(Sockets { network: nothing, unix: moved });
        trace.processes[2].sockets = Some(Sockets { network: nothing, unix: nothing });
        let selection = Selection { group_by: Some(GroupBy::Process), ..Selection::default() };
        let of = |selection: &Selection| {
            let row = |row: &FileUse| (row.rank, row.count, row.processes, row.sockets.map(|of| of.unix.count));
            io_files(&trace, selection).iter().map(row).collect::<Vec<_>>()
        };
        assert_eq!(of(&selection), [(0, 2, 1, None), (1, 0, 0, Some(3))]);
        assert_eq!(of(&Selection { ranks: 0.into(), ..selection.clone() }), [(0, 2, 1, None)]);
        assert_eq!(of(&Selection { window: Some(Span::new(0, 1)), ..selection }).len(), 1);
        assert_eq!(of(&Selection::default()).len(), 1);
    }

    proptest! {
        #[test]
        fn files_and_processes_sum_to_the_same(
            label in "[.abc|]{25}", calls in "[.rwRWoc|]{25}", others in "[.rwRWoc|]{25}", step in prop::option::of(0_i64..2),
        ) {
            let steps = format!("{}{}", "0".repeat(13), "1".repeat(12));
            let trace = with_calls(&format!(
                "rank 0 step {steps}\nrank 0 label 1 {label}\nrank 0 io 1 {calls}\nrank 0 io 2 {others}"
            ));
            let sums = |group_by| {
                let rows = io_files(&trace, &Selection { group_by, step, ..Selection::default() });
                let parts = |row: &FileUse| {
                    assert_eq!(row.count, row.opens + row.reads + row.writes + row.others);
                    assert!(row.total_ns >= row.read_ns + row.write_ns);
                    let bytes = [row.read_bytes, row.write_bytes].map(|bytes| bytes.unwrap_or(0));
                    let asked = [row.read_asked_bytes, row.write_asked_bytes].map(|bytes| bytes.unwrap_or(0));
                    [
                        row.count, row.opens, row.reads, row.writes, row.total_ns, bytes[0], bytes[1], asked[0], asked[1],
                        row.unsized_count,
                    ]
                };
                rows.iter().map(parts).fold([0; 10], |sum, row| std::array::from_fn(|at| sum[at] + row[at]))
            };
            prop_assert_eq!(sums(None), sums(Some(GroupBy::Process)));
        }
    }
}
