//! Calls on files. What a process does with files is recorded apart from the rest, into a capture of its own: here both
//! become one process.

use super::processes::process_key;
use super::{AlignedCapture, metadata_value, unseen_io};
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use stepscope_base::{StringId, StringTable};
use stepscope_capture::io::{IoAction as Does, IoLayer as Of, UNKNOWN_ERROR};
use stepscope_capture::{Capture, IoCall};
use stepscope_trace::{
    FindingCode, IoAction, IoEvent, IoLayer, ProcessId, SliceKind, SocketSums, Sockets, TraceBuilder, TrackId,
};

/// Whether calls on files alone are in it.
pub(super) fn is_of_files(capture: &Capture) -> bool {
    metadata_value(capture, "recorder") == Some("files")
}

/// The processes of a run so far, and the tracks of their threads by the system's number.
#[derive(Default)]
pub(super) struct KnownProcesses {
    known: BTreeMap<(super::ProcessKey, u64), (ProcessId, BTreeMap<u64, TrackId>)>,
}

impl KnownProcesses {
    /// The process and the tracks that calls of a capture of files are of, when another capture is of the same.
    pub(super) fn of(&self, capture: &Capture) -> Option<(ProcessId, &BTreeMap<u64, TrackId>)> {
        let (process, tracks) = self.known.get(&identity(capture)).filter(|_| is_of_files(capture))?;
        Some((*process, tracks))
    }

    /// Takes in a process; `tracks` are those of the capture's threads.
    pub(super) fn learn(&mut self, capture: &Capture, process: ProcessId, tracks: &BTreeMap<u32, TrackId>) {
        let tid = |ordinal: &u32| capture.threads[*ordinal as usize].tid;
        let (_, known) = self.known.entry(identity(capture)).or_insert_with(|| (process, BTreeMap::new()));
        known.extend(tracks.iter().map(|(ordinal, track)| (tid(ordinal), *track)));
    }
}

fn identity(capture: &Capture) -> (super::ProcessKey, u64) {
    (process_key(capture, capture.process.pid), capture.process.start_ticks)
}

impl AlignedCapture<'_> {
    /// Turns what was not recorded of files into findings, and adds what was counted alone.
    fn report_io(&self, process: ProcessId, builder: &mut TraceBuilder) {
        let (capture, findings) = (self.capture, &mut builder.findings);
        let who = || {
            format!("{} (pid {})", metadata_value(capture, "process_name").unwrap_or("process"), capture.process.pid)
        };
        let faults = [
            ("page_faults_refused", FindingCode::PageFaultsNotRecorded),
            ("page_faults_sampled", FindingCode::PageFaultsSampled),
        ];
        for (key, code) in faults {
            if let Some(reason) = metadata_value(capture, key) {
                findings.add(code, || format!("{}: {reason}", who()));
            }
        }
        let lost: u64 = metadata_value(capture, "page_faults_lost").and_then(|lost| lost.parse().ok()).unwrap_or(0);
        if lost > 0 {
            findings.add(FindingCode::PageFaultsLost, || format!("{}: {lost}", who()));
            findings.add_count(FindingCode::PageFaultsLost, lost - 1);
        }
        for program in metadata_value(capture, "io_programs_not_seen").into_iter().flat_map(str::lines) {
            findings.add(FindingCode::IoProgramsNotSeen, || format!("{}: {program}", who()));
        }
        if let Some((refused, text)) = metadata_value(capture, "io_refused").and_then(refused_of) {
            findings.add(FindingCode::IoCallsRefused, || format!("{}: {text}", who()));
            findings.add_count(FindingCode::IoCallsRefused, refused - 1);
        }
        // What is listed was selected before, and of a ring the first calls may have been evicted.
        if !self.is_listed && capture.ring.is_none() {
            unseen_io::report(capture, &who, findings);
            let sockets = metadata_value(capture, "io_sockets").and_then(sockets_of);
            sockets.into_iter().for_each(|sockets| builder.add_sockets(process, sockets));
        }
    }

    pub(super) fn add_io(&self, process: ProcessId, tracks: &BTreeMap<u32, TrackId>, builder: &mut TraceBuilder) {
        self.report_io(process, builder);
        let files: Vec<StringId> = self.capture.files.iter().map(|path| builder.strings.intern(path)).collect();
        let path = |file: Option<u32>| file.and_then(|file| files.get(file as usize)).copied();
        for call in &self.capture.io {
            let name = builder.strings.intern(call.function.name());
            let (start_ns, dur_ns) = self.align(call.start_ns, call.end_ns);
            let slice = builder.add_slice(tracks[&call.thread], SliceKind::Io, name, start_ns, dur_ns);
            let (layer, action) = (layer(call), action(call));
            let file = path(call.file).unwrap_or(StringTable::EMPTY);
            let IoCall { bytes, offset, .. } = *call;
            // What is not said apart is what was moved.
            let asked_bytes = call.asked_bytes.or(bytes);
            let other_file = path(call.other_file).unwrap_or(StringTable::EMPTY);
            // What is not said there is not said here, and by the same number.
            let errno = NonZeroU16::new(call.errno);
            builder.add_io_event(IoEvent { slice, layer, action, file, other_file, bytes, asked_bytes, offset, errno });
        }
    }
}

/// Calls that were not recorded for lack of room: how many, and which.
fn refused_of(text: &str) -> Option<(u64, String)> {
    const WHAT: [&str; 3] = [
        "calls on files whose paths there was no room for",
        "files opened while too many were open",
        "calls of signal handlers during another call",
    ];
    let counts: Vec<u64> = text.split(' ').map(|count| count.parse().ok()).collect::<Option<_>>()?;
    let counts = counts.iter().zip(WHAT).filter(|(count, _)| **count > 0);
    let texts: Vec<String> = counts.clone().map(|(count, what)| format!("{count} {what}")).collect();
    let sum = counts.fold(0, |sum: u64, (count, _)| sum.saturating_add(*count));
    (sum > 0).then(|| (sum, texts.join(", ")))
}

/// Calls, bytes received and sent, over the network and over Unix sockets.
fn sockets_of(text: &str) -> Option<Sockets> {
    let mut numbers =
        text.split(' ').map(|number| number.parse::<u64>().ok().map(|number| number.min(i64::MAX as u64)));
    let mut next = || numbers.next().flatten().map(|number| number as i64);
    let mut sums = || Some(SocketSums { count: next()?, received_bytes: next()?, sent_bytes: next()? });
    Some(Sockets { network: sums()?, unix: sums()? })
}

const _: () = assert!(UNKNOWN_ERROR == IoEvent::UNKNOWN_ERROR.get());

fn layer(call: &IoCall) -> IoLayer {
    match call.function.layer() {
        Of::Posix => IoLayer::Posix,
        Of::Stdio => IoLayer::Stdio,
        Of::MpiIo => IoLayer::MpiIo,
        Of::Hdf5 => IoLayer::Hdf5,
        Of::PageFault => IoLayer::PageFault,
        Of::Net => IoLayer::Net,
    }
}

fn action(call: &IoCall) -> IoAction {
    match call.function.action() {
        Does::Read => IoAction::Read,
        Does::Write => IoAction::Write,
        Does::Open => IoAction::Open,
        Does::Metadata => IoAction::Metadata,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_said_in_words() {
        let of = |text| refused_of(text).map(|(count, text)| format!("{count}: {text}"));
        assert_eq!(of("7 0 0").as_deref(), Some("7: 7 calls on files whose paths there was no room for"));
        let both = "2 files opened while too many were open, 3 calls of signal handlers during another call";
        assert_eq!(of("0 2 3"), Some(format!("5: {both}")));
        assert!(["", "0 0 0", "x", "1 2 -3"].map(of).iter().all(Option::is_none));
    }

    #[test]
    fn sums_of_sockets_are_six_numbers() {
        let of = |count, received_bytes, sent_bytes| SocketSums { count, received_bytes, sent_bytes };
        let sockets = Sockets { network: of(1, 2, 3), unix: of(4, 5, i64::MAX) };
        assert_eq!(sockets_of(&format!("1 2 3 4 5 {}", u64::MAX)), Some(sockets));
        for text in ["", "1 2 3 4 5", "1 2 3 4 5 x", "1 2 -3 4 5 6", "1  2 3 4 5 6"] {
            assert_eq!(sockets_of(text), None, "{text}");
        }
    }
}
