//! A slow version of the walk, for tests: one thread and its streams, a microsecond at a time.

use super::{PathClass, critical_path};
use crate::Selection;
use proptest::prelude::*;
use stepscope_trace::drawn::drawn;
use stepscope_trace::{DeviceEvent, SliceId, SliceKind, Trace};

/// The same rules, a microsecond at a time, on one host thread with two streams.
struct Slow<'a> {
    trace: &'a Trace,
    start: i64,
    parts: [i64; PathClass::ALL.len()],
}

impl Slow<'_> {
    fn spend(&mut self, at: &mut i64, to: i64, class: impl Fn(i64) -> PathClass) {
        while *at > to.max(self.start) {
            *at -= 1;
            self.parts[class(*at) as usize] += 1_000;
        }
        *at = (*at).min(to);
    }

    fn us(&self, slice: SliceId) -> (i64, i64) {
        let span = self.trace.slices.span(slice);
        (span.start_ns / 1_000, span.end_ns / 1_000)
    }

    fn host_slices(&self, kinds: &[SliceKind]) -> Vec<(i64, i64)> {
        let ids = self.trace.slices.ids().filter(|id| kinds.contains(&self.trace.slices.kind(*id)));
        ids.map(|id| self.us(id)).collect()
    }

    fn host_class(&self, at: i64) -> PathClass {
        let is_in = |kind: SliceKind| self.host_slices(&[kind]).iter().any(|(from, to)| (*from..*to).contains(&at));
        match () {
            () if is_in(SliceKind::HostSync) => PathClass::HostSync,
            () if is_in(SliceKind::DataLoader) => PathClass::DataLoader,
            () if is_in(SliceKind::Runtime) => PathClass::Runtime,
            () if is_in(SliceKind::Op) => PathClass::HostOp,
            () => PathClass::Other,
        }
    }

    fn run(mut self, host_end: i64) -> (i64, [i64; PathClass::ALL.len()]) {
        let events: Vec<_> = self.trace.device_events.iter().collect();
        let launched: Vec<_> = events.iter().filter(|event| event.launch.is_some()).collect();
        let in_step = launched.iter().filter(|event| {
            let start = self.us(event.launch.unwrap()).0;
            (self.start..host_end).contains(&start)
        });
        let last = in_step.max_by_key(|event| self.us(event.slice).1);
        let mut device = last.filter(|event| self.us(event.slice).1 > host_end).map(|event| **event);
        let mut at = device.map_or(host_end, |event| self.us(event.slice).1);
        let end = at;
        while at > self.start {
            if let Some(event) = device {
                let class = match event.class.as_str() {
                    "communication" => PathClass::Communication,
                    "compute" => PathClass::Compute,
                    _ => PathClass::Copy,
                };
                let begin = self.us(event.slice).0;
                self.spend(&mut at, begin, |_| class);
                let ahead =
                    events.iter().filter(|other| other.stream == event.stream && self.us(other.slice).1 <= begin);
                let ahead = ahead.max_by_key(|other| self.us(other.slice).1).copied();
                let ready = ahead.map_or(i64::MIN, |other| self.us(other.slice).1);
                let launched = event.launch.map(|launch| self.us(launch).1.min(begin));
                if launched.is_some_and(|launched| launched > ready) {
                    self.spend(&mut at, launched.unwrap(), |_| PathClass::LaunchLatency);
                    device = None;
                } else {
                    let to = if ahead.is_some() { ready } else { at };
                    self.spend(&mut at, to, |_| PathClass::QueueWait);
                    device = ahead;
                }
                continue;
            }
            // One microsecond of the host, unless it waits for something that ended by now.
            let sync =
                self.host_slices(&[SliceKind::HostSync]).into_iter().find(|(from, to)| (*from + 1..=*to).contains(&at));
            let waited = sync.and_then(|(from, _)| {
                let is_before = |event: &&DeviceEvent| {
                    let end = self.us(event.slice).1;
                    end > from && end <= at && event.launch.is_none_or(|launch| self.us(launch).0 <= from)
                };
                events.iter().filter(is_before).max_by_key(|event| self.us(event.slice).1)
            });
            if let Some(event) = waited {
                self.spend(&mut at, self.us(event.slice).1, |_| PathClass::HostSync);
                device = Some(*event);
            } else {
                let (class, to) = (self.host_class(at - 1), at - 1);
                self.spend(&mut at, to, |_| class);
            }
        }
        ((end - self.start) * 1_000, self.parts)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_path_is_that_of_following_every_microsecond(
        host in "[.axsi|]{36}", launch in "[.CDNH]{36}", streams in prop::collection::vec("[.CDNHK|]{48}", 1..3),
    ) {
        // A thread does one thing at a time here: launches where nothing else is, and syncs, inputs and ops apart.
        let row = |cell: char| host.chars().map(|own| if own == cell || own == '|' { own } else { '.' }).collect::<String>();
        let free: String = host.chars().zip(launch.chars()).map(|(own, call)| if own == '.' { call } else { '.' }).collect();
        let mut drawing = format!(
            "rank 0 step 000000000000000000111111111111111111\nrank 0 cpu 1 {}\nrank 0 sync 1 {}\nrank 0 input 1 {}\nrank 0 launch 1 {free}\n",
            row('a'), row('s'), row('i'),
        );
        streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
        let trace = drawn(&drawing);
        let rows = critical_path(&trace, &Selection::default());
        prop_assert_eq!(rows.len(), 2);
        for (row, step) in rows.iter().zip(&trace.steps) {
            let slow = Slow { trace: &trace, start: step.span.start_ns / 1_000, parts: [0; PathClass::ALL.len()] };
            prop_assert_eq!((row.length_ns, row.parts.ns), slow.run(step.span.end_ns / 1_000));
        }
    }
}
