//! Statements that the input or a result is doubtful or incomplete. Nothing is dropped, repaired or left unlinked
//! without one.

/// How much a finding matters to the numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Worth knowing; no number is wrong.
    Info,
    /// Some numbers may be incomplete or doubtful.
    Suspect,
    /// Data is missing or contradictory: some numbers are wrong by an unknown amount.
    Severe,
}

impl Severity {
    /// The severity's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Suspect => "suspect",
            Self::Severe => "severe",
        }
    }
}

macro_rules! finding_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $severity:ident, $says:literal;)*) => {
        /// What can be found. The code is stable; the sentence is for people.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum FindingCode { $(#[doc = $says] $name,)* }

        impl FindingCode {
            /// Every code.
            pub const ALL: &[FindingCode] = &[$(Self::$name,)*];

            /// The stable code in JSON and tables.
            pub fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// How much it matters.
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }

            /// One sentence for people.
            pub fn says(self) -> &'static str {
                match self { $(Self::$name => $says,)* }
            }
        }
    };
}

finding_codes! {
    UnlinkedDeviceEvent = "import.unlinked_device_event", Suspect,
        "device events without a launch record: counted everywhere, but attributed to no operator";
    OverlappingSlices = "import.overlapping_slices", Info,
        "slices overlap others of their track without nesting: kept on overflow lanes";
    NegativeDuration = "import.negative_duration", Suspect,
        "events with a negative duration: kept with duration 0";
    MissingDuration = "import.missing_duration", Suspect,
        "complete events without a duration: kept with duration 0";
    UnreadableEvent = "import.unreadable_event", Severe,
        "events whose time or shape cannot be read: left out";
    TruncatedInput = "import.truncated_input", Severe,
        "the input ends in the middle: everything before the cut was read";
    RepairedText = "import.repaired_text", Info,
        "names with invalid UTF-8, raw control characters or invalid escapes: repaired";
    RepairedNumber = "import.repaired_number", Info,
        "values that are not JSON numbers (N/A, NaN, Infinity): read as missing";
    AmbiguousCorrelation = "import.ambiguous_correlation", Info,
        "several API calls share a correlation id: the outermost that can launch was taken";
    UnmatchedBegin = "import.unmatched_begin", Suspect,
        "begin events without an end, or ends without a begin: begins reach to the end of the trace, ends are left out";
    UnknownPhase = "import.unknown_phase", Info,
        "events of a phase that carries no slice, instant or flow: left out";
    UnsupportedEvent = "import.unsupported_event", Info,
        "counters, samples and other rows that no analysis reads yet: left out";
    UnlinkedFlow = "import.unlinked_flow", Info,
        "flow arrows whose ends touch no slice: left out";
    UnclosedList = "import.unclosed_list", Info,
        "files whose list of rows has no closing bracket, as a killed job leaves them and some releases always do: read to their end";
    RepeatedEvent = "import.repeated_event", Info,
        "rows written more than once, as forked workers repeat what their parent had not yet written: counted once";
    AmbiguousFile = "import.ambiguous_file", Suspect,
        "calls whose file is given by a hash of several files: the one named last was taken";
    UnnamedFile = "import.unnamed_file", Suspect,
        "calls whose file is given by a hash that is not listed: their file is not known";
    AggregatedEvents = "import.aggregated_events", Suspect,
        "events were added up while recording: they are counters and not slices";
    InferredRank = "import.inferred_rank", Info,
        "processes given by a number that no process of theirs has: it was taken as their rank";
    RenumberedDevice = "import.renumbered_device", Info,
        "the only device that is described has another number than the only one that worked: taken for the same";
    FileLeftOut = "import.file_left_out", Suspect,
        "files that cannot be read: left out";
    OtherJob = "import.other_job", Suspect,
        "jobs whose files lie beside those of the one that was opened, which has the most ranks: left out";
    RankFromName = "import.rank_from_name", Info,
        "files that do not say which rank they are of: it was taken from their names";
    RankUnknown = "import.rank_unknown", Suspect,
        "files that say nowhere which rank they are of: taken for rank 0";
    RankTwice = "import.rank_twice", Suspect,
        "files of the same time that claim the same rank: its numbers are of both";
    RankMissing = "import.rank_missing", Info,
        "ranks of the job without a file: nothing is known of them";
    ClocksUnrelated = "import.clocks_unrelated", Suspect,
        "files whose clock is arbitrary: all ranks were placed as if they had begun together";
    ClocksCorrected = "import.clocks_corrected", Info,
        "clocks of hosts that were corrected, since ranks leave a collective together: times of other ranks are comparable";
    ClocksContradict = "import.clocks_contradict", Suspect,
        "collectives that one rank leaves before another has come: the clocks of their hosts differ";
    UnknownDeviceWork = "import.unknown_device_work", Suspect,
        "device activity of an unknown category: shown, but counted in no number about devices";
    NoDeviceEvents = "import.no_device_events", Info,
        "no device events: device numbers are not available for this input";
    ForeignObject = "import.foreign_object", Info,
        "a pickle refers to objects of classes, which are never created: left out, with their contents";
    MemoryBeforeHistory = "import.memory_before_history", Info,
        "blocks that were allocated before the memory history began: placed at its start, since their time is not known";
    MemoryHistoryDropped = "import.memory_history_dropped", Suspect,
        "the memory history lacks allocations of blocks that were allocated while it was recorded: its oldest entries were dropped (`max_entries`)";
    MemoryContradicted = "import.memory_contradicted", Suspect,
        "the memory history does not lead to the state in the snapshot: corrected at its end";
    MemoryWithoutTimes = "import.memory_without_times", Suspect,
        "the memory history has no times, as in older releases of PyTorch: its entries are in order and placed 1 µs apart";
    MemoryWithoutAddresses = "import.memory_without_addresses", Suspect,
        "allocations and frees have no addresses, as older releases of PyTorch wrote them: which free ends which allocation is not known";
    MemoryTimesUnordered = "import.memory_times_unordered", Info,
        "entries of the memory history without a time, or out of order: placed at the time of the entry before them";
    StackCut = "import.stack_cut", Info,
        "call stacks are very long: cut, or left out where there are very many";
    ProcessKilled = "capture.process_killed", Suspect,
        "a recorded process ended without closing its capture: everything up to its last complete record is here";
    UnfinishedSlices = "capture.unfinished_slices", Info,
        "slices were still open when recording ended: they reach to the last recorded moment of their process";
    DroppedRecords = "capture.dropped_records", Severe,
        "records were dropped while recording";
    DiskFull = "capture.disk_full", Severe,
        "the disk was full while recording: recording stopped, the program continued";
    DamagedSegment = "capture.damaged_segment", Severe,
        "stretches of a capture cannot be decoded: the records before them were read";
    CaptureInStore = "capture.in_store", Severe,
        "captures that were not closed lie in an object store: they are read from a disk only, so copy the run to one";
    HookRefused = "capture.hook_refused", Severe,
        "the PyTorch hook could not be proven safe and was not used: no operators were recorded in these processes";
    FrameworkRefused = "capture.framework_refused", Suspect,
        "a framework is not as the recorder expects: its steps and phases are not known";
    Disturbed = "capture.disturbed", Suspect,
        "settings of the job change what is measured: with them it runs otherwise than without";
    StepFailed = "capture.step_failed", Suspect,
        "steps were ended by an exception: what they had done is in no step, or in the one that follows";
    CollectivesRefused = "capture.collectives_refused", Suspect,
        "where PyTorch keeps the metadata of collectives could not be proven: sizes or groups are not known";
    ProcessRunning = "capture.process_running", Info,
        "processes of this run are still recording: this is what they have written so far";
    OptionNotRecorded = "capture.option_not_recorded", Info,
        "options were requested that this recorder does not support";
    RingWindow = "capture.ring", Info,
        "only the last seconds of a flight recorder are here: earlier records, and ranges that began earlier, were evicted";
    KeptBecause = "capture.kept_because", Info,
        "this is a snapshot of a flight recorder, taken while the job kept running: why, and by which process";
    KeptWindows = "capture.kept_windows", Info,
        "snapshots of the flight recorder were taken: each is a run of its own, in a folder below this one";
    WindowsNotKept = "capture.windows_not_kept", Suspect,
        "snapshots of the flight recorder were requested and not taken: a run has at most 16, or the folder cannot be written";
    ManifestMissing = "capture.manifest_missing", Info,
        "run.json is missing or damaged: everything that was recorded is here, except the command that recorded it";
    SampledSteps = "capture.sampled_steps", Info,
        "only some steps were recorded, as requested: the time between them counts neither as steps nor as idle";
    ProfilerStateRefused = "capture.profiler_state_refused", Suspect,
        "PyTorch's profiler state is not as expected and was not used: neither memory nor ranges of compiled code were recorded in these processes";
    MemoryNotRecorded = "capture.memory_not_recorded", Suspect,
        "another profiler ran: PyTorch reported the memory that its thread used to that profiler alone";
    MemoryTotalTooHigh = "capture.memory_total_too_high", Suspect,
        "memory was recorded with interruptions: PyTorch's count of allocated bytes still includes what was freed in between";
    PageFaultsNotRecorded = "capture.page_faults_not_recorded", Info,
        "the system does not permit counting page faults, or not all of them: what was read through mapped files is not known";
    PageFaultsSampled = "capture.page_faults_sampled", Info,
        "the system does not permit recording each page fault: as many as it counts are recorded, with the thread; which page of a mapped file it was, and when, is found by looking ten times a second";
    PageFaultsLost = "capture.page_faults_lost", Suspect,
        "page faults came faster than they were read, or what was mapped changed too fast: some are missing";
    IoBytesNotSeen = "capture.io_bytes_not_seen", Suspect,
        "the system counted more bytes read or written than calls on files were recorded to move: system calls that go past the C library";
    IoProgramsNotSeen = "capture.io_programs_not_seen", Info,
        "processes began programs that cannot be recorded: what those did with files is not known";
    IoCallsRefused = "capture.io_calls_refused", Suspect,
        "processes used more files than there was room for, or had more open at once: calls on those beyond are not recorded";
    DeviceNotRecorded = "capture.device_not_recorded", Suspect,
        "device activity could not be recorded: why, and in which process";
    DeviceRemarks = "capture.device_remarks", Info,
        "device activity was recorded in part, or not in the usual way: how, and in which process";
    DeviceReportsLost = "capture.device_reports_lost", Severe,
        "activity records were dropped for lack of room: kernels, memcpy, memset or calls are missing";
    DeviceUnknownAfter = "capture.device_unknown_after", Suspect,
        "the process was killed, or a snapshot taken, before the vendor's library delivered all activity records: from when on the device's activity is unknown, which is neither busy nor idle";
    ClockMoved = "capture.clock_moved", Suspect,
        "the time of day of a host moved against its monotonic clock during the run, as when it is set or the host sleeps: times are by the monotonic clock, counted from the time of day when recording began on that host";
    OutOfMemory = "trace.out_of_memory", Suspect,
        "allocations failed for lack of memory: on which device, how often, and when first";
    RepeatedSlices = "trace.repeated_slices", Suspect,
        "slices of the same name and time appear twice on a thread or stream, as when a file is written twice: counted twice";
    DeviceEventBeforeLaunch = "trace.device_event_before_launch", Suspect,
        "device events start before the API call that launched them: the clocks of host and device disagree";
    WaitWithoutEvent = "trace.wait_without_event", Info,
        "waits for an event whose recording is not in the trace: what was waited for is not known";
    WaitOnFutureEvent = "trace.wait_on_future_event", Suspect,
        "waits for an event that was recorded later: the wait was joined with the wrong recording";
    WaitTooShort = "trace.wait_too_short", Suspect,
        "waits for a stream ended while a kernel of it ran that had begun before them: the clocks of host and device disagree";
    CollectiveWithoutMetadata = "trace.collective_without_metadata", Info,
        "calls of collectives have no metadata: their groups are not known, and sizes only where a label has them";
    CollectiveGroupAssumed = "trace.collective_group_assumed", Info,
        "collectives whose process group no rank states: all ranks of the run were taken for it";
    SharedBackwardNumber = "trace.shared_backward_number", Info,
        "several backward nodes share one sequence number: forward and backward may be joined wrongly";
    InferredSteps = "trace.inferred_steps", Info,
        "the job labels no steps: they were inferred from the optimizer, from a server's iterations, or from kernels that repeat";
    RecutSteps = "trace.recut_steps", Info,
        "Lightning's profiler labels steps between forward and backward passes: they were cut anew, at the ends of batches";
    NoSteps = "trace.no_steps", Info,
        "nothing marks steps: the whole trace counts as one";
    IncompleteStep = "trace.incomplete_step", Info,
        "steps cut by the start or the end of recording: left out of averages";
    PartOfTrace = "trace.part", Info,
        "only a time window of the trace was requested: links that leave it are missing";
    UnknownDevice = "analysis.unknown_device", Info,
        "devices whose peak rates are not in the table of devices: no roofline time for what ran on them";
    SettingDiffers = "analysis.setting_differs", Suspect,
        "the compared runs differ in hardware, software or the size of their batches: changes may come from that";
    RunWithoutSteps = "analysis.run_without_steps", Suspect,
        "one of the compared runs has no complete steps: the whole run counts as one";
    OutsideOfSteps = "analysis.outside_of_steps", Info,
        "work belongs to no complete step: it is in no number per step, compare lists it as outside_of_steps";
    RuleNotJudged = "analysis.rule_not_judged", Info,
        "rules of advice whose data the input lacks: their silence means nothing";
}

/// One statement, with how often it applies and a few examples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What was found.
    pub code: FindingCode,
    /// How many times.
    pub count: u64,
    /// The first few cases, for a person to look up.
    pub examples: Vec<String>,
}

/// Findings of a trace or a result; one row a code, in order of code.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings {
    rows: Vec<Finding>,
}

impl Findings {
    const MAX_EXAMPLES: usize = 5;

    /// Counts one case of `code`; `example` is only called while examples are still wanted.
    pub fn add(&mut self, code: FindingCode, example: impl FnOnce() -> String) {
        let row = self.row(code);
        row.count += 1;
        if row.examples.len() < Self::MAX_EXAMPLES {
            row.examples.push(example());
        }
    }

    /// Counts `count` cases of `code` without an example; nothing for 0.
    pub fn add_count(&mut self, code: FindingCode, count: u64) {
        if count > 0 {
            self.row(code).count += count;
        }
    }

    /// Takes over all cases of `other`.
    pub fn extend(&mut self, other: &Findings) {
        for finding in &other.rows {
            let row = self.row(finding.code);
            row.count += finding.count;
            let room = Self::MAX_EXAMPLES.saturating_sub(row.examples.len());
            row.examples.extend(finding.examples.iter().take(room).cloned());
        }
    }

    /// Takes back all cases of `code`, which no longer hold.
    pub fn forget(&mut self, code: FindingCode) {
        self.rows.retain(|row| row.code != code);
    }

    /// The number of cases of `code`.
    pub fn count(&self, code: FindingCode) -> u64 {
        self.rows.iter().find(|row| row.code == code).map_or(0, |row| row.count)
    }

    /// All findings, in order of code.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.rows.iter()
    }

    /// The examples of all findings.
    pub fn examples_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.rows.iter_mut().flat_map(|row| &mut row.examples)
    }

    /// True when nothing was found.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn row(&mut self, code: FindingCode) -> &mut Finding {
        let at = match self.rows.binary_search_by_key(&code, |row| row.code) {
            Ok(at) => at,
            Err(at) => {
                self.rows.insert(at, Finding { code, count: 0, examples: Vec::new() });
                at
            }
        };
        &mut self.rows[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_counted_and_a_few_are_kept() {
        let mut findings = Findings::default();
        (0..9).for_each(|i| findings.add(FindingCode::TruncatedInput, || format!("byte {i}")));
        let mut more = Findings::default();
        more.add(FindingCode::NegativeDuration, || "aten::mm".into());
        more.add_count(FindingCode::TruncatedInput, 2);
        findings.extend(&more);
        let rows: Vec<_> = findings.iter().map(|row| (row.code.code(), row.count, row.examples.len())).collect();
        assert_eq!(rows, [("import.negative_duration", 1, 1), ("import.truncated_input", 11, 5)]);
    }

    #[test]
    fn codes_are_distinct() {
        let mut codes: Vec<_> = FindingCode::ALL.iter().map(|code| code.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), FindingCode::ALL.len());
    }
}
