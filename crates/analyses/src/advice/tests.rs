//! What tests of rules share, and what holds for all of them.

use super::rule::Told;
use super::*;
use crate::{AnalysisContext, find};
use proptest::prelude::*;
use stepscope_trace::drawn::drawn;
use stepscope_trace::{
    Device, DeviceEvent, DeviceEventClass, DeviceId, FindingCode, IoAction, IoEvent, IoLayer, OpInfo, OpInputs,
    Process, SliceKind, TraceBuilder, Track, TrackKind,
};

/// A drawing whose columns are `column_us` wide.
pub(super) fn stretched(drawing: &str, column_us: usize) -> String {
    let line = |line: &str| {
        let (head, cells) = line.trim().rsplit_once(' ').expect("a row ends with its cells");
        let cells: String =
            cells.chars().map(|cell| cell.to_string().repeat(if cell == '|' { 1 } else { column_us })).collect();
        format!("{head} {cells}\n")
    };
    drawing.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

/// A drawing in which a column is `column_us` microseconds.
pub(super) fn drawn_us(drawing: &str, column_us: usize) -> Trace {
    drawn(&stretched(drawing, column_us))
}

/// A drawing of which a column is a millisecond.
pub(super) fn drawn_ms(drawing: &str) -> Trace {
    drawn_us(drawing, 1_000)
}

/// `trace` with its device events changed; the change is told the event's name.
pub(super) fn with_events(mut trace: Trace, change: impl Fn(&str, &mut DeviceEvent)) -> Trace {
    let changed = trace.device_events.iter().map(|event| {
        let mut event = event;
        change(trace.slice_name(event.slice), &mut event);
        event
    });
    trace.device_events = changed.collect();
    trace
}

/// `trace` with every slice called `old` called `new`.
pub(super) fn rename(mut trace: Trace, old: &str, new: &str) -> Trace {
    let (old, new) = (trace.strings.intern(old), trace.strings.intern(new));
    trace.slices.name.iter_mut().filter(|name| **name == old).for_each(|name| *name = new);
    trace
}

/// `trace` in which every slice called `name` reads `bytes` bytes from a file.
pub(super) fn with_io(mut trace: Trace, name: &str, bytes: i64) -> Trace {
    let reads: Vec<SliceId> = trace.slices.ids().filter(|id| trace.slice_name(*id) == name).collect();
    for slice in reads {
        trace.slices.kind[slice.index()] = SliceKind::Io;
        let (layer, action, file) = (IoLayer::Posix, IoAction::Read, stepscope_base::StringTable::EMPTY);
        let (bytes, offset, errno) = (Some(bytes), None, None);
        let other_file = stepscope_base::StringTable::EMPTY;
        trace.io.push(IoEvent { slice, layer, action, file, other_file, bytes, asked_bytes: bytes, offset, errno });
    }
    trace
}

/// Three products of 16-bit floats with these shapes, whose kernels take so long each on an A100.
pub(super) fn products(dims: &str, dur_ns: i64) -> Trace {
    some_products(3, dims, dur_ns)
}

/// As many of them as are asked for.
pub(super) fn some_products(count: i64, dims: &str, dur_ns: i64) -> Trace {
    let mut builder = TraceBuilder::new("products");
    let process = builder.add_process(Process::default());
    builder.add_device(Device { name: Some("NVIDIA A100-SXM4-40GB".into()), ..Device::default() });
    let thread = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
    let stream = builder.add_track(Track::new(TrackKind::Stream, process, "stream 7"));
    let [mm, launch, kernel] = ["aten::mm", "cudaLaunchKernel", "gemm"].map(|name| builder.strings.intern(name));
    let (dims, types) = (builder.strings.intern(dims), builder.strings.intern(r#"["c10::Half","c10::Half"]"#));
    let inputs = builder.intern_inputs(OpInputs { dims, types, ..OpInputs::UNKNOWN });
    for number in 0..count {
        let op = builder.add_slice(thread, SliceKind::Op, mm, 100 * number, 100);
        builder.add_op(op, OpInfo { inputs, ..OpInfo::default() });
        let launch = builder.add_slice(thread, SliceKind::Runtime, launch, 100 * number + 10, 10);
        let slice = builder.add_slice(stream, SliceKind::Kernel, kernel, 1_000 + dur_ns * number, dur_ns);
        builder.add_device_event(DeviceEvent::new(slice, DeviceId(0), DeviceEventClass::Compute));
        builder.add_launch_link(launch, slice);
    }
    builder.finish()
}

/// Rows of a rule as `gain of window estimate priority: says`, times in us.
#[track_caller]
pub(super) fn check(trace: &Trace, rule: &str, expected: &[&str]) {
    assert!(RuleCode::told(rule).is_some(), "{rule} is no rule");
    let us = |ns: Option<i64>| ns.map_or("-".into(), |ns| (ns / 1_000).to_string());
    let line = |row: &Advice| {
        let estimate = row.gain.map_or("-", |(_, estimate)| estimate.as_str());
        let (gain, window) = (us(row.gain_ns()), us(row.window_ns));
        format!("{gain} of {window} {estimate} {}: {}", row.priority.as_str(), row.says)
    };
    let rows = advice(trace, &Selection::default());
    let lines: Vec<String> = rows.iter().filter(|row| row.rule.as_str() == rule).map(line).collect();
    assert_eq!(lines, expected);
}

#[test]
fn every_rule_has_a_code_of_its_own_and_evidence_in_the_catalogue() {
    let rules: Vec<Told> = RULES.iter().map(Rule::told).chain(ranks::RULES.iter().map(Rule::told)).collect();
    let mut codes: Vec<&str> = rules.iter().map(|rule| rule.code).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), rules.len());
    for rule in rules {
        assert!(find(rule.evidence).is_some(), "{} has its numbers from {}", rule.code, rule.evidence);
        assert!(rule.to_do.ends_with('.') && !rule.to_do.contains("  "), "{}: {:?}", rule.code, rule.to_do);
    }
}

#[test]
fn every_rule_stands_in_the_documentation() {
    let page = include_str!("../../../../docs/metrics.md");
    for code in RULES.iter().map(|rule| rule.code).chain(ranks::RULES.iter().map(|rule| rule.code)) {
        assert!(page.contains(&format!("| `{code}` |")), "{code} is not in docs/metrics.md");
    }
}

#[test]
fn what_a_device_waits_for_before_the_first_step_is_not_judged() {
    let steps: String = (0..8).map(|step| step.to_string().repeat(5)).collect();
    let waits = ".".repeat(14);
    let work =
        format!("rank 0 launch 1 C{waits}{}\nrank 0 stream 7 .C{waits}{}\n", "C....".repeat(8), "CCCCC|".repeat(8));
    let rules = |drawing: &str| {
        let rows = advice(&drawn_ms(drawing), &Selection::default());
        rows.iter().map(|row| row.rule.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(rules(&work), ["host.long_pauses"]);
    assert_eq!(rules(&format!("rank 0 step .{waits}{steps}\n{work}")), [""; 0]);
    // Nor in first steps that are much longer than the others.
    assert_eq!(rules(&format!("rank 0 step 99999999{}{steps}\n{work}", "8".repeat(7))), ["step.first"]);
}

#[test]
fn what_gains_most_comes_first_and_what_gains_nobody_knows_last() {
    let trace = drawn_ms("rank 0 stream 7 CCCC.....C\nrank 0 stream 9 ....N|N|N...");
    let rules: Vec<&str> = advice(&trace, &Selection::default()).iter().map(|row| row.rule.as_str()).collect();
    assert_eq!(rules, ["comm.overlap"], "to hide it is said for all that is exposed");
    let idle = drawn_us("rank 0 stream 7 CCCC..............CC\nrank 0 stream 9 ....N|N|N.............", 500);
    let rules: Vec<&str> = advice(&idle, &Selection::default()).iter().map(|row| row.rule.as_str()).collect();
    assert_eq!(rules, ["comm.overlap", "device.low_utilization"]);
}

#[test]
fn a_device_that_works_for_less_than_a_millisecond_is_not_judged() {
    let rules = |trace: &Trace| advice(trace, &Selection::default()).len();
    assert_eq!(rules(&drawn_us("rank 0 stream 7 C........N", 499)), 0);
    assert!(rules(&drawn_us("rank 0 stream 7 C........N", 500)) > 0, "it idles most of the time");
}

#[test]
fn rules_that_cannot_be_judged_are_counted_and_named() {
    let finding = |drawing: &str| {
        let outcome = outcome(&AnalysisContext::new(&drawn_ms(drawing), &Selection::default()));
        outcome.findings.iter().map(|finding| (finding.code, finding.count)).collect::<Vec<_>>()
    };
    assert_eq!(finding(""), [(FindingCode::RuleNotJudged, RULES.len() as u64)]);
    let with_device = finding("rank 0 step 001122\nrank 0 input 1 i\nrank 0 stream 7 CC");
    assert!(with_device[0].1 < RULES.len() as u64, "{with_device:?}");
}

#[test]
fn each_row_has_an_id_that_does_not_depend_on_which_ranks_are_asked_for() {
    let trace = drawn_ms("rank 0 stream 7 CCCCCC\nrank 1 stream 7 CCCN|N|N");
    let ids = |rank: Option<u32>| {
        let rows = advice(&trace, &Selection { ranks: rank.into(), ..Selection::default() });
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None), ["comm.overlap@1.0"]);
    assert_eq!(ids(None), ids(Some(1)));
    let row = |rank, device| Advice { rank, device, rule: RuleCode("gemm"), ..Advice::default() };
    let mut rows = [row(None, None), row(Some(0), None), row(Some(0), None), row(Some(0), Some(1)), row(None, None)];
    name_each(&mut rows);
    assert_eq!(rows.map(|row| row.id), ["gemm", "gemm@0", "gemm@0#2", "gemm@0.1", "gemm#2"]);
}

#[test]
fn every_rule_is_judged_or_says_what_the_input_lacks() {
    for (drawing, of_all) in [("", 0), ("rank 0 cpu 1 aa", 0), ("rank 0 cpu 1 aa\nrank 1 cpu 1 aa", ranks::RULES.len())]
    {
        let (trace, all) = (drawn_ms(drawing), Selection::default());
        let judged = rules_judged(&AnalysisContext::new(&trace, &all));
        assert_eq!(judged.rules + judged.not_judged.len(), RULES.len() + of_all, "{drawing}");
        assert!(judged.not_judged.iter().all(|(_, lacks)| !lacks.is_empty()), "{judged:?}");
    }
}

#[test]
fn one_of_several_ranks_is_named_and_can_be_asked_for() {
    let trace = drawn_ms("rank 0 stream 7 CCCCCC\nrank 1 stream 7 CCCN|N|N");
    let ranks = |rank: Option<u32>| {
        let rows = advice(&trace, &Selection { ranks: rank.into(), ..Selection::default() });
        rows.iter().map(|row| row.rank).collect::<Vec<_>>()
    };
    assert_eq!((ranks(None), ranks(Some(1))), ([Some(1)].to_vec(), [Some(1)].to_vec()));
    assert_eq!(ranks(Some(0)), []);
}

proptest! {
    #[test]
    fn gains_are_within_their_window_whatever_is_drawn(
        host in prop::collection::vec("[.x|]{30}", 5), launch in "[.CDNH|]{30}",
        streams in prop::collection::vec("[.CDENHZ|]{30}", 1..4), memory in "[.abAB]{30}", step in prop::option::of(0_i64..3),
    ) {
        let kinds = ["python", "cpu", "input", "sync", "overhead"];
        let mut drawing = format!("rank 0 step {}\nrank 0 launch 1 {launch}\nrank 0 memory 1 {memory}\n", "0".repeat(10) + &"1".repeat(10) + &"2".repeat(10));
        kinds.iter().zip(&host).for_each(|(kind, row)| drawing += &format!("rank 0 {kind} 1 {row}\n"));
        streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
        let trace = with_events(drawn_us(&drawing, 700), |name, event| {
            event.is_pageable = Some(true);
            event.grid = (name == "D").then_some([3, 1, 1]);
        });
        for row in advice(&trace, &Selection { step, ..Selection::default() }) {
            if let (Some((gain_ns, _)), Some(window_ns)) = (row.gain, row.window_ns) {
                prop_assert!((1..=window_ns).contains(&gain_ns), "{row:?}");
            }
            // A link to the place leads to the slice.
            let is_there = |place: &Place| place.slice.as_ref().is_none_or(|name| trace.slices.ids().any(|slice| {
                let span = trace.slices.span(slice);
                let is_open = (span.start_ns..span.end_ns.max(span.start_ns + 1)).contains(&place.start_ns);
                trace.slice_name(slice) == name && is_open
            }));
            prop_assert!(row.place.as_ref().is_none_or(is_there), "{row:?}");
            prop_assert!(!row.says.is_empty() && row.says.ends_with('.'), "{row:?}");
            prop_assert!(row.measured_ratio.is_none_or(|ratio| ratio >= 0.0), "{row:?}");
        }
    }
}
