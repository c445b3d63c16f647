//! Steps copy to the device what is made on the host, or what they have copied before in the same pass.
//!
//! ```text
//! host      a·fill·copy·b··fill·copy·c··     the same copy again and again, kernels between
//! device    CCCCC····H···CCCC···H···CCC     the host waits for a copy, and then launches too late
//! ```

use super::facts::Facts;
use super::lines::{line_at, line_of_calls};
use super::loops::Loop;
use super::step_operators::Categories;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Lacks, Place, Rule};
use crate::op_classes::{ALLOCATION, AUTOGRAD, COPY, FILL, VIEW};
use crate::op_tree::{NONE, OpTree};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use stepscope_base::units::{format_bytes, format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{CopyDirection, DeviceEvent, DeviceEventClass, SliceId, SliceKind, Trace};

/// As often a pass copies the same, with kernels between; parts of a batch are copied one after the other.
const LEAST_REPEATS: usize = 4;
/// As many small ones a pass are too many, whatever lies between.
const LEAST_SMALL: usize = 10;
const SMALL_BYTES: i64 = 64 << 10;
/// What made a copy's contents has no more operators in it.
const NEAR: usize = 16;
/// The share of the steps, in parts of a hundred, that has such copies.
const MOST_STEPS: usize = 90;

pub(super) const RULE: Rule = Rule {
    code: "copy.repeated",
    fault: "Steps copy to the device what could be there",
    disproof: "Steps are as long with such a tensor made once, before the loop.",
    evidence: "copies",
    to_do: "Make tensors where they are used: `torch.arange(…, device=x.device)`, `x.new_zeros(…)`, and no `torch.tensor(…)` \
            or `.to(device)` in a forward pass. Keep masks, weights and constants on the device, as buffers of the module \
            (`register_buffer`), and use Python's numbers as they are. Many small tensors go in one: join them on the host, \
            copy once, and split them on the device.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    facts.steps_are_alike()?;
    facts.devices()?;
    let loops = facts.loops()?;
    let found: Vec<(&Loop, Vec<Copied>)> = loops.iter().map(|of| (of, copies(facts, of))).collect();
    if found.iter().all(|(_, copies)| copies.is_empty()) && has_copies(facts.trace) {
        return Err(Lacks("no operators and steps to which copies to the device belong"));
    }
    Ok(found.into_iter().filter_map(|(of, copies)| of_loop(facts, of, copies)).collect())
}

fn is_to_device(event: &DeviceEvent) -> bool {
    event.class == DeviceEventClass::Memcpy(CopyDirection::HostToDevice)
}

fn has_copies(trace: &Trace) -> bool {
    trace.device_events.iter().any(|event| is_to_device(&event))
}

/// A copy to the device that an operator of a step asks for.
struct Copied {
    /// The outermost operator that does no more than to copy.
    op: SliceId,
    step: usize,
    /// The number of nodes of the backward pass before: it is the same within a forward pass.
    pass: usize,
    /// The number of kernels launched before.
    kernels: usize,
    on_device: Span,
    bytes: Option<i64>,
    /// Whether the host waits for it.
    is_waited_for: bool,
    /// What made its contents on the host just before.
    made_by: Option<SliceId>,
}

/// Those of a loop, in order. What makes a batch is not judged.
fn copies(facts: &Facts, of: &Loop) -> Vec<Copied> {
    let (trace, slices, tree) = (facts.trace, &facts.trace.slices, facts.context.get::<OpTree>());
    let mut categories = Categories::default();
    let (mut kernels, mut found) = (Vec::new(), Vec::new());
    for event in trace.device_events.iter().filter(|event| trace.devices[event.device.index()].rank == of.rank) {
        let Some(launch) = event.launch else { continue };
        let at_ns = slices.start_ns[launch.index()];
        if event.class == DeviceEventClass::Compute {
            kernels.push(at_ns);
        } else if let Some((step, row)) = of.step_at(at_ns).zip(tree.row(event.op))
            && is_to_device(&event)
        {
            let copies = |row: &u32| categories.of(trace, slices.name[tree.slice[*row as usize].index()]) == COPY;
            let Some(row) = tree.with_enclosing(row).take_while(copies).last() else { continue };
            let op = tree.slice[row as usize];
            if slices.with_ancestors(op).any(|id| slices.kind(id) == SliceKind::DataLoader) {
                continue;
            }
            let on_device = slices.span(event.slice);
            let waits = slices.kind(launch) == SliceKind::HostSync || event.is_pageable == Some(true);
            let made_by = made_by(trace, tree, &mut categories, row);
            let (bytes, pass) = (event.bytes, 0);
            found.push(Copied { op, step, pass, kernels: 0, on_device, bytes, is_waited_for: waits, made_by });
        }
    }
    if found.is_empty() {
        return found;
    }
    kernels.sort_unstable();
    let nodes = nodes(trace, tree, of, &mut categories);
    for copy in &mut found {
        let at_ns = slices.start_ns[copy.op.index()];
        copy.kernels = kernels.partition_point(|start_ns| *start_ns < at_ns);
        copy.pass = nodes.partition_point(|start_ns| *start_ns < at_ns);
        copy.is_waited_for |= waits_in(trace, copy.op);
    }
    found.sort_by_key(|copy| (slices.start_ns[copy.op.index()], copy.op));
    found
}

/// When nodes of the backward pass begin in the steps of a loop.
fn nodes(trace: &Trace, tree: &OpTree, of: &Loop, categories: &mut Categories) -> Vec<i64> {
    let slices = &trace.slices;
    let is_own = |id: &SliceId| trace.tracks[slices.track[id.index()].index()].process == of.process;
    let own = tree.slice.iter().copied().filter(is_own);
    let is_node = |id: &SliceId| categories.of(trace, slices.name[id.index()]) == AUTOGRAD;
    let mut starts: Vec<i64> = own.filter(is_node).map(|id| slices.start_ns[id.index()]).collect();
    starts.sort_unstable();
    starts
}

/// Whether the host waits for the device in a call of an operator.
fn waits_in(trace: &Trace, op: SliceId) -> bool {
    inside(trace, op).any(|id| trace.slices.kind(id) == SliceKind::HostSync)
}

/// What lies in an operator: that comes next in its track.
fn inside(trace: &Trace, op: SliceId) -> impl Iterator<Item = SliceId> + '_ {
    let (track, end_ns) = (trace.slices.track[op.index()], trace.slices.span(op).end_ns);
    let after = (op.index() + 1..trace.slices.len()).map(SliceId::from_index);
    after.take_while(move |id| trace.slices.track[id.index()] == track && trace.slices.start_ns[id.index()] < end_ns)
}

/// The operator just before a copy, in the same one, which fills or takes memory and launches nothing.
fn made_by(trace: &Trace, tree: &OpTree, categories: &mut Categories, row: u32) -> Option<SliceId> {
    let slices = &trace.slices;
    let (op, parent) = (tree.slice[row as usize], tree.parent[row as usize]);
    let around = slices.parent(op);
    let before = (0..row).rev().take_while(|before| {
        let of = tree.slice[*before as usize];
        slices.track[of.index()] == slices.track[op.index()] && (parent == NONE || *before > parent)
    });
    let mut near = before.take(NEAR).map(|before| tree.slice[before as usize]);
    let mut is_of = |id: SliceId, category: &str| categories.of(trace, slices.name[id.index()]) == category;
    let sibling = near.find(|of| slices.parent(*of) == around && !is_of(*of, VIEW))?;
    // What an operator copies into may be taken just before. One that takes it itself copies what was made.
    let makes = is_of(sibling, FILL)
        || is_of(sibling, ALLOCATION)
            && inside(trace, op).any(|id| slices.kind(id) == SliceKind::Op && is_of(id, ALLOCATION));
    let launches = inside(trace, sibling).any(|id| slices.kind(id).is_api_call());
    (makes && !launches).then_some(sibling)
}

/// Of the copies of a loop those that are needless.
fn needless<'a>(trace: &Trace, copies: &'a [Copied]) -> Vec<&'a Copied> {
    let mut found = Vec::new();
    for pass in copies.chunk_by(|a, b| (a.step, a.pass) == (b.step, b.pass)) {
        let is_small = |copy: &&Copied| copy.bytes.is_some_and(|bytes| bytes <= SMALL_BYTES);
        let has_many_small = pass.iter().filter(is_small).count() >= LEAST_SMALL;
        let mut same: FxHashMap<(StringId, Option<i64>), Vec<usize>> = FxHashMap::default();
        for copy in pass {
            let places = same.entry((trace.slices.name[copy.op.index()], copy.bytes)).or_default();
            places.push(copy.kernels);
        }
        for copy in pass {
            let places = same.get_mut(&(trace.slices.name[copy.op.index()], copy.bytes)).expect("of this pass");
            places.dedup();
            let is_repeated = copy.bytes.is_some() && places.len() >= LEAST_REPEATS;
            if copy.made_by.is_some() || is_repeated || has_many_small && is_small(&copy) {
                found.push(copy);
            }
        }
    }
    found
}

fn of_loop(facts: &Facts, of: &Loop, copies: Vec<Copied>) -> Option<Advice> {
    let (trace, slices) = (facts.trace, &facts.trace.slices);
    let needless = needless(trace, &copies);
    let mut steps: Vec<usize> = needless.iter().map(|copy| copy.step).collect();
    steps.dedup();
    if steps.len() * 100 < of.steps.len() * MOST_STEPS {
        return None;
    }
    let computing = facts.computing(of.rank);
    let time = exposed(trace, &needless, &computing).intersect(&of.windows).subtract(&computing);
    let row = of.row(time.total_ns())?;
    let mut by_op: FxHashMap<StringId, Vec<&Copied>> = FxHashMap::default();
    needless.iter().for_each(|copy| by_op.entry(slices.name[copy.op.index()]).or_default().push(copy));
    let (name, most) = by_op.into_iter().max_by_key(|(name, copies)| (copies.len(), Reverse(*name)))?;
    let longest = most.iter().max_by_key(|copy| (slices.dur_ns[copy.op.index()], Reverse(copy.op)))?;
    let count = needless.len() as i64;
    let made = needless.iter().filter(|copy| copy.made_by.is_some()).count() as i64;
    let bytes = needless.iter().filter_map(|copy| copy.bytes).reduce(i64::saturating_add);
    let each = bytes.map_or_else(String::new, |bytes| format!(", of {} on average", format_bytes(bytes / count)));
    let made = match made {
        0 => String::new(),
        made if made == count => " What they copy was made on the host just before.".into(),
        made => {
            format!(" What {} of them copy was made on the host just before.", counted(made, "one").replace("ones", ""))
        }
    };
    let most: Vec<SliceId> = most.iter().map(|copy| copy.op).collect();
    let line = line_of_calls(trace, &most).or_else(|| line_at(facts, Some(of.rank), &time));
    Some(Advice {
        says: format!(
            "{} a step copy to the device what could be there{each}, most often {}: nothing is computed for {} ({}) of {} \
             meanwhile.{made}",
            counted(of.per_step(count), "operator"),
            quoted(trace.strings.get(name)),
            format_ns(time.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        measured_bytes: bytes,
        count: Some(count),
        gain: Some((time.total_ns(), GainEstimate::Bound)),
        place: Some(Place::of(trace, longest.op)),
        line,
        time,
        ..row
    })
}

/// When copies keep the host or the device from its work: what makes and copies them, the copies on the device, and, where the
/// host waits for a copy, up to the next kernel, but for no longer than it had waited: it would be ahead by no more.
fn exposed(trace: &Trace, copies: &[&Copied], computing: &IntervalSet) -> IntervalSet {
    let slices = &trace.slices;
    let mut spans = Vec::new();
    for copy in copies {
        let op = slices.span(copy.op);
        spans.extend([op, copy.on_device]);
        spans.extend(copy.made_by.map(|made_by| slices.span(made_by)));
        if copy.is_waited_for {
            let next = computing.spans().partition_point(|span| span.end_ns <= op.end_ns);
            let next_ns = computing.spans().get(next).map_or(op.end_ns, |span| span.start_ns.max(op.end_ns));
            spans.push(Span::new(op.end_ns, next_ns.min(op.end_ns.saturating_add(op.duration_ns()))));
        }
    }
    IntervalSet::from_unsorted(spans)
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us, rename, with_events};
    use stepscope_trace::Trace;

    /// Five steps of 2 ms; `t` copies to the device, `f` fills, `e` takes memory, `B` is a node of the backward pass.
    fn copying(bytes: i64, rows: &[(&str, &str)]) -> Trace {
        let trace = with_events(drawn_us(&repeated(5, rows), 100), |name, event| {
            event.bytes = (name == "H").then_some(bytes);
        });
        let names = [("t", "aten::to"), ("f", "aten::zeros"), ("e", "aten::empty"), ("B", "MmBackward0")];
        names.iter().fold(trace, |trace, (from, to)| rename(trace, from, to))
    }

    #[test]
    fn the_same_copy_between_kernels_is_said() {
        let rows = [
            ("cpu 1", "a.tt.a.tt.a.tt.a.tt."),
            ("launch 1", "A..H.B..H.C..H.E..H."),
            ("stream 7", ".A..H.B..H.C..H.E..H"),
        ];
        check(
            &copying(1 << 20, &rows),
            "copy.repeated",
            &[
                "6000 of 10000 bound high: 4 operators a step copy to the device what could be there, of 1.00 MiB on average, most often `aten::to`: nothing is computed for 6.00 ms (60.0 %) of 10.0 ms meanwhile.",
            ],
        );
    }

    #[test]
    fn a_wait_for_a_copy_costs_what_the_host_would_be_ahead() {
        // The host is in the copy for 500 us, while the device computes for 300 of them, and launches 300 us later.
        let rows = [
            ("cpu 1", "aa...fttttt...aa...."),
            ("launch 1", "A.....HHHHH...C....."),
            ("stream 7", ".AAAAAAAAH.....CCCCC"),
        ];
        let trace = with_events(copying(4, &rows), |name, event| {
            event.is_pageable = (name == "H").then_some(true);
        });
        check(
            &trace,
            "copy.repeated",
            &[
                "3000 of 10000 bound high: 1 operator a step copy to the device what could be there, of 4 B on average, most often `aten::to`: nothing is computed for 3.00 ms (30.0 %) of 10.0 ms meanwhile. What they copy was made on the host just before.",
            ],
        );
    }

    #[test]
    fn many_small_copies_are_said() {
        // Steps of 3 ms.
        let rows = [
            ("cpu 1", "t.t.t.t.t.t.t.t.t.t.aaaaaaaaaa"),
            ("launch 1", "H.H.H.H.H.H.H.H.H.H.A........."),
            ("stream 7", ".H.H.H.H.H.H.H.H.H.H.AAAAAAAAA"),
        ];
        check(
            &copying(8, &rows),
            "copy.repeated",
            &[
                "10000 of 15000 bound high: 10 operators a step copy to the device what could be there, of 8 B on average, most often `aten::to`: nothing is computed for 10.0 ms (66.7 %) of 15.0 ms meanwhile.",
            ],
        );
        check(&copying(1 << 20, &rows), "copy.repeated", &[]);
    }

    #[test]
    fn a_batch_and_the_parts_of_it_are_not_needless() {
        let batch = [
            ("cpu 1", "tt.tt.tt.tt.aaaaaaaa"),
            ("launch 1", "H..H..H..H...A......"),
            ("stream 7", ".H..H..H..H...AAAAAA"),
        ];
        check(&copying(8, &batch), "copy.repeated", &[]);
        // A batch for each pass.
        let batches = [
            ("cpu 1", "tt.aBtt.aBtt.aBtt.aB"),
            ("launch 1", "H..A.H..C.H..E.H..F."),
            ("stream 7", ".H..A.H..C.H..E.H..F"),
        ];
        check(&copying(8, &batches), "copy.repeated", &[]);
        // What is copied into was taken just before.
        let into = [
            ("cpu 1", "e.tttttt............"),
            ("launch 1", "..H.....A..........."),
            ("stream 7", "...HHHHH.AAAAAAAAAA."),
        ];
        check(&copying(8, &into), "copy.repeated", &[]);
    }

    #[test]
    fn what_runs_beside_kernels_and_what_few_steps_do_is_not_said() {
        let hidden = [
            ("cpu 1", "a.ftt..............."),
            ("launch 1", "A..H................"),
            ("stream 7", ".AAAAAAAAAAAAAAAAAAA"),
            ("stream 8", "....H..............."),
        ];
        check(&copying(8, &hidden), "copy.repeated", &[]);
        let once = [
            "rank 0 step 00000111112222233333444445555566666777778888899999",
            "rank 0 cpu 1 .ftt.",
            "rank 0 launch 1 ..H..",
            &format!("rank 0 stream 7 ...HA{}", "AAAAA".repeat(9)),
        ];
        let once = once.join("\n");
        let trace = with_events(drawn_us(&once, 1000), |name, event| event.bytes = (name == "H").then_some(8));
        let trace = rename(rename(trace, "t", "aten::to"), "f", "aten::zeros");
        check(&trace, "copy.repeated", &[]);
    }
}
