//! Samples of stacks: a row for each thread that was sampled, and below it, while it is open, a row for each depth of the
//! stacks. A sample is a moment: it has no duration, and does not say how long anything takes. Among slices, it has a number
//! behind those of all slices.

use crate::details::Frame;
use crate::groups::{Group, GroupKind, RowKind};
use crate::items::{Item, Items, Source};
use crate::row::Content;
use crate::sampled_frames::SampledFrames;
use crate::{Class, Details, SliceSummary, Timeline};
use stepscope_base::units::format_ns;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{SliceId, SliceKind, StackSample, Trace, TrackId};

/// What a sample is, where slices have their kind.
const KIND: &str = "sample";

/// The sample that has this number.
pub(crate) fn sample_of(trace: &Trace, id: SliceId) -> Option<&StackSample> {
    trace.stack_samples.get(id.index().checked_sub(trace.slices.len())?)
}

/// The sample of a rank that was taken at a moment, in a line of this name.
pub(crate) fn named_sample(
    trace: &Trace,
    rank: u32,
    time_ns: i64,
    is_it: impl Fn(StringId) -> bool,
) -> Option<SliceId> {
    let is_named = |sample: &StackSample| {
        sample.time_ns == time_ns && trace.rank_of_track(sample.track) == rank && is_it(line_of(trace, sample))
    };
    let at = trace.stack_samples.iter().position(is_named)?;
    Some(SliceId::from_index(trace.slices.len() + at))
}

/// The line that a sample is in: the innermost frame. The empty text where the stack could not be read.
fn line_of(trace: &Trace, sample: &StackSample) -> StringId {
    sample.stack.and_then(|stack| trace.stacks.frames(stack).next()).unwrap_or(StringTable::EMPTY)
}

impl Timeline {
    /// The row of a thread's samples, and those of their frames; `None` without any.
    pub(crate) fn samples(&mut self, trace: &Trace, track: TrackId, name: &str, rank: u32) -> Option<Group> {
        let first = trace.stack_samples.partition_point(|sample| sample.track < track);
        let end = trace.stack_samples.partition_point(|sample| sample.track <= track);
        // Beyond these numbers a tile could not tell them.
        if first == end || u32::try_from(trace.slices.len() + trace.stack_samples.len()).is_err() {
            return None;
        }
        let item = |at: usize| Item {
            start_ns: trace.stack_samples[at].time_ns,
            dur_ns: 0,
            name: line_of(trace, &trace.stack_samples[at]),
            slice: Some(SliceId::from_index(trace.slices.len() + at)),
        };
        let items = Items::of(trace, Source::Own((first..end).map(item).collect()), &self.classes);
        let mut group = Group::new(format!("{name} · samples"), rank, GroupKind::Track);
        let mut info = self.info(&group.name, RowKind::Samples, rank, 0, items.len());
        info.track = Some(track.0);
        self.sample_row[track.index()] = Some(info.id);
        group.rows.push(self.add(info, Content::Items(items)));
        for (depth, (frames, blocks)) in SampledFrames::of_depths(trace, &(first..end)).into_iter().enumerate() {
            let mut info = self.info(&group.name, RowKind::SampledFrames, rank, depth, blocks);
            info.track = Some(track.0);
            group.rows.push(self.add(info, Content::SampledFrames(frames)));
        }
        group.summary = group.rows.first().map(|row| row.id);
        group.is_open = false;
        Some(group)
    }

    /// A summary of a sample.
    pub(crate) fn sample_summary(&self, trace: &Trace, id: SliceId, sample: &StackSample) -> SliceSummary {
        let row = self.sample_row[sample.track.index()];
        SliceSummary {
            id: id.0,
            name: trace.strings.get(line_of(trace, sample)).to_string(),
            kind: KIND,
            class: Class::Python,
            row,
            rank: trace.rank_of_track(sample.track),
            track: row.map(|row| self.rows[row as usize].info.name.clone()).unwrap_or_default(),
            start_ns: sample.time_ns,
            dur_ns: 0,
            is_unfinished: false,
        }
    }

    /// Everything known of a sample.
    pub(crate) fn sample_details(&self, trace: &Trace, id: SliceId, sample: &StackSample) -> Details {
        let rank = trace.rank_of_track(sample.track);
        let step = trace.steps.iter().find(|step| step.rank == rank && step.span.contains(sample.time_ns));
        let around: Vec<SliceId> = trace.open_slices(sample.track, sample.time_ns).collect();
        let module = around.iter().filter(|id| trace.slices.kind(**id) == SliceKind::Module);
        let mut args = vec![("what the thread does".to_string(), sample.doing.as_str().replace('_', " "))];
        let since =
            [("ran since the sample before", sample.ran_ns), ("waited for a processor since", sample.runnable_ns)];
        args.extend(since.iter().filter_map(|(name, ns)| Some((name.to_string(), format_ns((*ns)?)))));
        let frames = sample.stack.into_iter().flat_map(|stack| trace.stacks.frames(stack));
        Details {
            slice: self.sample_summary(trace, id, sample),
            ancestors: around.iter().map(|id| self.summary(trace, *id)).collect(),
            children: 0,
            self_ns: 0,
            step: step.map(|step| step.number),
            args,
            stack: frames.map(|frame| Frame::parse(trace.strings.get(frame))).collect(),
            module: module.map(|id| trace.slice_name(*id).to_string()).collect(),
            op: None,
            launch: None,
            launched: Vec::new(),
            flows: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiles::tests::columns;
    use crate::{RowId, details, named_slice};
    use stepscope_base::Span;
    use stepscope_trace::drawn::drawn;

    /// Of 10 us: an operator, and four samples of its thread, one of them in the operator.
    const DRAWING: &str = "
        rank 0 step      0000011111
        rank 0 cpu 1     aaa.......
        rank 0 samples 1 .a...f.G.f
        rank 0 cpu 2     ........bb";

    fn rows(timeline: &Timeline) -> Vec<RowId> {
        let is_of_samples = |row: &&crate::row::Row| row.info.kind == RowKind::Samples;
        timeline.rows.iter().filter(is_of_samples).map(|row| row.info.id).collect()
    }

    #[test]
    fn each_sampled_thread_has_a_row_in_which_every_sample_is_a_moment() {
        let trace = drawn(DRAWING);
        let timeline = Timeline::of(&trace);
        let [row] = rows(&timeline)[..] else { panic!("one thread was sampled") };
        let threads = &timeline.groups()[0].groups[0];
        let names: Vec<&str> = threads.groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["thread 1", "thread 1 · samples", "thread 2"]);
        let tiles = columns(&timeline, &trace, &[row], 0, 0, 20);
        let told: Vec<(f64, f64, &str)> = (0..tiles.start_ns.len())
            .map(|at| (tiles.start_ns[at], tiles.dur_ns[at], tiles.names[tiles.name[at] as usize].as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (1_000.0, 0.0, "a.py(7): a"),
                (5_000.0, 0.0, "f.py(7): f"),
                (7_000.0, 0.0, "g.py(7): g"),
                (9_000.0, 0.0, "f.py(7): f"),
            ]
        );
        assert!(tiles.class.iter().all(|class| *class == Class::Python as u8));
        // From afar they are counted, and take no time.
        let tiles = columns(&timeline, &trace, &[row], 20, 0, 1);
        assert_eq!((&tiles.count[..], &tiles.busy_ns[..]), (&[4][..], &[0.0][..]));
        assert_eq!(rows(&Timeline::of(&drawn("rank 0 cpu 1 a"))), []);
    }

    #[test]
    fn below_the_samples_are_their_frames_which_lead_to_a_sample() {
        let trace = drawn(DRAWING);
        let timeline = Timeline::of(&trace);
        let group = &timeline.groups()[0].groups[0].groups[1];
        let [samples, outer, inner] = &group.rows[..] else { panic!("stacks of two frames") };
        assert_eq!((group.is_open, group.summary), (false, Some(samples.id)));
        assert_eq!([outer.kind, inner.kind], [RowKind::SampledFrames; 2]);
        assert_eq!([(outer.depth, outer.slices), (inner.depth, inner.slices)], [(0, 1), (1, 4)]);
        let tiles = columns(&timeline, &trace, &[outer.id], 0, 0, 20);
        assert_eq!(tiles.names, ["main.py(1): main"]);
        assert!(tiles.start_ns.iter().all(|start_ns| *start_ns == 1_000.0));
        assert!(tiles.dur_ns.iter().all(|dur_ns| *dur_ns == 8_000.0));
        let at = |row, at_ns| timeline.slice_at(&trace, row, at_ns);
        let sample = |nth| Some(SliceId::from_index(trace.slices.len() + nth));
        assert_eq!([at(outer.id, 1_000), at(outer.id, 8_999), at(outer.id, 9_001)], [sample(0), sample(0), None]);
        assert_eq!([at(inner.id, 7_000), at(inner.id, 8_000)], [sample(2), None], "between samples nothing is known");
        // They are no slices: sums have nothing of them.
        assert_eq!(timeline.sums(&trace, &[outer.id], Span::new(0, 10_000), crate::SumBy::Name, 9).slices, 0);
    }

    #[test]
    fn a_sample_is_found_like_a_slice_and_has_its_stack() {
        let trace = drawn(DRAWING);
        let timeline = Timeline::of(&trace);
        let row = rows(&timeline)[0];
        let first = timeline.slice_at(&trace, row, 1_000).expect("a sample");
        let of = details(&timeline, &trace, first).expect("details");
        assert_eq!((of.slice.kind, of.slice.dur_ns, of.slice.row, of.step), ("sample", 0, Some(row), Some(0)));
        let stack: Vec<_> = of.stack.iter().map(|frame| (frame.file.as_deref(), frame.line)).collect();
        assert_eq!(stack, [(Some("a.py"), Some(7)), (Some("main.py"), Some(1))]);
        assert_eq!(of.args, [("what the thread does".to_string(), "running".to_string())]);
        let around: Vec<&str> = of.ancestors.iter().map(|slice| slice.name.as_str()).collect();
        assert_eq!(around, ["a", "ProfilerStep#0"]);
        assert_eq!(timeline.slice_at(&trace, row, 1_001), None, "it is a moment");
        let next = timeline.next_on_row(&trace, row, first).expect("another");
        assert_eq!(details(&timeline, &trace, next).expect("details").slice.name, "f.py(7): f");
        assert_eq!(timeline.previous_on_row(&trace, row, next), Some(first));
        assert_eq!(named_slice(&trace, 0, 5_000, "f.py(7): f"), Some(next));
        assert_eq!(named_slice(&trace, 0, 5_001, "f.py(7): f"), None);
        let listed = timeline.list(&trace, &[row], Span::new(0, 8_000), 99);
        assert_eq!(listed.iter().map(|slice| slice.start_ns).collect::<Vec<_>>(), [1_000, 5_000, 7_000]);
        let last = SliceId::from_index(trace.slices.len() + 3);
        assert_eq!(timeline.next_on_row(&trace, row, last), None);
        assert_eq!(details(&timeline, &trace, SliceId(last.0 + 1)), None);
    }
}
