//! The table of DeepSpeed's comms logger, by its definitions.

use super::input_bytes;
use crate::AnalysisContext;
use crate::windows::Windows;
use std::collections::BTreeMap;
use stepscope_align::{Call, Calls};
use stepscope_trace::{CollectiveKind, DeviceEventClass, Trace};

columns! {
    /// All collectives of one kind and message size, on one rank.
    #[derive(Clone, PartialEq, Debug)]
    pub(crate) struct LoggedCollective {
        /// The rank.
        rank: u32 => Count,
        /// The collective.
        name: &'static str => Text,
        /// The message size: bytes of the tensor that a call is given. Absent where they are not known.
        message_bytes: Option<i64> => Bytes,
        /// Number of calls.
        count: i64 => Count,
        /// Sum of their latencies.
        total_ns: i64 => Nanoseconds,
        /// Mean latency, without the tenth of the calls that is shortest and the tenth that is longest; rounded.
        mean_ns: i64 => Nanoseconds,
        /// Throughput in gigabits per second: the mean over the calls, trimmed likewise. It counts an all-reduce twice,
        /// and the message of an all-gather or reduce-scatter once for each rank. Absent without a message.
        throughput_gbit_per_s: Option<f64> => Plain,
        /// Bus bandwidth in gigabits per second, likewise.
        bus_gbit_per_s: Option<f64> => Plain,
        /// Sum of the latencies of the fastest rank: what communication takes without waiting for others. Absent where
        /// ranks do not have the same number of calls.
        communication_ns: Option<i64> => Nanoseconds,
        /// What is left of `total_ns`: the rank waits for others.
        straggler_ns => Nanoseconds = |row| Some(row.total_ns.saturating_sub(row.communication_ns?)),
    }
}

type Latencies = Vec<i64>;
/// Name and message bytes.
type Key = (&'static str, Option<i64>);

/// The calls of one name and message.
struct OfMessage {
    kind: CollectiveKind,
    of_rank: BTreeMap<u32, Latencies>,
}

/// By rank, collective and message, in that order.
pub(super) fn rows(context: &AnalysisContext<'_>) -> Vec<LoggedCollective> {
    let (trace, calls) = (context.trace, context.get::<Calls>());
    let latencies = latencies(trace, calls);
    let windows = Windows::of(trace, context.selection);
    let mut world = trace.ranks().len() as i64;
    let mut found: BTreeMap<Key, OfMessage> = BTreeMap::new();
    for (call, latency_ns) in calls.calls.iter().zip(latencies) {
        let Some(kind) = call.said.kind.filter(|_| windows.has_slice(trace, call.slice)) else { continue };
        world = world.max(call.said.group_size.unwrap_or(0));
        let rank = trace.rank_of_track(trace.slices.track[call.slice.index()]);
        let key = (kind.as_str(), message_bytes(trace, call, kind));
        let of_message = found.entry(key).or_insert_with(|| OfMessage { kind, of_rank: BTreeMap::new() });
        of_message.of_rank.entry(rank).or_default().push(latency_ns);
    }
    let mut rows = Vec::new();
    for ((name, message_bytes), OfMessage { kind, of_rank }) in found {
        let communication_ns = fastest(&of_rank).map(|fastest| sum(&fastest));
        for (rank, latencies) in of_rank {
            let rates = |factor: f64| {
                message_bytes.filter(|bytes| *bytes > 0).and_then(|bytes| {
                    let bits = 8.0 * bytes as f64 * factor;
                    trimmed_mean(latencies.iter().filter(|ns| **ns > 0).map(|ns| bits / *ns as f64).collect())
                })
            };
            let (throughput, bus) = factors(kind, world as f64);
            rows.push(LoggedCollective {
                rank,
                name,
                message_bytes,
                count: latencies.len() as i64,
                total_ns: sum(&latencies),
                mean_ns: trimmed_mean(latencies.iter().map(|ns| *ns as f64).collect()).unwrap_or(0.0).round() as i64,
                throughput_gbit_per_s: rates(throughput),
                bus_gbit_per_s: rates(bus),
                communication_ns,
            });
        }
    }
    rows.sort_by_key(|row| (row.rank, row.name, row.message_bytes));
    rows
}

/// What each call takes: its kernels, else its work, else itself on the host.
fn latencies(trace: &Trace, calls: &Calls) -> Vec<i64> {
    let dur_ns = |slice: stepscope_trace::SliceId| trace.slices.dur_ns[slice.index()];
    let mut kernels_ns: Vec<Option<i64>> = vec![None; calls.calls.len()];
    for event in trace.device_events.iter().filter(|event| event.class == DeviceEventClass::Communication) {
        if let Some(call) = event.op.and_then(|op| calls.around(trace, op)) {
            let sum = kernels_ns[call].get_or_insert(0);
            *sum = sum.saturating_add(dur_ns(event.slice));
        }
    }
    let of_call = |(call, kernels_ns): (&Call, Option<i64>)| {
        kernels_ns.unwrap_or_else(|| dur_ns(call.work.unwrap_or(call.slice)))
    };
    calls.calls.iter().zip(kernels_ns).map(of_call).collect()
}

fn message_bytes(trace: &Trace, call: &Call, kind: CollectiveKind) -> Option<i64> {
    match kind {
        CollectiveKind::Barrier => Some(0),
        // What a call is given is what it fills.
        CollectiveKind::Scatter => super::output_bytes(trace, &call.said),
        CollectiveKind::Receive => super::size_bytes(trace, &call.said),
        _ => input_bytes(trace, &call.said),
    }
}

fn sum(latencies: &Latencies) -> i64 {
    latencies.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
}

/// The shortest latency of each call over all ranks; `None` where they differ in the number of calls.
fn fastest(of_rank: &BTreeMap<u32, Latencies>) -> Option<Latencies> {
    let mut lists = of_rank.values();
    let first = lists.next()?.clone();
    lists.try_fold(first, |fastest, list| {
        let is_as_long = list.len() == fastest.len();
        is_as_long.then(|| fastest.iter().zip(list).map(|(a, b)| *a.min(b)).collect())
    })
}

/// What the message is multiplied by for the throughput and for the bus bandwidth, among `world` ranks.
fn factors(kind: CollectiveKind, world: f64) -> (f64, f64) {
    match kind {
        CollectiveKind::AllReduce => (2.0, 2.0 * (world - 1.0) / world),
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter => (world, world - 1.0),
        CollectiveKind::AllToAll => (1.0, (world - 1.0) / world),
        _ => (1.0, 1.0),
    }
}

/// The mean without a tenth at either end; halves of a call are rounded to even ones.
fn trimmed_mean(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let cut = (values.len() as f64 * 0.1).round_ties_even() as usize;
    let kept = values.get(cut..values.len() - cut).filter(|kept| !kept.is_empty())?;
    Some(kept.iter().sum::<f64>() / kept.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compat, Selection};
    use stepscope_trace::SliceKind;
    use stepscope_trace::drawn::drawn_with_collectives as trace_of;

    fn table(trace: &Trace, selection: &Selection) -> Vec<LoggedCollective> {
        rows(&AnalysisContext::new(trace, &Selection { compat: Some(Compat::DeepSpeed), ..selection.clone() }))
    }

    fn line(row: &LoggedCollective) -> String {
        let rate = |rate: Option<f64>| rate.map_or("-".into(), |rate| format!("{rate:.3}"));
        format!(
            "{} {} {:?} x{}: {} mean {}, {} {} Gbit/s, {:?} and {:?}",
            row.rank,
            row.name,
            row.message_bytes.unwrap_or(-1),
            row.count,
            row.total_ns,
            row.mean_ns,
            rate(row.throughput_gbit_per_s),
            rate(row.bus_gbit_per_s),
            row.communication_ns,
            row.total_ns - row.communication_ns.unwrap_or(row.total_ns),
        )
    }

    const TWO_RANKS: &str = "rank 0 cpu 1    .aa.aa.
                             rank 0 launch 1 .N...N.
                             rank 0 stream 7 ..NNNN.NN
                             rank 1 cpu 1    .aa.aa.
                             rank 1 launch 1 .N...N.
                             rank 1 stream 7 ..NNN.NNNN";

    #[test]
    fn a_message_has_the_rates_of_the_logger_and_what_the_fastest_rank_takes() {
        let said = [("a", SliceKind::Op, ("allreduce", "Float", Some(1_000), None))];
        // 32,000 bits of each call: twice over 2 us and 4 us, and once of the two ranks' links.
        let expected = [
            "0 all_reduce 4000 x2: 6000 mean 3000, 24.000 12.000 Gbit/s, Some(5000) and 1000",
            "1 all_reduce 4000 x2: 7000 mean 3500, 18.667 9.333 Gbit/s, Some(5000) and 2000",
        ];
        let rows = table(&trace_of(TWO_RANKS, &said), &Selection::default());
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_gathered_message_counts_for_each_rank_and_unequal_ranks_have_no_fastest() {
        let drawing = "rank 0 cpu 1    .aa.
                       rank 1 cpu 1    .aaaa.
                       rank 1 cpu 1    .......aa";
        let said = [("a", SliceKind::Op, ("all_gather", "Half", Some(1_000), None))];
        let expected = [
            "0 all_gather 2000 x1: 2000 mean 2000, 16.000 8.000 Gbit/s, None and 0",
            "1 all_gather 2000 x2: 6000 mean 3000, 12.000 6.000 Gbit/s, None and 0",
        ];
        let rows = table(&trace_of(drawing, &said), &Selection::default());
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_tenth_of_the_calls_is_left_out_at_either_end() {
        assert_eq!(trimmed_mean((1..=10).map(f64::from).collect()), Some(5.5));
        assert_eq!(trimmed_mean(vec![1.0, 1.0, 1.0, 1.0, 100.0, 1.0, 1.0, 1.0, 1.0, 1.0]), Some(1.0));
        // Half a call is none, one and a half are two.
        assert_eq!(trimmed_mean(vec![0.0, 0.0, 0.0, 0.0, 10.0]), Some(2.0));
        let mut fifteen = vec![3.0; 15];
        fifteen[14] = 1_000.0;
        fifteen[7] = 500.0;
        assert_eq!(trimmed_mean(fifteen), Some(3.0));
        assert_eq!(trimmed_mean(vec![]), None);
    }
}
