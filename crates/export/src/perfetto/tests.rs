//! What is written is read back by an independent reader: the totals of every name, the arrows, the counters.

use super::write_perfetto;
use std::collections::BTreeMap;
use stepscope_trace::drawn::drawn;
use stepscope_trace::{MemoryEvent, Process, SliceKind, Trace, TraceBuilder, Track, TrackKind};

/// A field's value on the wire.
#[derive(Clone, Copy, Debug)]
enum Wire<'a> {
    Number(u64),
    Data(&'a [u8]),
}

/// The fields of a message.
fn fields(mut bytes: &[u8]) -> Vec<(u32, Wire<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().expect("a whole varint");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)),
            1 => {
                let (eight, rest) = bytes.split_at(8);
                bytes = rest;
                Wire::Number(u64::from_le_bytes(eight.try_into().unwrap()))
            }
            2 => {
                let len = varint(&mut bytes) as usize;
                let (data, rest) = bytes.split_at(len);
                bytes = rest;
                Wire::Data(data)
            }
            other => panic!("wire type {other}"),
        };
        fields.push(((tag >> 3) as u32, value));
    }
    fields
}

fn number(fields: &[(u32, Wire<'_>)], field: u32) -> Option<u64> {
    fields.iter().find_map(|(of, value)| match value {
        Wire::Number(number) if *of == field => Some(*number),
        _ => None,
    })
}

fn data<'a>(fields: &[(u32, Wire<'a>)], field: u32) -> Option<&'a [u8]> {
    fields.iter().find_map(|(of, value)| match value {
        Wire::Data(data) if *of == field => Some(*data),
        _ => None,
    })
}

/// What a reader makes of a trace: (count, total) of each name with its category, arrows, samples.
#[derive(Debug, Default, PartialEq)]
struct Summary {
    totals: BTreeMap<(String, String), (u64, i64)>,
    arrows: usize,
    samples: Vec<(i64, i64)>,
    tracks: Vec<String>,
}

fn read(bytes: &[u8]) -> Summary {
    let mut summary = Summary::default();
    let (mut names, mut categories) = (BTreeMap::new(), BTreeMap::new());
    let mut open: BTreeMap<u64, Vec<(u64, u64, i64)>> = BTreeMap::new();
    let mut last: BTreeMap<u64, i64> = BTreeMap::new();
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
    for (_, packet) in fields(bytes) {
        let Wire::Data(packet) = packet else { panic!("a packet is a message") };
        let packet = fields(packet);
        for (field, entry) in data(&packet, 12).map(fields).unwrap_or_default() {
            let Wire::Data(entry) = entry else { panic!("an entry is a message") };
            let entry = fields(entry);
            let text = String::from_utf8(data(&entry, 2).unwrap().to_vec()).unwrap();
            let table = match field {
                1 => &mut categories,
                2 => &mut names,
                _ => continue,
            };
            assert_eq!(table.insert(number(&entry, 1).unwrap(), text), None, "written once");
        }
        if let Some(descriptor) = data(&packet, 60).map(fields) {
            let name = data(&descriptor, 2).or_else(|| data(&fields(data(&descriptor, 4)?), 5));
            summary.tracks.extend(name.map(|name| String::from_utf8(name.to_vec()).unwrap()));
        }
        let Some(event) = data(&packet, 11).map(fields) else { continue };
        let time_ns = number(&packet, 8).unwrap() as i64;
        let track = number(&event, 11).unwrap();
        match number(&event, 9).unwrap() {
            1 => {
                assert!(last.insert(track, time_ns) <= Some(time_ns), "events of a track are in order");
                let category = number(&event, 3).unwrap();
                open.entry(track).or_default().push((number(&event, 10).unwrap(), category, time_ns));
            }
            2 => {
                assert!(last.insert(track, time_ns) <= Some(time_ns), "events of a track are in order");
                let (name, category, start_ns) = open.get_mut(&track).unwrap().pop().unwrap();
                let key = (categories[&category].clone(), names[&name].clone());
                let total = summary.totals.entry(key).or_default();
                *total = (total.0 + 1, total.1 + time_ns - start_ns);
            }
            4 => summary.samples.push((time_ns, number(&event, 30).unwrap() as i64)),
            _ => {}
        }
        for (field, value) in event {
            match (field, value) {
                (47, Wire::Number(id)) => begins.push(id),
                (48, Wire::Number(id)) => ends.push(id),
                _ => {}
            }
        }
    }
    assert!(open.values().all(Vec::is_empty), "every begin has its end");
    begins.sort_unstable();
    ends.sort_unstable();
    assert_eq!(begins, ends, "every arrow has two ends");
    summary.arrows = begins.len();
    summary
}

fn check(trace: &Trace) -> Summary {
    let mut bytes = Vec::new();
    write_perfetto(trace, &mut bytes).unwrap();
    let summary = read(&bytes);
    let mut totals: BTreeMap<(String, String), (u64, i64)> = BTreeMap::new();
    for id in trace.slices.ids() {
        let key = (trace.slices.kind(id).as_str().to_string(), trace.slice_name(id).to_string());
        let total = totals.entry(key).or_default();
        *total = (total.0 + 1, total.1 + trace.slices.dur_ns[id.index()]);
    }
    assert_eq!(summary.totals, totals, "{}", trace.name);
    assert_eq!(summary.arrows, trace.flows.len());
    summary
}

#[test]
fn names_keep_their_totals_and_arrows_both_ends() {
    let summary = check(&drawn(
        "rank 0 step      00001111
         rank 0 cpu 1     aaaabbbb
         rank 0 cpu 1     .xx.....
         rank 0 launch 1  .CC|C....
         rank 0 stream 7  ..CC|C.NN
         rank 0 stream 7  ...HHHHH.
         rank 1 cpu 1     aaaa....",
    ));
    assert_eq!(summary.arrows, 2);
    assert_eq!(summary.totals[&("op".into(), "a".into())], (2, 8_000));
    assert_eq!(summary.tracks, ["rank 0 GPU 0", "thread 1", "stream 7", "stream 7 (overlapping 1)", "thread 1"]);
}

#[test]
fn memory_becomes_two_counters_a_device() {
    let mut builder = TraceBuilder::new("memory");
    let process = builder.add_process(Process::default());
    let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
    let name = builder.strings.intern("aten::empty");
    builder.add_slice(track, SliceKind::Op, name, 0, 10);
    for (time_ns, bytes) in [(3, 512), (7, -512)] {
        let (allocated_bytes, reserved_bytes) = (Some(bytes.max(0)), Some(1_024));
        builder.add_memory_event(MemoryEvent {
            time_ns,
            track,
            bytes,
            allocated_bytes,
            reserved_bytes,
            device: None,
            address: 1,
            op: None,
            stream: None,
            stack: None,
        });
    }
    let summary = check(&builder.finish());
    assert_eq!(summary.samples, [(3, 512), (7, 0), (3, 1_024), (7, 1_024)]);
}

#[test]
fn samples_have_their_thread_and_their_stack_and_count_as_one() {
    let mut bytes = Vec::new();
    write_perfetto(&drawn("rank 0 cpu 1 aaaa\nrank 0 samples 1 f.g.f"), &mut bytes).unwrap();
    let (mut functions, mut frames, mut callstacks, mut samples) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), Vec::new());
    let packets = fields(&bytes);
    let messages = packets.iter().map(|(_, packet)| match packet {
        Wire::Data(packet) => fields(packet),
        Wire::Number(_) => panic!("a packet is a message"),
    });
    for packet in messages.filter(|packet| number(packet, 10) == Some(2)) {
        for (field, entry) in data(&packet, 12).map(fields).unwrap_or_default() {
            let Wire::Data(entry) = entry else { panic!("an entry is a message") };
            let entry = fields(entry);
            let iid = number(&entry, 1).unwrap();
            match field {
                5 => drop(functions.insert(iid, String::from_utf8(data(&entry, 2).unwrap().to_vec()).unwrap())),
                6 => drop(frames.insert(iid, (number(&entry, 2).unwrap(), number(&entry, 6).unwrap()))),
                7 => {
                    let of = entry.iter().filter_map(|(field, value)| match value {
                        Wire::Number(frame) if *field == 2 => Some(*frame),
                        _ => None,
                    });
                    callstacks.insert(iid, of.collect::<Vec<u64>>());
                }
                _ => {}
            }
        }
        let Some(sample) = data(&packet, 135).map(fields) else { continue };
        let task = fields(data(&sample, 1).unwrap());
        assert_eq!((number(&task, 3), number(&sample, 11)), (Some(1), Some(1)));
        let stack = &callstacks[&number(&sample, 6).unwrap()];
        let frame = |iid: &u64| format!("{}:{}", functions[&frames[iid].0], frames[iid].1);
        samples.push((number(&packet, 8).unwrap(), stack.iter().map(frame).collect::<Vec<_>>().join(" ")));
    }
    let expected = [(0, "main:1 f:7"), (2_000, "main:1 g:7"), (4_000, "main:1 f:7")];
    assert_eq!(samples, expected.map(|(at, stack)| (at, stack.to_string())));
    assert_eq!((functions.len(), callstacks.len()), (3, 2), "each is written once");
}

#[test]
fn real_traces_keep_their_totals() {
    for path in crate::tests::real_traces() {
        check(&stepscope_import::open(&path).expect("a trace"));
    }
}
