//! Files that older versions wrote are read for good: one of each version is kept in `tests/fixtures/formats`.

use std::collections::BTreeMap;
use std::path::Path;
use stepscope_trace::{SliceKind, Trace};

/// Operators of `train.py` on its main thread, as the Chrome trace of `torch.profiler` has them.
const OPERATORS: [(&str, usize); 22] = [
    ("aten::_to_copy", 6),
    ("aten::add_", 6),
    ("aten::addmm", 3),
    ("aten::as_strided", 21),
    ("aten::copy_", 9),
    ("aten::detach", 6),
    ("aten::empty", 3),
    ("aten::empty_like", 3),
    ("aten::empty_strided", 9),
    ("aten::expand", 6),
    ("aten::fill_", 12),
    ("aten::linear", 3),
    ("aten::mm", 3),
    ("aten::mul", 6),
    ("aten::ones", 3),
    ("aten::ones_like", 3),
    ("aten::resolve_conj", 12),
    ("aten::sum", 9),
    ("aten::t", 12),
    ("aten::to", 6),
    ("aten::transpose", 12),
    ("aten::view", 3),
];

/// What `torch.ones(3).add(1)` does on the second thread: 1 becomes a tensor of floats first.
const ON_SECOND_THREAD: [&str; 8] = [
    "aten::ones",
    "aten::empty",
    "aten::fill_",
    "aten::add",
    "aten::to",
    "aten::_to_copy",
    "aten::empty_strided",
    "aten::copy_",
];

fn opened(name: &str) -> Trace {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/formats").join(name);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("raw")).expect("a folder");
    for entry in std::fs::read_dir(kept).expect("the fixture") {
        let path = entry.expect("an entry").path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match file.strip_suffix(".gz") {
            Some(plain) => {
                let mut unpacked = flate2::read::GzDecoder::new(std::fs::File::open(&path).expect("the capture"));
                let mut written = std::fs::File::create(folder.path().join("raw").join(plain)).expect("a file");
                std::io::copy(&mut unpacked, &mut written).expect("it unpacks");
            }
            None => _ = std::fs::copy(&path, folder.path().join(file)).expect("it copies"),
        }
    }
    stepscope_import::open(folder.path()).expect("it opens")
}

/// How often each name is there, of one kind.
fn counts(trace: &Trace, kind: SliceKind) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for (name, _) in trace.slices.name.iter().zip(&trace.slices.kind).filter(|(_, of)| **of == kind) {
        *counts.entry(trace.strings.get(*name)).or_default() += 1;
    }
    counts
}

#[test]
fn captures_of_version_3() {
    let trace = opened("capture-3");
    let mut expected: BTreeMap<&str, usize> = OPERATORS.into_iter().collect();
    ON_SECOND_THREAD.iter().for_each(|name| *expected.entry(name).or_default() += 1);
    let mut operators = counts(&trace, SliceKind::Op);
    operators.retain(|name, _| name.starts_with("aten::"));
    assert_eq!(operators, expected);
    assert_eq!(counts(&trace, SliceKind::Module), BTreeMap::from([("Doubled", 3), ("linear", 3)]));
    assert_eq!(counts(&trace, SliceKind::Annotation)["forward"], 3);
}
