//! Torn, cut and hostile files: what is sound in them is read.

use super::super::{is_dftracer, read};
use super::*;
use proptest::prelude::*;

#[test]
fn torn_rows_and_garbage_cost_themselves_only() {
    let row = |id: i64| {
        format!(
            r#"{{"id":{id},"name":"read","cat":"POSIX","pid":7,"tid":7,"ts":{id},"dur":1,"ph":"X","args":{{"hhash":5692,"ret":1}}}}"#
        )
    };
    let text = [
        "[".to_string(),
        row(1),
        row(2)[..40].to_string() + &row(3),
        "what is this?".into(),
        row(4) + "," + &row(5),
        r#"{"id":6,"name":"start","cat":"dftracer","pid":7,"tid":7,"ts":6,"dur":0,"ph":"X","args":{"cmd":"python;-c;a"#
            .into(),
        r#"b = "c""}}"#.into(),
        row(7).replace("\"ts\":7", "\"ts\":\"soon\""),
        row(8).replace("\"dur\":1", "\"dur\":18446744073709551615"),
        row(9).replace("\"dur\":1", "\"dur\":-4"),
        row(10).replace("\"X\"", "\"Q\""),
        row(11)[..50].into(),
    ]
    .join("\n");
    let trace = trace_of(&text);
    let starts: Vec<_> = trace.slices.ids().map(|id| trace.slices.span(id).start_ns).collect();
    assert_eq!(starts, [0, 2_000, 3_000, 4_000, 8_000]);
    let expected = ["NegativeDuration x1", "UnreadableEvent x5", "TruncatedInput x1", "UnknownPhase x1"];
    assert_eq!(findings(&trace), expected);
}

#[test]
fn a_cut_file_gives_the_rows_before_the_cut() {
    for name in ["wheel-1.0.4.pfw", "wheel-1.0.5.pfw", "wheel-1.0.8.pfw", "wheel-2.2.0/main.pfw"] {
        let bytes = std::fs::read(fixture(name)).expect("a file");
        let mut rows_before = 0;
        for cut in (1..=200).map(|part| bytes.len() * part / 200) {
            let trace = read(Path::new(name), "t".into(), &mut &bytes[..cut]);
            check_sane(&trace);
            let rows = trace.io.len() + trace.instants.len();
            assert!(rows >= rows_before, "{name} cut at {cut}");
            let cuts = trace.findings.count(FindingCode::TruncatedInput);
            let is_between_rows = bytes[..cut].trim_ascii_end().last().is_none_or(|byte| b"}][".contains(byte));
            assert!(cuts == 1 || is_between_rows, "{name} cut at {cut}");
            assert_eq!(trace.findings.count(FindingCode::UnreadableEvent), 0, "{name} cut at {cut}");
            rows_before = rows;
        }
        assert!(rows_before > 60);
    }
}

#[test]
fn flipped_bytes_cost_little() {
    let bytes = std::fs::read(fixture("wheel-1.0.8.pfw")).expect("a file");
    let whole = open_bytes("a", &bytes).expect("a trace").slices.len();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize
    };
    for _ in 0..1_000 {
        let mut damaged = bytes.clone();
        for _ in 0..random() % 3 + 1 {
            let at = random() % damaged.len();
            damaged[at] = random() as u8;
        }
        let trace = read(Path::new("a"), "a".into(), &mut damaged.as_slice());
        check_sane(&trace);
        // Between two damaged quotes lie at most a few rows.
        assert!(trace.slices.len() + 9 >= whole, "{} of {whole}", trace.slices.len());
    }
}

#[test]
fn gzip_of_several_members_and_a_damaged_end() {
    let packed = std::fs::read(fixture("wheel-2.2.0-ns.pfw.gz")).expect("a file");
    let row = br#"{"id":900,"name":"a","cat":"app","type":6,"pid":7,"tid":7,"ts":1795261885268682000,"dur":82,"ph":1,"args":{}}"#;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, row).expect("memory");
    let joined = [packed.as_slice(), &encoder.finish().expect("memory")].concat();
    let rows = open_bytes("a", &packed).expect("a trace").slices.len();
    assert_eq!(open_bytes("a", &joined).expect("a trace").slices.len(), rows + 1);
    let cut = open_bytes("a", &joined[..joined.len() - 20]).expect("a trace");
    assert!(cut.slices.len() >= rows && cut.findings.count(FindingCode::TruncatedInput) > 0);
}

#[test]
fn endless_breakage_ends_soon() {
    for text in [
        "{\"id\":".repeat(1 << 18),
        "{\"id\":[1,\"a\",".repeat(1 << 17),
        "{\"id\":\"".repeat(1 << 18),
        "x".repeat(1 << 22),
    ] {
        check_sane(&trace_of(&text));
    }
}

/// Pieces of which random texts are made.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    "\n",
    "\"",
    "\\",
    "{\"id\":",
    "{\"name\":\"",
    "-9",
    "99999999999999999999",
    "\"ts\":9223372036854775,",
    "\"dur\":1125899906842,",
    "\"pid\":-5,\"tid\":-9223372036854775808,",
    "\"pid\":9223372036854775807,\"tid\":9223372036854775807,",
    "{\"id\":1,\"name\":\"fork\",\"cat\":\"POSIX\",\"pid\":5,\"tid\":10,\"ts\":1,\"dur\":1,\"ph\":\"X\",\"args\":{\"hostname\":\"h\",\"ret\":5}}",
    "{\"id\":1,\"name\":\"start\",\"cat\":\"dftracer\",\"pid\":5,\"tid\":10,\"ts\":1,\"dur\":0,\"ph\":1,\"args\":{\"hhash\":\"h\",\"ppid\":5}}",
    "{\"id\":2,\"name\":\"x.iter\",\"cat\":\"dataloader\",\"pid\":5,\"tid\":5,\"ts\":9,\"dur\":3,\"ph\":1,\"args\":{\"count\":1}}",
    "{\"id\":3,\"name\":\"x.block\",\"cat\":\"dataloader\",\"pid\":5,\"tid\":5,\"ts\":1,\"dur\":3,\"ph\":1,\"args\":{\"count\":1}}",
    "{\"id\":4,\"name\":\"a\",\"cat\":\"b\",\"pid\":5,\"tid\":5,\"ts\":4611686018427387,\"dur\":3,\"ph\":1,\"args\":{\"step\":9223372036854775807}}",
    "{\"name\":\"CM\",\"cat\":\"dftracer\",\"pid\":5,\"ph\":4,\"args\":{\"name\":\"time_metric\",\"value\":\"SEC\"}}",
    "{\"name\":\"c\",\"cat\":\"sys\",\"ts\":5,\"ph\":2,\"pid\":0,\"args\":{\"a\":1e308}}",
    "{\"name\":\"c\",\"cat\":\"sys\",\"ts\":5,\"ph\":3,\"pid\":0,\"args\":{\"dft_cnt\":1e308}}",
    "\u{e9}",
];

proptest! {
    #[test]
    fn any_bytes_give_a_trace(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check_sane(&read(Path::new("a"), "a".into(), &mut bytes.as_slice()));
        open_bytes("a", &bytes).iter().for_each(check_sane);
        is_dftracer(&bytes);
    }

    #[test]
    fn any_tokens_give_a_trace(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40)) {
        let text: String = pieces.concat();
        check_sane(&trace_of(&text));
        open_bytes("a", text.as_bytes()).iter().for_each(check_sane);
    }
}
