//! Steps of a loop that nobody marked: the longest sequence of kernels that a process launches again and again.
//!
//! ```text
//! launches  e a b c c h e a b c c h e a b c d h        e h: once a step; a b c: of its layers
//! steps     ├──── 0 ───┤├──── 1 ───┤├─── 2 ───┤
//! ```
//!
//! A kernel's name is a *marker* when it comes back at near-equal distances, counted in launched kernels, and when from
//! one to the next much the same kernels are launched. Of several, the markers that are farthest apart win, so that
//! layers within a step are not taken for steps; of these those that come most often, of these the first. A marker whose
//! returns lie within one call of an operator or module is a part of that call, and no step.

use crate::{DeviceId, ProcessId, SliceId, SliceKind, Trace};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::{Span, StringId};

/// A sequence that comes back less often than this is no loop.
const MIN_STEPS: usize = 3;
/// A sequence of fewer kernels is one operator called in a loop, and no step.
const MIN_KERNELS: usize = 4;
/// Markers that are compared window by window, so that any trace takes linear time.
const MAX_TRIED: usize = 32;

/// One kernel, as its process launched it.
#[derive(Clone, Copy, Debug)]
struct Launched {
    name: StringId,
    launch: SliceId,
    start_ns: i64,
}

/// Where a marker stands in a sequence of kernels.
struct Marker {
    places: Vec<usize>,
    /// The median distance from one place to the next.
    distance: usize,
}

/// Consecutive host windows of the processes that launch the same kernels again and again, each with whether the whole
/// sequence is in it; in order of process.
pub(super) fn repeating_windows(trace: &Trace) -> BTreeMap<ProcessId, Vec<(Span, bool)>> {
    let windows = sequences(trace).into_iter().filter_map(|(process, kernels)| {
        let markers = markers(&kernels);
        let windows = markers.iter().take(MAX_TRIED).find_map(|marker| windows(trace, &kernels, marker))?;
        Some((process, windows))
    });
    windows.collect()
}

/// What each process launched on the device that it gave most kernels to, in order of launching.
fn sequences(trace: &Trace) -> BTreeMap<ProcessId, Vec<Launched>> {
    let mut of_device: BTreeMap<(ProcessId, DeviceId), Vec<Launched>> = BTreeMap::new();
    for event in trace.device_events.iter().filter(|event| trace.slices.kind(event.slice) == SliceKind::Kernel) {
        let Some(launch) = event.launch else { continue };
        let process = trace.tracks[trace.slices.track[launch.index()].index()].process;
        let (name, start_ns) = (trace.slices.name[event.slice.index()], trace.slices.start_ns[launch.index()]);
        of_device.entry((process, event.device)).or_default().push(Launched { name, launch, start_ns });
    }
    let mut sequences: BTreeMap<ProcessId, Vec<Launched>> = BTreeMap::new();
    for ((process, _), kernels) in of_device {
        let longest = sequences.entry(process).or_default();
        if kernels.len() > longest.len() {
            *longest = kernels;
        }
    }
    // Kernels of one launch stay in the order in which they ran.
    sequences.values_mut().for_each(|kernels| kernels.sort_by_key(|kernel| (kernel.start_ns, kernel.launch)));
    sequences
}

/// Names that come back at near-equal distances throughout most of `kernels`, the best first.
fn markers(kernels: &[Launched]) -> Vec<Marker> {
    let mut places_of: FxHashMap<StringId, Vec<usize>> = FxHashMap::default();
    for (place, kernel) in kernels.iter().enumerate() {
        places_of.entry(kernel.name).or_default().push(place);
    }
    let mut markers: Vec<Marker> = places_of.into_values().filter_map(|places| marker(places, kernels.len())).collect();
    markers.sort_unstable_by_key(|marker| (std::cmp::Reverse(marker.distance), marker.places[0]));
    let alike = |a: &Marker, b: &Marker| are_near(b.distance, a.distance);
    let mut from = 0;
    while from < markers.len() {
        let len = markers[from..].iter().take_while(|marker| alike(&markers[from], marker)).count();
        markers[from..from + len].sort_unstable_by_key(|marker| (usize::MAX - marker.places.len(), marker.places[0]));
        from += len;
    }
    markers
}

fn marker(places: Vec<usize>, len: usize) -> Option<Marker> {
    if places.len() < MIN_STEPS {
        return None;
    }
    let mut distances: Vec<usize> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let middle = distances.len() / 2;
    let distance = *distances.select_nth_unstable(middle).1;
    let end = len.min(places[places.len() - 1] + distance);
    let covers_most = 2 * (end - places[0]) >= len;
    let is_regular = distances.iter().all(|other| are_near(*other, distance));
    (distance >= MIN_KERNELS && covers_most && is_regular).then_some(Marker { places, distance })
}

/// At most a tenth of `wanted` apart.
fn are_near(found: usize, wanted: usize) -> bool {
    10 * found.abs_diff(wanted) <= wanted
}

/// The host windows from one place of the marker to the next; none when they hold different kernels, or are parts of one
/// call.
fn windows(trace: &Trace, kernels: &[Launched], marker: &Marker) -> Option<Vec<(Span, bool)>> {
    let places = &marker.places;
    let last = places[places.len() - 1];
    let last_end = kernels.len().min(last + marker.distance);
    let parts: Vec<&[Launched]> = places.windows(2).map(|pair| &kernels[pair[0]..pair[1]]).collect();
    if !parts.windows(2).all(|pair| are_alike(pair[0], pair[1])) || !are_separate_calls(trace, kernels, places) {
        return None;
    }
    let starts: Vec<i64> = places.iter().map(|place| host_start_ns(trace, kernels, *place)).collect();
    let is_last_whole = are_alike(parts[parts.len() - 1], &kernels[last..last_end]);
    let end_ns = host_end_ns(trace, kernels, last, last_end - 1);
    let mut windows: Vec<(Span, bool)> = starts.windows(2).map(|pair| (Span::new(pair[0], pair[1]), true)).collect();
    windows.push((Span::new(starts[starts.len() - 1], end_ns), is_last_whole));
    Some(windows)
}

/// Nine tenths of the kernels are the same, in whatever order.
fn are_alike(a: &[Launched], b: &[Launched]) -> bool {
    let mut counts: FxHashMap<StringId, usize> = FxHashMap::default();
    a.iter().for_each(|kernel| *counts.entry(kernel.name).or_insert(0) += 1);
    let is_shared = |kernel: &&Launched| match counts.get_mut(&kernel.name) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let shared = b.iter().filter(is_shared).count();
    10 * shared >= 9 * a.len().max(b.len())
}

/// Each place begins a launch of its own on one thread, and no operator or module is open from one to the next.
fn are_separate_calls(trace: &Trace, kernels: &[Launched], places: &[usize]) -> bool {
    let launches = || places.iter().map(|place| kernels[*place].launch);
    let thread = |launch: SliceId| trace.lanes(trace.slices.track[launch.index()]).next();
    let is_first = |place: &usize| *place == 0 || kernels[place - 1].launch != kernels[*place].launch;
    let is_one_thread = launches().all(|launch| thread(launch) == thread(kernels[places[0]].launch));
    let holds = |outer: SliceId, next: SliceId| {
        matches!(trace.slices.kind(outer), SliceKind::Op | SliceKind::Module)
            && trace.slices.span(outer).end_ns > trace.slices.start_ns[next.index()]
    };
    let mut pairs = launches().zip(launches().skip(1));
    is_one_thread
        && places.iter().all(is_first)
        && pairs.all(|(launch, next)| !trace.slices.with_ancestors(launch).any(|outer| holds(outer, next)))
}

/// Where the outermost operator around the launch begins, of those that launched nothing before; else the launch.
fn host_start_ns(trace: &Trace, kernels: &[Launched], place: usize) -> i64 {
    let before_ns = place.checked_sub(1).map_or(i64::MIN, |before| kernels[before].start_ns);
    let starts = own_operators(trace, kernels[place].launch).map(|span| span.start_ns);
    starts.filter(|start_ns| *start_ns > before_ns).min().unwrap_or(kernels[place].start_ns)
}

/// Where the outermost operator around the last launch ends that began after `first`, or where the last launch does.
fn host_end_ns(trace: &Trace, kernels: &[Launched], first: usize, last: usize) -> i64 {
    let start_ns = host_start_ns(trace, kernels, first);
    let next_ns = kernels.get(last + 1).map_or(i64::MAX, |next| next.start_ns);
    let ops = own_operators(trace, kernels[last].launch).filter(|op| op.start_ns >= start_ns && op.end_ns <= next_ns);
    let launch_end_ns = trace.slices.span(kernels[last].launch).end_ns;
    ops.map(|op| op.end_ns).max().unwrap_or(launch_end_ns).max(launch_end_ns)
}

/// The operators that hold a launch.
fn own_operators(trace: &Trace, launch: SliceId) -> impl Iterator<Item = Span> + '_ {
    let ancestors = trace.slices.with_ancestors(launch);
    ancestors.filter(|id| trace.slices.kind(*id) == SliceKind::Op).map(|id| trace.slices.span(id))
}

#[cfg(test)]
mod tests {
    use crate::drawn::drawn;
    use crate::{FindingCode, StepSource, Trace};

    /// A trace that launches `kernels`, a letter and a microsecond each, on thread 1; they run on stream 7.
    fn launching(kernels: &str, more_rows: &str) -> Trace {
        let cells: String = kernels.chars().flat_map(|kernel| [kernel, '|']).collect();
        drawn(&format!("rank 0 launch 1 {cells}\nrank 0 stream 7 .{cells}\n{more_rows}"))
    }

    /// Inferred steps as `start..end` in us.
    fn check(trace: &Trace, expected: &[&str]) {
        let inferred = trace.steps.iter().filter(|step| step.source == StepSource::Kernels);
        let found: Vec<String> = inferred
            .map(|step| {
                let cut = if step.is_complete { "" } else { " cut" };
                format!("{}..{}{cut}", step.span.start_ns / 1_000, step.span.end_ns / 1_000)
            })
            .collect();
        assert_eq!(found, expected);
        assert_eq!(trace.findings.count(FindingCode::InferredSteps), u64::from(!expected.is_empty()));
        assert_eq!(trace.findings.count(FindingCode::NoSteps), u64::from(expected.is_empty()));
    }

    #[test]
    fn the_longest_sequence_that_repeats_is_the_step() {
        check(&launching("eabcabcheabcabcheabcabch", ""), &["0..8", "8..16", "16..24"]);
    }

    #[test]
    fn a_last_sequence_that_breaks_off_is_a_cut_step() {
        check(&launching("xyeabcdeabcdeabcdeab", ""), &["2..7", "7..12", "12..17", "17..20 cut"]);
    }

    #[test]
    fn steps_begin_with_the_operator_that_launches_their_first_kernel() {
        let rows = "rank 0 cpu 1 .ooooo.ooooo.oooo\nrank 0 cpu 1 ..p...............";
        let trace = drawn(&format!("rank 0 launch 1 ..eabc..eabc.eabc.\nrank 0 stream 7 ...eabc..eabc.eabc\n{rows}"));
        // Times count from the first operator.
        check(&trace, &["0..6", "6..12", "12..16"]);
    }

    #[test]
    fn an_operator_that_launched_part_of_the_step_before_does_not_begin_one() {
        let rows = "rank 0 cpu 1 ...oooo.oooo.";
        check(&launching("eabcdeabcdeabcd", rows), &["0..5", "5..10", "10..15"]);
    }

    #[test]
    fn what_repeats_within_one_module_is_no_step() {
        check(&launching("eabcdeabcdeabcd", "rank 0 module 1 mmmmmmmmmmmmmmm"), &[]);
        check(&launching("eabcdeabcdeabcd", "rank 0 python 1 mmmmmmmmmmmmmmm"), &["0..5", "5..10", "10..15"]);
    }

    #[test]
    fn without_a_repetition_there_is_no_step() {
        for kernels in
            ["a", "aaaaaaaaaaaa", "abababababab", "eabcdeabcd", "abcdefghijklmnopqrstuvwxy", "eabcdeabefgheiiii"]
        {
            check(&launching(kernels, "rank 0 cpu 2 o"), &[]);
        }
        // Regular, but of other kernels each time.
        check(&launching("eabcdefghiejklmenopq", ""), &[]);
        // A small part of what is launched.
        check(&launching("eabcdeabcdeabcdfghijklmopqrstuvwxyzACEGIJKLMOPQRST", ""), &[]);
    }

    #[test]
    fn labels_win() {
        let trace = launching("eabcdeabcdeabcd", "rank 0 step 000000011111111");
        assert!(trace.steps.iter().all(|step| step.source == StepSource::Label) && trace.steps.len() == 2);
    }

    /// A linear congruential generator: the same numbers everywhere.
    fn random(state: &mut u64, below: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    }

    #[test]
    fn planted_steps_are_found_whatever_they_are_made_of() {
        for seed in 0..400 {
            let mut state = seed;
            let lead: String = "xyz"[..random(&mut state, 4) as usize].into();
            let body: String =
                (0..4 + random(&mut state, 20)).map(|_| ['a', 'b', 'c', 'd'][random(&mut state, 4) as usize]).collect();
            let count = 3 + random(&mut state, 5) as usize;
            let mut kernels = lead.clone();
            for _ in 0..count {
                kernels += "e";
                kernels += &body;
                // One kernel in twenty is another.
                if body.len() >= 20 {
                    kernels.pop();
                    kernels += "w";
                }
            }
            let len = body.len() + 1;
            let expected: Vec<String> =
                (0..count).map(|at| format!("{}..{}", lead.len() + at * len, lead.len() + (at + 1) * len)).collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            check(&launching(&kernels, ""), &expected);
        }
    }
}
