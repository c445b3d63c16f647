//! Lists that are read in chunks by several threads: as by one, from begin to end.

use super::*;
use crate::input::{SharedFile, SharedText};
use crate::progress::Progress;
use crate::stream::SharedStream;

#[test]
fn why_a_file_cannot_be_read_further_is_told() {
    let events: Vec<String> = (0..500).map(|_| format!("{{{OP}}}")).collect();
    let text = format!("{{\"traceEvents\": [{}]}}", events.join(",\n"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.json");
    std::fs::write(&path, &text).expect("written");
    for broken_from in [100, 5_000, 20_001] {
        let file = stepscope_store::open(&path).expect("opened");
        let mut file = SharedFile::new(file, &Progress::default()).expect("a length");
        file.broken_from = broken_from;
        let source =
            Source { path: &path, name: "t".into(), packing: None, shared: Some(SharedText::File(file.clone())) };
        let trace = read(source, Box::new(file.from(0))).expect("a trace");
        let finding = trace.findings.iter().find(|finding| finding.code == FindingCode::TruncatedInput);
        let expected = format!("Input/output error (os error 5) after {broken_from} bytes");
        assert_eq!(finding.map(|finding| finding.examples.as_slice()), Some([expected].as_slice()));
        assert_eq!(trace.slices.len(), text[..broken_from as usize].matches('}').count());
    }
}

#[test]
fn the_event_behind_a_stray_byte_is_found_wherever_a_chunk_begins() {
    let rows = |count: usize| -> String {
        (0..count).map(|at| format!("{{\"ph\": \"X\", \"name\": \"a\", \"ts\": {at}, \"dur\": 1, \"args\": {{\"x\": [{{\"name\": 1}}]}}}},\n")).collect()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("t.json");
    for before in 0..40 {
        let text = format!("[{}{}\u{c}{}\n{}{{}}]", rows(12), " ".repeat(27 * before), " ".repeat(300), rows(30));
        std::fs::write(&file, &text).expect("written");
        for trace in [crate::open(&file), try_read(text.as_bytes()), read_stream(text.clone().into_bytes())] {
            let trace = trace.expect("a trace");
            assert_eq!((trace.slices.len(), trace.findings.count(FindingCode::UnreadableEvent)), (42, 2), "{before}");
        }
    }
}

/// The same text as a stream that several threads read.
fn read_stream(bytes: Vec<u8>) -> Result<Trace, ImportError> {
    let stream = SharedStream::of(move |writer| writer.read_all(&mut bytes.as_slice()));
    let blocks = Box::new(stream.alone_from(0));
    let shared = Some(SharedText::Stream(stream));
    super::read(Source { path: Path::new("t.json"), name: "t".into(), packing: None, shared }, blocks)
}

#[test]
fn a_long_stream_is_read_by_several_threads_as_it_is_by_one() {
    let row = |at: usize| {
        let filler = "y".repeat(at * 7 % 300);
        format!(
            "{{\"ph\": \"X\", \"name\": \"{filler}\", \"pid\": 1, \"tid\": {}, \"ts\": {at}, \"dur\": 1}},\n",
            at % 3
        )
    };
    let rows: String = (0..12_000).map(row).collect();
    let text = format!("{{\"deviceProperties\": [], \"traceEvents\": [{rows}], \"hostname\": \"box\"}}").into_bytes();
    assert!(text.len() > 15 * crate::window::BLOCK_BYTES);
    let summary = |trace: Trace| format!("{:?} {:?} {:?}", slices(&trace), trace.findings, trace.processes);
    let (stream, alone) = (read_stream(text.clone()).expect("a trace"), try_read(&text).expect("a trace"));
    assert_eq!(alone.slices.len(), 12_000);
    assert!(summary(stream) == summary(alone));
    let cut = text[..text.len() / 2].to_vec();
    let (stream, alone) = (read_stream(cut.clone()).expect("a trace"), try_read(&cut).expect("a trace"));
    assert_eq!(alone.findings.count(FindingCode::TruncatedInput), 1);
    assert!(summary(stream) == summary(alone));
}

proptest! {
    #[test]
    fn chunks_read_by_several_threads_are_one_text(
        rows in prop::collection::vec((0..9usize, 0..400usize), 20..60), broken in prop::option::of((0..6_000usize, any::<u8>())),
    ) {
        let mut text = String::from("{\"traceEvents\": [\n");
        for (at, (kind, filler)) in rows.iter().enumerate() {
            let name = ["a", "b", "{\\\"ph\\\":\\\"X\\\"}", "], "][kind % 4];
            let space = " ".repeat(*filler * usize::from(*kind == 8));
            let args = format!("\"args\": {{\"Sequence number\": {at}, \"x\": [{{\"name\": \"{}\"}}, {{\"name\": 1}}]}}", "y".repeat(*filler));
            text += &format!("{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{name}\", \"pid\": 1, \"tid\": {kind}, \"ts\": {at}.5, \"dur\": 0.25, {args}}},{space}\n");
        }
        text += "], \"hostname\": \"box\"}";
        let mut bytes = text.into_bytes();
        if let Some((at, byte)) = broken {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("t.json");
        std::fs::write(&file, &bytes).expect("written");
        let shown = |result: Result<Trace, ImportError>| match result {
            Ok(trace) => format!("{:?} {:?} {:?} {:?}", slices(&trace), trace.ops, trace.findings, trace.processes),
            Err(error) => error.to_string().split(':').next().unwrap_or_default().to_string(),
        };
        let alone = shown(try_read(&bytes));
        prop_assert_eq!(shown(crate::open(&file)), alone.clone());
        prop_assert_eq!(shown(read_stream(bytes)), alone);
    }
}
