//! Sums of neighbouring slices of a track, made once, so that summing up a long window looks at few of its slices.

use crate::Class;
use rustc_hash::FxHashMap;
use stepscope_base::StringId;
use stepscope_trace::{SliceId, SliceKind, Trace};

/// Slices of a block.
pub(crate) const BLOCK: usize = 1 << 14;
/// Sums of a block at most: 6 bytes a slice. A block of more different slices has none.
const MAX_SUMS: usize = BLOCK / 8;

/// What slices have in common that are summed up together, however a window's sums are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Common {
    pub(crate) name: StringId,
    pub(crate) depth: u16,
    pub(crate) kind: SliceKind,
    pub(crate) class: Class,
}

/// The sum of some slices of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSum {
    pub(crate) common: Common,
    pub(crate) slices: u32,
    pub(crate) total_ns: i64,
    /// The time of slices of this block right inside of such, wherever those begin.
    pub(crate) inside_ns: i64,
    /// The longest, the first of several; none where only what is inside of such is here.
    pub(crate) longest: Option<(i64, SliceId)>,
}

/// The sums of a block, unless there are too many.
type Block = Option<Box<[BlockSum]>>;

/// The sums of all whole blocks of tracks, by track.
#[derive(Clone, Debug)]
pub(crate) struct SumBlocks {
    tracks: Vec<Box<[Block]>>,
}

impl SumBlocks {
    pub(crate) fn of(trace: &Trace, classes: &[Class]) -> Self {
        let of_track = |slices: std::ops::Range<usize>| {
            let firsts = slices.clone().step_by(BLOCK).filter(|first| first + BLOCK <= slices.end);
            firsts.map(|first| block(trace, classes, first..first + BLOCK)).collect()
        };
        let ranges = trace.tracks.iter().map(|track| track.slices.start as usize..track.slices.end as usize);
        Self { tracks: ranges.map(of_track).collect() }
    }

    /// No sums at all.
    #[cfg(test)]
    pub(crate) fn none(trace: &Trace) -> Self {
        Self { tracks: vec![Box::default(); trace.tracks.len()] }
    }

    /// The sums of a track's block, if they are kept.
    pub(crate) fn get(&self, track: usize, block: usize) -> Option<&[BlockSum]> {
        self.tracks[track].get(block)?.as_deref()
    }
}

fn block(trace: &Trace, classes: &[Class], slices: std::ops::Range<usize>) -> Block {
    let mut sums: Vec<BlockSum> = Vec::new();
    let mut places: FxHashMap<Common, u32> = FxHashMap::default();
    let mut place = |sums: &mut Vec<BlockSum>, slice: usize| {
        let (name, depth) = (trace.slices.name[slice], trace.slices.depth[slice]);
        let common = Common { name, depth, kind: trace.slices.kind[slice], class: classes[slice] };
        *places.entry(common).or_insert_with(|| {
            sums.push(BlockSum { common, slices: 0, total_ns: 0, inside_ns: 0, longest: None });
            sums.len() as u32 - 1
        }) as usize
    };
    for slice in slices {
        let dur_ns = trace.slices.dur_ns[slice];
        let at = place(&mut sums, slice);
        let sum = &mut sums[at];
        sum.slices += 1;
        sum.total_ns = sum.total_ns.saturating_add(dur_ns);
        if sum.longest.is_none_or(|(longest_ns, _)| dur_ns > longest_ns) {
            sum.longest = Some((dur_ns, SliceId::from_index(slice)));
        }
        if let Some(parent) = trace.slices.parent[slice] {
            // Whether what is inside is asked for depends on its depth.
            if trace.slices.depth[slice].checked_sub(1) != Some(trace.slices.depth[parent.index()]) {
                return None;
            }
            let at = place(&mut sums, parent.index());
            sums[at].inside_ns = sums[at].inside_ns.saturating_add(dur_ns);
        }
        if sums.len() > MAX_SUMS {
            return None;
        }
    }
    Some(sums.into())
}
