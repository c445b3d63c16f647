use super::*;
use proptest::prelude::*;
use stepscope_trace::drawn::drawn;
use stepscope_trace::{Device, DeviceEvent, Flow, LaunchKey, Process, SliceKind, TraceBuilder, Track, TrackKind};

/// The times of the forward operators and the backward nodes of a micro-batch, in the order of forward, in us.
#[derive(Clone, Debug)]
struct Planned {
    forward: Vec<i64>,
    backward: Vec<i64>,
}

impl Planned {
    fn each(forward: &[i64], backward: &[i64]) -> Self {
        Self { forward: forward.to_vec(), backward: backward.to_vec() }
    }

    fn times(&self) -> [i64; 2] {
        [&self.forward, &self.backward].map(|of| of.iter().sum())
    }
}

/// What a stage of a pipeline does: `ahead` forward passes, then backward and forward in turn, then the rest.
fn order(micro_batches: usize, ahead: usize) -> Vec<(usize, bool)> {
    let mut order: Vec<(usize, bool)> = (0..ahead.min(micro_batches)).map(|at| (at, false)).collect();
    for at in 0..micro_batches {
        order.extend((at + ahead < micro_batches).then_some((at + ahead, false)));
        order.push((at, true));
    }
    order
}

/// A trace of a rank that does this. With a device, operators take a microsecond and their kernels take what is planned.
fn trace_of(planned: &[Planned], ahead: usize, has_device: bool) -> Trace {
    let mut builder = TraceBuilder::new("planned");
    let process = builder.add_process(Process::default());
    let [main, autograd] =
        ["main", "autograd"].map(|name| builder.add_track(Track::new(TrackKind::Thread, process, name)));
    let device = has_device.then(|| builder.add_device(Device::default()));
    let mut stream = Track::new(TrackKind::Stream, process, "7");
    (stream.device, stream.stream) = (device, Some(7));
    let stream = device.map(|device| (device, builder.add_track(stream)));
    let (name, mut now_ns, mut free_ns, mut launches) = (builder.strings.intern("op"), 0, 0, 0);
    let mut forward = vec![Vec::new(); planned.len()];
    for (at, is_backward) in order(planned.len(), ahead) {
        let mut times = if is_backward { planned[at].backward.clone() } else { planned[at].forward.clone() };
        if is_backward {
            times.reverse();
        }
        for ns in times.iter().map(|us| us * 1_000) {
            let track = if is_backward { autograd } else { main };
            let host_ns = if has_device { 1_000 } else { ns };
            let op = builder.add_slice(track, SliceKind::Op, name, now_ns, host_ns);
            if let Some((device, stream)) = stream {
                let launch = builder.add_slice(track, SliceKind::Runtime, name, now_ns + 1, 10);
                free_ns = free_ns.max(now_ns + 5);
                let kernel = builder.add_slice(stream, SliceKind::Kernel, name, free_ns, ns);
                builder.add_device_event(DeviceEvent::new(kernel, device, DeviceEventClass::Compute));
                launches += 1;
                let key = LaunchKey { process, correlation: launches };
                [launch, kernel].into_iter().for_each(|slice| builder.set_correlation(slice, key));
                free_ns += ns;
            }
            match is_backward {
                true => {
                    let from = forward[at].pop().expect("there are as many");
                    builder.add_flow(Flow { from, to: op, kind: FlowKind::ForwardBackward });
                }
                false => forward[at].push(op),
            }
            now_ns += host_ns + 100;
        }
    }
    builder.finish()
}

fn line(row: &MicroBatches) -> String {
    let us = [row.median_forward_ns, row.max_forward_ns, row.forward_ns].map(|ns| ns / 1_000);
    let back_us = [row.median_backward_ns, row.max_backward_ns, row.backward_ns].map(|ns| ns / 1_000);
    let rounded = |of: Option<f64>| of.map_or("-".into(), |of| format!("{of:.3}"));
    format!(
        "rank {}: {} of {}, {us:?} and {back_us:?}, spread {} and {}, correlation {}",
        row.rank,
        row.micro_batches,
        row.backward_nodes,
        rounded(row.forward_spread_ratio),
        rounded(row.backward_spread_ratio),
        rounded(row.correlation)
    )
}

#[track_caller]
fn check(trace: &Trace, expected: &[&str]) {
    assert_eq!(micro_batches(trace, &Selection::default()).iter().map(line).collect::<Vec<_>>(), expected);
}

/// Micro-batches of two operators, of sequences of these lengths.
fn of_lengths(lengths: &[i64]) -> Vec<Planned> {
    lengths.iter().map(|length| Planned::each(&[*length, *length], &[2 * length, 2 * length])).collect()
}

#[test]
fn what_follows_the_length_of_sequences_correlates() {
    for has_device in [true, false] {
        for ahead in 1..5 {
            let expected = "rank 0: 5 of 2, [6, 20, 42] and [12, 40, 84], spread 3.000 and 3.000, correlation 1.000";
            check(&trace_of(&of_lengths(&[3, 1, 4, 10, 3]), ahead, has_device), &[expected]);
        }
    }
}

#[test]
fn a_pause_in_one_pass_does_not_correlate() {
    // The first forward pass takes longer, as when garbage is collected in it, and so does another backward pass.
    let pause = |forward, backward| Planned::each(&[3, forward], &[4, backward]);
    let planned = [pause(9, 4), pause(3, 4), pause(3, 7), pause(3, 4)];
    let expected = "rank 0: 4 of 2, [6, 12, 30] and [8, 11, 35], spread 1.000 and 0.375, correlation -0.333";
    check(&trace_of(&planned, 1, true), &[expected]);
}

#[test]
fn without_variation_or_with_two_micro_batches_there_is_no_correlation() {
    let equal = "rank 0: 4 of 2, [6, 6, 24] and [12, 12, 48], spread 0.000 and 0.000, correlation -";
    check(&trace_of(&of_lengths(&[3; 4]), 2, true), &[equal]);
    let two = "rank 0: 2 of 2, [6, 8, 14] and [12, 16, 28], spread 0.333 and 0.333, correlation -";
    check(&trace_of(&of_lengths(&[3, 4]), 1, true), &[two]);
    check(&drawn("rank 0 step 0000\nrank 0 cpu 1 ab.c"), &[]);
}

#[test]
fn models_are_told_apart_by_their_backward_nodes() {
    let mut planned = of_lengths(&[3, 1, 4]);
    planned.push(Planned::each(&[5, 5, 5], &[6, 6, 6]));
    let expected = [
        "rank 0: 3 of 2, [6, 8, 16] and [12, 16, 32], spread 1.000 and 1.000, correlation 1.000",
        "rank 0: 1 of 3, [15, 15, 15] and [18, 18, 18], spread 0.000 and 0.000, correlation -",
    ];
    check(&trace_of(&planned, 1, false), &expected);
}

#[test]
fn nodes_inside_a_node_and_passes_over_the_same_operators_are_no_micro_batches() {
    let with_flows = |drawing: &str, flows: &[(&str, &str)]| {
        let mut trace = drawn(drawing);
        let slice = |name: &str| trace.slices.ids().find(|id| trace.slice_name(*id) == name).expect("it is drawn");
        let flow =
            |(from, to): &(&str, &str)| Flow { from: slice(from), to: slice(to), kind: FlowKind::ForwardBackward };
        trace.flows = flows.iter().map(flow).collect();
        trace
    };
    // The node `y` of `b` computes `c` again, and its own backward pass `z` in it.
    let drawing = "rank 0 cpu 1 aabb..xxyyyyyy\nrank 0 cpu 1 .........cczz.";
    let again = with_flows(drawing, &[("b", "x"), ("a", "y"), ("c", "z")]);
    check(&again, &["rank 0: 1 of 2, [4, 4, 4] and [8, 8, 8], spread 0.000 and 0.000, correlation -"]);
    // Two losses of one forward pass, one backward pass after the other.
    let twice = with_flows("rank 0 cpu 1 aabbccxxyy.zz", &[("b", "x"), ("a", "y"), ("c", "z")]);
    check(
        &twice,
        &[
            "rank 0: 1 of 2, [4, 4, 4] and [4, 4, 4], spread 0.000 and 0.000, correlation -",
            "rank 0: 1 of 1, [2, 2, 2] and [2, 2, 2], spread 0.000 and 0.000, correlation -",
        ],
    );
    let shared = with_flows("rank 0 cpu 1 aabbccxxyy.zzww", &[("b", "x"), ("a", "y"), ("c", "z"), ("a", "w")]);
    check(&shared, &["rank 0: 1 of 4, [6, 6, 6] and [8, 8, 8], spread 0.000 and 0.000, correlation -"]);
}

proptest! {
    #[test]
    fn times_are_those_that_were_planned(
        lengths in prop::collection::vec((prop::collection::vec(1_i64..20, 3), prop::collection::vec(1_i64..20, 3)), 1..8),
        ahead in 1_usize..4,
        has_device in any::<bool>(),
    ) {
        let planned: Vec<Planned> = lengths.iter().map(|(forward, backward)| Planned::each(forward, backward)).collect();
        let rows = micro_batches(&trace_of(&planned, ahead, has_device), &Selection::default());
        let [row] = rows[..] else { panic!("one model: {rows:?}") };
        let times: Vec<[i64; 2]> = planned.iter().map(Planned::times).collect();
        let of = |pass: usize| times.iter().map(move |times| times[pass] * 1_000);
        prop_assert_eq!(row.micro_batches as usize, planned.len());
        prop_assert_eq!([row.forward_ns, row.backward_ns], [of(0).sum::<i64>(), of(1).sum()]);
        prop_assert_eq!([Some(row.max_forward_ns), Some(row.max_backward_ns)], [of(0).max(), of(1).max()]);
        // The textbook's other formula, of sums alone.
        let n = planned.len() as i64;
        let sum = |f: &dyn Fn(&[i64; 2]) -> i64| times.iter().map(f).sum::<i64>();
        let (x, y) = (sum(&|t| t[0]), sum(&|t| t[1]));
        let [xx, yy] = [n * sum(&|t| t[0] * t[0]) - x * x, n * sum(&|t| t[1] * t[1]) - y * y];
        let xy = n * sum(&|t| t[0] * t[1]) - x * y;
        prop_assert_eq!(row.correlation.is_some(), n >= 3 && xx > 0 && yy > 0);
        if let Some(found) = row.correlation {
            let expected = xy as f64 / ((xx as f64) * (yy as f64)).sqrt();
            prop_assert!((found - expected).abs() < 1e-9, "{} is not {}", found, expected);
        }
    }
}
