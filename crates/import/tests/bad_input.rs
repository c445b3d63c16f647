//! Inputs that are made to hurt: a clear error or a finding, in bounded memory. One test, since it looks at the memory of
//! the whole process.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use stepscope_import::open;
use stepscope_trace::FindingCode;

/// The most memory the process ever had, in bytes; `None` where the system does not tell.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

fn file(folder: &Path, name: &str, write: impl FnOnce(&mut dyn Write)) -> PathBuf {
    let path = folder.join(name);
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).expect("a file"));
    write(&mut file);
    file.flush().expect("written");
    path
}

fn repeat(out: &mut dyn Write, text: &str, times: usize) {
    let block = text.repeat(10_000);
    (0..times / 10_000).for_each(|_| out.write_all(block.as_bytes()).expect("written"));
}

fn error(path: &Path) -> String {
    let error = open(path).map(|trace| trace.slices.len()).expect_err("no trace");
    assert!(error.hint().is_some(), "{error}");
    error.to_string()
}

#[test]
fn hostile_inputs_end_soon_and_in_bounded_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let before = peak_bytes();

    let zeros = file(folder, "zeros.json", |out| repeat(out, "0", 200_000_000));
    assert!(error(&zeros).starts_with("expected JSON ('{' or '['), found '0' at byte 0"));

    let long = file(folder, "long.json", |out| {
        out.write_all(b"{\"traceEvents\": [{\"ph\": \"X\", \"ts\": ").expect("written");
        repeat(out, "0", 200_000_000);
        out.write_all(b"}, {\"ph\": \"X\", \"name\": \"kept\", \"ts\": 1, \"dur\": 1}]}").expect("written");
    });
    let trace = open(&long).expect("a trace");
    assert_eq!((trace.slices.len(), trace.findings.count(FindingCode::UnreadableEvent)), (1, 1));

    let deep = file(folder, "deep.json", |out| repeat(out, "[", 10_000_000));
    assert!(error(&deep).contains("a list without an event"));

    let bomb = file(folder, "bomb.json.gz", |out| {
        let mut packed = GzEncoder::new(out, Compression::fast());
        packed.write_all(b"{\"traceEvents\": [").expect("written");
        repeat(&mut packed, "          ", 50_000_000);
        packed.finish().expect("written");
    });
    let trace = open(&bomb).expect("a trace without an event");
    assert_eq!((trace.slices.len(), trace.findings.count(FindingCode::TruncatedInput)), (0, 1));

    let bomb = file(folder, "zeros.gz", |out| {
        let mut packed = GzEncoder::new(out, Compression::fast());
        repeat(&mut packed, "\0\0\0\0\0\0\0\0\0\0", 50_000_000);
        packed.finish().expect("written");
    });
    assert!(error(&bomb).contains("found byte 0x00 at byte 0"));

    if let (Some(before), Some(after)) = (before, peak_bytes()) {
        // An item of a text may be 64 MiB long, and is held twice while its window grows.
        assert!(after - before < 300 << 20, "{} MiB", (after - before) >> 20);
    }
}

#[test]
fn packed_traces_are_found_by_their_content() {
    let text = b"[{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 2}]";
    let folder = tempfile::tempdir().expect("a folder");
    let gzip = |text: &[u8]| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(text).expect("packed");
        packed.finish().expect("packed")
    };
    let zip = |text: &[u8]| {
        let mut packed = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        packed.start_file("readme.txt", zip::write::SimpleFileOptions::default()).expect("packed");
        packed.write_all(b"short").expect("packed");
        packed.start_file("trace.json", zip::write::SimpleFileOptions::default()).expect("packed");
        packed.write_all(text).expect("packed");
        packed.finish().expect("packed").into_inner()
    };
    let zstd = |text: &[u8]| zstd::encode_all(text, 3).expect("packed");
    let members = [gzip(&text[..20]), gzip(&text[20..])].concat();
    let cases = [text.to_vec(), gzip(text), members, zstd(text), zip(text), zip(&gzip(text)), gzip(&zstd(text))];
    for (at, bytes) in cases.iter().enumerate() {
        let path = folder.path().join(format!("case{at}"));
        std::fs::write(&path, bytes).expect("written");
        let trace = open(&path).unwrap_or_else(|error| panic!("case {at}: {error}"));
        assert_eq!((trace.slices.len(), trace.name.as_str()), (1, format!("case{at}").as_str()));
        // Cut in the middle: an error or a finding.
        std::fs::write(&path, &bytes[..bytes.len() - 9]).expect("written");
        if let Ok(trace) = open(&path) {
            assert_eq!(trace.findings.count(FindingCode::TruncatedInput), 1, "case {at}");
        }
    }
}

#[test]
fn everything_that_was_unpacked_before_damage_is_read() {
    const EVENT: &str = r#"{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}"#;
    let text = format!("[{}]", vec![EVENT; 20_000].join(",\n"));
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).expect("packed");
    let packed = packed.finish().expect("packed");
    let folder = tempfile::tempdir().expect("a folder");
    for cut in [packed.len() / 3, packed.len() / 2, packed.len() - 9] {
        let mut before = Vec::new();
        let result = flate2::read::MultiGzDecoder::new(&packed[..cut]).read_to_end(&mut before);
        assert!(result.is_err() && before.len() > 300_000);
        let path = folder.path().join("cut.json.gz");
        std::fs::write(&path, &packed[..cut]).expect("written");
        let trace = open(&path).expect("a trace");
        assert_eq!(trace.slices.len(), before.iter().filter(|byte| **byte == b'}').count(), "cut at {cut}");
        assert_eq!(trace.findings.count(FindingCode::TruncatedInput), 1);
    }
}
