//! The files of a run: their summaries, joined and on one clock, and their events, on the same clock.

use super::held::{Held, HeldTrace, free_bytes};
use super::summaries::READ_AT_ONCE;
use crate::open::{on_one_clock, told};
use crate::{AnalysisContext, EngineError, OpenOptions, Selection, Trace, each};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::sync::Arc;
use stepscope_analyses::{
    Analysis, DeviceWork, FirstIds, Joined, Launched, Needs, Outcome, RankAdvice, RankResults, RankRows, Ranks,
    SharedResults, Table,
};
use stepscope_base::Span;
use stepscope_import::{ImportError, JoinedFiles, Parts, Progress};
use stepscope_summary::Summary;
use stepscope_trace::{ClockCorrection, Contents, Findings, ProcessId, Retiming, SliceId, merge};

/// What work of devices that is not in the trace of a run is called there.
pub const DEVICE_WORK: &str = "device work";

/// The files of a run, each of other ranks or of another time.
pub(super) struct Files {
    options: OpenOptions,
    parts: Parts,
    joined: Vec<File>,
    /// Places in `joined`: the files of one rank are together. By rank.
    groups: Vec<Vec<usize>>,
    held: Held,
}

/// What is known of a file that was joined, or of a rank of a run of our own recorder.
struct File {
    /// Its place in the parts of the run.
    part: usize,
    /// Where it begins in the run, and where what follows it would begin if it were the first.
    first: FirstIds,
    size: FirstIds,
    /// A moment of it, and what that is in the run before clocks are corrected.
    anchor: Option<(i64, i64)>,
    /// How its times become those of the run.
    retiming: Retiming,
    /// Without its trace, which is in that of the run. Its rows have the times of the run.
    summary: Summary,
    /// Its ranks in the run.
    ranks: Vec<u32>,
}

impl Files {
    /// The run of these parts, of each of which `summaries` has one; `None` where all events have to be known at once.
    pub(super) fn open(
        parts: Parts,
        summaries: Vec<Result<Summary, ImportError>>,
        options: &OpenOptions,
    ) -> Result<Option<(Trace, Self)>, EngineError> {
        let mut made: Vec<_> = summaries.into_iter().map(Some).collect();
        let mut read = BTreeMap::new();
        let joined = parts.join(&options.joining, &mut |at: usize| {
            let mut summary = made[at].take().expect("each file is asked for once")?;
            let trace = std::mem::take(&mut summary.trace);
            read.insert(at, (summary, FirstIds::default().after(&trace), trace.slices.start_ns.first().copied()));
            Ok(trace)
        });
        let joined = joined.map_err(|error| told(&error, &path_of(&parts, 0)))?;
        let mut kept = placed(&joined, read);
        if overlap(&kept, &joined.trace) {
            return Ok(None);
        }
        let mut trace = on_one_clock(joined.trace, options)?;
        trace.strings.intern(DEVICE_WORK);
        kept.iter_mut().for_each(|file| file.take_clock(&trace));
        let groups = groups(kept.iter().map(|file| file.ranks.as_slice()));
        let held = Held::new(options.max_memory.unwrap_or_else(free_bytes));
        Ok(Some((trace, Self { options: options.clone(), parts, joined: kept, groups, held })))
    }

    pub(super) fn placed(&self) -> Vec<(FirstIds, &RankResults)> {
        self.joined.iter().map(|file| (file.first, &file.summary.results)).collect()
    }

    /// When the devices of each rank do anything but communicate.
    pub(super) fn work(&self) -> impl Iterator<Item = &DeviceWork> {
        self.joined.iter().flat_map(|file| file.summary.results.work())
    }

    /// What all files have together.
    pub(super) fn contents(&self) -> Contents {
        self.joined.iter().map(|file| file.summary.contents).fold(Contents::default(), Contents::with)
    }

    /// Whether the events of these ranks fit into memory at once.
    pub(super) fn fit_in_memory(&self, ranks: &Ranks) -> bool {
        self.held.has_room_for(self.asked(ranks).map(|group| self.held_bytes(group)).sum())
    }

    /// What the events of some files take.
    fn held_bytes(&self, files: &[usize]) -> u64 {
        files.iter().map(|at| self.joined[*at].summary.contents.held_bytes).sum()
    }

    /// The groups of the ranks asked for.
    fn asked<'a>(&'a self, ranks: &'a Ranks) -> impl Iterator<Item = &'a Vec<usize>> {
        let is_asked = |at: &usize| self.joined[*at].ranks.iter().any(|rank| ranks.has(*rank));
        self.groups.iter().filter(move |group| group.iter().any(is_asked))
    }

    /// Whether what is needed is put together from results of each rank, and not from the events of all ranks asked for:
    /// because these do not fit, or because results may be kept.
    pub(super) fn are_by_rank(&self, needs: Needs, selection: &Selection) -> bool {
        let may_be_kept = matches!(needs, Needs::Rows | Needs::RowsTogether | Needs::EachRankKept);
        let are_several = || self.asked(&selection.ranks).nth(1).is_some();
        may_be_kept && (is_kept(selection) || are_several()) || !self.fit_in_memory(&selection.ranks)
    }

    /// The events of the ranks asked for at once, in the times of `run`.
    pub(super) fn events(&self, run: &Trace, ranks: &Ranks) -> Result<Arc<HeldTrace>, EngineError> {
        let files: Vec<usize> = self.asked(ranks).flatten().copied().collect();
        self.held.get(files.clone(), self.held_bytes(&files), || self.read(run, &files))
    }

    /// All events of some files, in the times of `run`.
    fn read(&self, run: &Trace, files: &[usize]) -> Result<Trace, EngineError> {
        let traces = each(files.len(), READ_AT_ONCE, |at| self.joined[files[at]].read(&self.parts, &self.options));
        let mut traces = traces.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut trace = match traces.len() {
            1 => traces.remove(0),
            _ => merge(run.name.clone(), traces.into_iter().map(|trace| (trace, 0)).collect(), None),
        };
        trace.start_unix_ns = run.start_unix_ns;
        let of_file = |at: &usize| self.joined[*at].processes().filter_map(|process| run.clocks.get(process));
        let clocks = files.iter().flat_map(of_file).enumerate();
        let clocks = clocks.map(|(at, clock)| ClockCorrection { process: ProcessId::from_index(at), ..*clock });
        trace.clocks = clocks.collect();
        trace.joined.clone_from(&run.joined);
        trace.findings.clone_from(&run.findings);
        Ok(trace)
    }

    /// What `make` makes of each group of the ranks asked for, by rank: of as many at once as fit, and at least of one.
    fn of_groups<'a, T: Send + Sync>(
        &'a self,
        ranks: &'a Ranks,
        make: impl Fn(&'a [usize]) -> Result<T, EngineError> + Sync,
    ) -> Result<Vec<T>, EngineError> {
        let groups: Vec<&Vec<usize>> = self.asked(ranks).collect();
        let most_bytes = groups.iter().map(|group| self.held_bytes(group)).max().unwrap_or(0);
        let at_once = (1..=READ_AT_ONCE).rev().find(|count| self.held.has_room_for(most_bytes * *count as u64));
        each(groups.len(), at_once.unwrap_or(1), |at| make(groups[at])).into_iter().collect()
    }

    /// The device time asked for.
    pub(super) fn launched(&self, run: &Trace, selection: &Selection) -> Result<Launched, EngineError> {
        let launched = self.of_groups(&selection.ranks, |group| {
            Ok(Launched::asked_for(&AnalysisContext::new(&self.read(run, group)?, selection)))
        })?;
        Ok(launched.into_iter().sum())
    }

    /// What analyses share of the ranks asked for, put together from the results of each.
    pub(super) fn joined(
        &self,
        run: &Trace,
        joined: Joined,
        selection: &Selection,
    ) -> Result<SharedResults, EngineError> {
        let results = self.of_groups(&selection.ranks, |group| {
            Ok(joined.of(&AnalysisContext::new(&self.read(run, group)?, selection)))
        })?;
        Ok(joined.join(results))
    }

    /// What analyses share of the rows of the ranks asked for.
    pub(super) fn rows(&self, run: &Trace, selection: &Selection) -> Result<SharedResults, EngineError> {
        let rows = self.of_groups(&selection.ranks, |group| self.rows_of(run, group, selection))?;
        Ok(RankRows::joined(rows.iter().map(|(rows, advice)| (rows.as_ref(), advice.as_ref()))))
    }

    fn rows_of(
        &self,
        run: &Trace,
        group: &[usize],
        selection: &Selection,
    ) -> Result<(Cow<'_, RankRows>, Cow<'_, RankAdvice>), EngineError> {
        if let Some(File { summary, .. }) = self.kept(group, selection) {
            let in_steps = summary.rows_in_steps.as_ref().filter(|_| selection.complete_steps);
            let rows = in_steps.unwrap_or(&summary.rows);
            return Ok((Cow::Borrowed(rows), Cow::Borrowed(&summary.advice)));
        }
        let trace = self.read(run, group)?;
        let context = AnalysisContext::new(&trace, selection);
        Ok((Cow::Owned(RankRows::of(&context)), Cow::Owned(RankAdvice::of(&context))))
    }

    /// The file of a group whose summary has the answer to `selection`.
    fn kept(&self, group: &[usize], selection: &Selection) -> Option<&File> {
        let &[only] = group else { return None };
        let file = &self.joined[only];
        let is_whole = file.ranks.iter().all(|rank| selection.has_rank(*rank));
        (is_kept(selection) && is_whole).then_some(file)
    }

    /// The rows of each rank, by rank.
    pub(super) fn one_after_the_other(
        &self,
        run: &Trace,
        analysis: &Analysis,
        selection: &Selection,
    ) -> Result<Outcome, EngineError> {
        let found = self.of_groups(&selection.ranks, |group| {
            let file = self.kept(group, selection).filter(|_| !selection.complete_steps);
            let kept = file.and_then(|file| Some((file.table(analysis)?, file.summary.rows.launched())));
            if let Some((table, launched)) = kept {
                return Ok((table, launched, Findings::default()));
            }
            let trace = self.read(run, group)?;
            let context = AnalysisContext::new(&trace, selection);
            let Outcome { table, findings, .. } = (analysis.run)(&context);
            Ok((table, Launched::asked_for(&context), findings))
        })?;
        // An analysis of nothing has the columns, and says whether it rests on launches.
        let launched: Launched = found.iter().map(|(_, launched, _)| *launched).sum();
        let (nothing, shared) = (Trace::default(), SharedResults::resting_on(launched.coverage()));
        let mut outcome = (analysis.run)(&AnalysisContext::with_results(&nothing, selection, shared));
        for (rows, _, findings) in found {
            outcome.table.append(rows);
            outcome.findings.extend(&findings);
        }
        Ok(outcome)
    }
}

impl File {
    /// From when to when it is, in the joined trace.
    fn times(&self, joined: &Trace) -> Option<Span> {
        let first = self.first.slice as usize;
        let slices = (first..first + self.size.slice as usize).map(SliceId::from_index);
        let spans = slices.map(|slice| joined.slices.span(slice));
        spans.reduce(|a, b| Span::new(a.start_ns.min(b.start_ns), a.end_ns.max(b.end_ns)))
    }

    /// Its processes in the run.
    fn processes(&self) -> Range<usize> {
        let first = self.first.process as usize;
        first..first + self.size.process as usize
    }

    /// Takes over how the clocks of `run` were put together.
    fn take_clock(&mut self, run: &Trace) {
        let first = self.first.process as usize;
        let own = |(at, process): (usize, usize)| match run.clocks.get(process) {
            Some(correction) => ClockCorrection { process: ProcessId::from_index(at), ..*correction },
            None => ClockCorrection::none(ProcessId::from_index(at)),
        };
        self.retiming.corrections = self.processes().enumerate().map(own).collect();
        let Some((own_ns, joined_ns)) = self.anchor else { return };
        self.retiming.shift_ns = joined_ns - own_ns;
        // What moved all clocks alike is what the corrections do not say.
        let slice = self.first.slice as usize;
        let process = run.tracks[run.slices.track[slice].index()].process.index() - first;
        let process = ProcessId::from_index(process);
        self.retiming.before_ns = self.retiming.time(process, own_ns) - run.slices.start_ns[slice];
        let retiming = &self.retiming;
        self.summary.set_moments(|time_ns| retiming.time(ProcessId(0), time_ns));
    }

    /// The rows of an analysis that its summary keeps, in the times of the run.
    fn table(&self, analysis: &Analysis) -> Option<Table> {
        let mut table = self.summary.table(analysis.name)?;
        if self.anchor.is_some() {
            table.set_moments(|time_ns| self.retiming.time(ProcessId(0), time_ns));
        }
        Some(table)
    }

    /// All of its events, with the rank and the times that it has in the run.
    fn read(&self, parts: &Parts, options: &OpenOptions) -> Result<Trace, EngineError> {
        let read = parts.open(self.part, &options.joining, &Progress::default());
        let mut trace = read.map_err(|error| told(&error, &path_of(parts, self.part)))?;
        if let ([rank], true) = (self.ranks.as_slice(), trace.ranks() != self.ranks) {
            trace.set_rank(*rank);
        }
        if trace.processes.len() != self.retiming.corrections.len() {
            let (what, hint) = ("the file has changed since it was opened", "open the run again");
            let path = path_of(parts, self.part);
            return Err(EngineError::Import { what: what.into(), path, hint: Some(hint.into()) });
        }
        Ok(trace.retimed(self.retiming.clone()))
    }
}

/// Where a part of a run is.
pub(super) fn path_of(parts: &Parts, at: usize) -> PathBuf {
    let (folder, name) = parts.name_in_folder(at);
    folder.join(name)
}

/// Whether rows of each file are kept of the part that is asked for: all of it, or its complete steps.
fn is_kept(selection: &Selection) -> bool {
    Selection { ranks: Ranks::default(), complete_steps: false, ..selection.clone() } == Selection::default()
}

/// Whether two files say something of one rank and one moment, which then belongs together.
fn overlap(files: &[File], joined: &Trace) -> bool {
    let mut times_of: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
    for file in files {
        file.ranks.iter().for_each(|rank| times_of.entry(*rank).or_default().extend(file.times(joined)));
    }
    times_of.values_mut().any(|times| {
        times.sort_unstable();
        times.windows(2).any(|pair| pair[1].start_ns < pair[0].end_ns)
    })
}

/// The places of the files whose ranks do not come before or after those of all others, by rank.
fn groups<'a>(ranks_of_files: impl Iterator<Item = &'a [u32]>) -> Vec<Vec<usize>> {
    let mut groups: Vec<(RangeInclusive<u32>, Vec<usize>)> = Vec::new();
    for (at, ranks) in ranks_of_files.enumerate() {
        let (Some(first), Some(last)) = (ranks.first(), ranks.last()) else { continue };
        let (mut first, mut last, mut places) = (*first, *last, vec![at]);
        groups.retain_mut(|(known, of_known)| {
            let is_apart = *known.end() < first || last < *known.start();
            if !is_apart {
                (first, last) = (first.min(*known.start()), last.max(*known.end()));
                places.append(of_known);
            }
            is_apart
        });
        places.sort_unstable();
        groups.push((first..=last, places));
    }
    groups.sort_by_key(|(ranks, _)| *ranks.start());
    groups.into_iter().map(|(_, places)| places).collect()
}

/// The files that were joined, in their order. Each has the rank that the run gives it.
fn placed(joined: &JoinedFiles, mut read: BTreeMap<usize, (Summary, FirstIds, Option<i64>)>) -> Vec<File> {
    let mut first = FirstIds::default();
    let mut placed = Vec::new();
    for at in &joined.files {
        let (mut summary, size, own_ns) = read.remove(at).expect("what was joined was read");
        let next = first.plus(size);
        let processes = &joined.trace.processes[first.process as usize..next.process as usize];
        let ranks: BTreeSet<u32> = processes.iter().map(|process| process.rank).collect();
        if let (Some(rank), 1) = (ranks.first(), ranks.len()) {
            summary.set_rank(*rank);
        }
        let anchor = own_ns.map(|own_ns| (own_ns, joined.trace.slices.start_ns[first.slice as usize]));
        let (part, retiming) = (*at, Retiming::default());
        placed.push(File { part, first, size, anchor, retiming, summary, ranks: ranks.into_iter().collect() });
        first = next;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::groups;

    #[test]
    fn groups_come_by_rank() {
        let of = |ranks: &[&[u32]]| groups(ranks.iter().copied());
        assert_eq!(of(&[&[1], &[0]]), [[1], [0]]);
        assert_eq!(of(&[&[2], &[0], &[2]]), [vec![1], vec![0, 2]]);
        // The rows of rank 1 come between those of one file.
        assert_eq!(of(&[&[5], &[0, 2], &[1], &[3, 4]]), [vec![1, 2], vec![3], vec![0]]);
    }
}
