//! The frames of sampled stacks: a row for each depth, outermost first. Neighbouring samples that share a frame, and all
//! that called it, are one block, from the first of them to the last. What the thread ran between them is not known.
//!
//! ```text
//! samples   │  │  │  │     │
//! main      ████████████████       main is in all five
//! f, g      ████   │  ██████       f in two of them, g in one, f again in two
//! ```

use crate::class::Classes;
use crate::items::{Item, Items, Source};
use std::ops::Range;
use std::sync::OnceLock;
use stepscope_base::StringId;
use stepscope_trace::{SliceId, StackSample, Trace};

/// Rows of a thread at most: frames that are further in are in the stacks of its samples.
const ROWS_MAX: usize = 100;

/// The blocks of one depth, which are made once somebody asks for them.
#[derive(Clone, Debug)]
pub(crate) struct SampledFrames {
    /// The samples of the thread.
    samples: Range<usize>,
    depth: usize,
    items: OnceLock<Items>,
}

impl SampledFrames {
    /// Of each depth of the stacks of these samples, and how many blocks it has.
    pub(crate) fn of_depths(trace: &Trace, samples: &Range<usize>) -> Vec<(Self, usize)> {
        let mut counts = Vec::new();
        each_run(trace, samples.clone(), |stack, shared, _| {
            counts.resize(counts.len().max(stack.len().min(ROWS_MAX)), 0);
            counts.iter_mut().take(stack.len()).skip(shared).for_each(|count| *count += 1);
        });
        let of = |depth| Self { samples: samples.clone(), depth, items: OnceLock::new() };
        counts.into_iter().enumerate().map(|(depth, count)| (of(depth), count)).collect()
    }

    /// Its blocks; a click on one selects the first of its samples.
    pub(crate) fn items(&self, trace: &Trace) -> &Items {
        self.items.get_or_init(|| {
            let mut blocks: Vec<Item> = Vec::new();
            each_run(trace, self.samples.clone(), |stack, shared, run| {
                let Some(frame) = stack.get(self.depth) else { return };
                let time_ns = |at: usize| trace.stack_samples[at].time_ns;
                let (start_ns, last_ns) = (time_ns(run.start), time_ns(run.end - 1));
                match blocks.last_mut() {
                    Some(block) if self.depth < shared => block.dur_ns = last_ns - block.start_ns,
                    _ => blocks.push(Item {
                        start_ns,
                        dur_ns: last_ns - start_ns,
                        name: *frame,
                        slice: Some(SliceId::from_index(trace.slices.len() + run.start)),
                    }),
                }
            });
            Items::of(trace, Source::Own(blocks.into()), &Classes::default())
        })
    }
}

/// Calls `each` for every run of samples that have the same stack: with its frames, outermost first, how many of these the
/// sample before it has, too, and the samples.
fn each_run(trace: &Trace, samples: Range<usize>, mut each: impl FnMut(&[StringId], usize, Range<usize>)) {
    let mut before: Vec<StringId> = Vec::new();
    let mut from = samples.start;
    for run in trace.stack_samples[samples].chunk_by(|one, next| one.stack == next.stack) {
        let stack = outermost_first(trace, &run[0]);
        let shared = before.iter().zip(&stack).take_while(|(one, other)| one == other).count();
        each(&stack, shared, from..from + run.len());
        (before, from) = (stack, from + run.len());
    }
}

/// The frames of a sample; none where its stack could not be read.
fn outermost_first(trace: &Trace, sample: &StackSample) -> Vec<StringId> {
    let mut frames: Vec<StringId> = sample.stack.into_iter().flat_map(|stack| trace.stacks.frames(stack)).collect();
    frames.reverse();
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::{Doing, Process, TraceBuilder, Track, TrackKind};

    /// The blocks of a depth: from, to, frame, and the sample behind it.
    type Block = (i64, i64, String, usize);

    fn blocks(trace: &Trace, samples: Range<usize>) -> Vec<Vec<Block>> {
        let rows = SampledFrames::of_depths(trace, &samples);
        let of_row = |(row, count): &(SampledFrames, usize)| {
            let items = row.items(trace);
            assert_eq!(items.len(), *count, "as many as were counted");
            let all = (0..items.len()).map(|at| items.get(trace, at));
            let sample = |item: Item| item.slice.expect("a sample").index() - trace.slices.len();
            all.map(|item| (item.start_ns, item.end_ns(), trace.strings.get(item.name).to_string(), sample(item)))
                .collect()
        };
        rows.iter().map(of_row).collect()
    }

    /// The definition, sample by sample and depth by depth, from the text of the stacks.
    fn by_text(trace: &Trace, samples: Range<usize>) -> Vec<Vec<Block>> {
        let stack = |at: usize| -> Vec<String> {
            let text = trace.stack_samples[at].stack.map(|stack| trace.stacks.text(stack, &trace.strings));
            text.map_or_else(Vec::new, |text| text.split(';').rev().map(str::to_string).collect())
        };
        let deepest = samples.clone().map(|at| stack(at).len()).max().unwrap_or(0);
        let of_depth = |depth: usize| {
            let mut found: Vec<Block> = Vec::new();
            for at in samples.clone().filter(|at| stack(*at).len() > depth) {
                let time_ns = trace.stack_samples[at].time_ns;
                let goes_on = at > samples.start && stack(at - 1).get(..=depth) == stack(at).get(..=depth);
                match found.last_mut().filter(|_| goes_on) {
                    Some(block) => block.1 = time_ns,
                    None => found.push((time_ns, time_ns, stack(at)[depth].clone(), at)),
                }
            }
            found
        };
        (0..deepest).map(of_depth).collect()
    }

    #[test]
    fn neighbours_that_share_a_frame_and_its_callers_are_one_block() {
        let trace = drawn("rank 0 cpu 1     aaa.......\nrank 0 samples 1 f.f..g.f.f");
        let block = |from: i64, to: i64, name: &str, at| (from * 1_000, to * 1_000, name.to_string(), at);
        let inner = vec![block(0, 2, "f.py(7): f", 0), block(5, 5, "g.py(7): g", 2), block(7, 9, "f.py(7): f", 3)];
        assert_eq!(blocks(&trace, 0..5), [vec![block(0, 9, "main.py(1): main", 0)], inner]);
        // What could not be read parts what is beside it.
        let mut trace = trace;
        trace.stack_samples[1].stack = None;
        let outer = vec![block(0, 0, "main.py(1): main", 0), block(5, 9, "main.py(1): main", 2)];
        assert_eq!(blocks(&trace, 0..5)[0], outer);
        assert_eq!(blocks(&trace, 1..2), [] as [Vec<Block>; 0]);
    }

    /// Stacks of no frame, one, two and three, some of which share their callers.
    const STACKS: [&[&str]; 8] = [
        &[],
        &["main"],
        &["main", "f"],
        &["main", "g"],
        &["main", "f", "h"],
        &["main", "g", "h"],
        &["other", "f"],
        &["main", "main"],
    ];

    fn sampled(picks: &[(usize, i64)]) -> Trace {
        let mut builder = TraceBuilder::new("samples");
        let process = builder.add_process(Process::default());
        let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        let mut time_ns = 0;
        for (pick, gap_ns) in picks {
            time_ns += gap_ns;
            let stack = STACKS[*pick].iter().fold(None, |caller, name| {
                let frame = builder.strings.intern(name);
                Some(builder.intern_stack(frame, caller))
            });
            let doing = Doing::Running;
            builder.add_stack_sample(StackSample { track, time_ns, stack, doing, ran_ns: None, runnable_ns: None });
        }
        builder.finish()
    }

    proptest! {
        #[test]
        fn blocks_are_what_the_stacks_say_one_by_one(picks in prop::collection::vec((0_usize..8, 1_i64..30), 0..60)) {
            let trace = sampled(&picks);
            prop_assert_eq!(trace.stack_samples.len(), picks.len());
            prop_assert_eq!(blocks(&trace, 0..picks.len()), by_text(&trace, 0..picks.len()));
            let half = picks.len() / 2;
            prop_assert_eq!(blocks(&trace, half..picks.len()), by_text(&trace, half..picks.len()));
        }
    }

    #[test]
    fn what_is_deeper_than_the_rows_is_left_out() {
        let mut builder = TraceBuilder::new("deep");
        let process = builder.add_process(Process::default());
        let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        let stack = (0..3 * ROWS_MAX).fold(None, |caller, depth| {
            let frame = builder.strings.intern(&format!("f{depth}"));
            Some(builder.intern_stack(frame, caller))
        });
        let doing = Doing::Running;
        builder.add_stack_sample(StackSample { track, time_ns: 0, stack, doing, ran_ns: None, runnable_ns: None });
        let rows = blocks(&builder.finish(), 0..1);
        assert_eq!((rows.len(), rows[ROWS_MAX - 1][0].2.as_str()), (ROWS_MAX, "f99"));
    }
}
