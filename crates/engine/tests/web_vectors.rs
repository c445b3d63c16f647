//! The pages print numbers letter for letter as the command line does. `web/src/format/vectors.tsv` holds cells as this
//! code prints them, and the tests of `web/` compare theirs with it; here it is compared with the code.
//! `STEPSCOPE_WRITE_VECTORS=1` writes it anew.

use std::fmt::Write;
use std::path::PathBuf;
use stepscope_engine::report::class_words;
use stepscope_engine::{Column, Unit, format_cell};

const UNITS: [(&str, Unit); 6] = [
    ("ns", Unit::Nanoseconds),
    ("bytes", Unit::Bytes),
    ("bytes_per_s", Unit::BytesPerSecond),
    ("count", Unit::Count),
    ("ratio", Unit::Ratio),
    ("plain", Unit::Plain),
];
const CLASSES: [&str; 13] = [
    "kernel",
    "comm",
    "memcpy",
    "memset",
    "runtime",
    "dataloader",
    "io",
    "cpu",
    "other",
    "compute",
    "exposed_comm",
    "exposed_copy",
    "idle",
];

/// Numbers on both sides of every limit: of units, of digits shown, and half-way between two results.
fn integers() -> Vec<i64> {
    let mut values = vec![i64::MIN, i64::MAX, (1 << 53) - 1, 1 << 53, (1 << 53) + 1];
    let decimal = [1, 1_000, 1_000_000, 1_000_000_000, 1_000_000_000_000, 3_600_000_000_000];
    let sizes = decimal.into_iter().chain([1 << 10, 1 << 20, 1 << 30, 1 << 40]);
    for size in sizes {
        let eighths = (1..=16).map(|eighths| size / 8 * eighths);
        let limits = [999, 9_994, 9_995, 99_949, 99_950, 999_500];
        let near = limits.iter().map(|thousandths| size / 1_000 * thousandths);
        values.extend(eighths.chain(near).flat_map(|value| [value - 1, value, value + 1]));
    }
    let mut state = 1_u64;
    for bits in (0..4).flat_map(|_| 1..=63) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        values.push((state >> (64 - bits)) as i64);
    }
    let negative: Vec<i64> = values.iter().filter_map(|value| value.checked_neg()).collect();
    values.extend(negative);
    values.sort_unstable();
    values.dedup();
    values
}

/// Fractions, among them those that lie exactly between two results.
fn fractions() -> Vec<f64> {
    let sixteenths = (0..64).map(|sixteenths| f64::from(sixteenths) / 16.0);
    let thousandths = (0..=1_000).step_by(7).map(|thousandths| f64::from(thousandths) / 1_000.0);
    let ties = (0..=40).map(|tie| f64::from(tie) / 40.0 + 0.00125);
    let positive: Vec<f64> = sixteenths.chain(thousandths).chain(ties).chain([1e-9, 123_456.789, 1e15]).collect();
    positive.iter().flat_map(|value| [*value, -value]).collect()
}

fn vectors() -> String {
    let mut text = String::new();
    for (name, unit) in UNITS {
        match unit {
            Unit::Ratio | Unit::Plain => {
                let values = fractions();
                let column = Column::new("x", unit, "", values.iter().copied().map(Some).collect());
                for (row, value) in values.iter().enumerate() {
                    let _ = writeln!(text, "{name}\t{value:?}\t{}", format_cell(&column, row));
                }
            }
            _ => {
                let values = integers();
                let column = Column::new("x", unit, "", values.iter().copied().map(Some).collect());
                for (row, value) in values.iter().enumerate() {
                    let _ = writeln!(text, "{name}\t{value}\t{}", format_cell(&column, row));
                }
            }
        }
    }
    let missing = Column::new("x", Unit::Text, "", vec![None::<&str>]);
    let _ = writeln!(text, "text\tnull\t{}", format_cell(&missing, 0));
    let flags = Column::new("x", Unit::Flag, "", vec![Some(true), Some(false)]);
    for (row, flag) in ["true", "false"].iter().enumerate() {
        let _ = writeln!(text, "flag\t{flag}\t{}", format_cell(&flags, row));
    }
    for class in CLASSES {
        let _ = writeln!(text, "class\t{class}\t{}", class_words(class));
    }
    text
}

#[test]
fn what_the_pages_are_compared_with_is_what_this_code_prints() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../web/src/format/vectors.tsv");
    if std::env::var_os("STEPSCOPE_WRITE_VECTORS").is_some() {
        std::fs::write(&path, vectors()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    let differs = written.lines().zip(vectors().lines().map(str::to_string)).find(|(old, new)| old != new);
    assert_eq!(differs, None, "STEPSCOPE_WRITE_VECTORS=1 writes the file anew");
    assert_eq!(written.len(), vectors().len());
}
