//! Clocks of hosts, from the collectives that their ranks leave together.
//!
//! ```text
//!            rank 0  ....[ waits  ]                  both leave at about the same moment,
//!            rank 1  .........[   ]                  and rank 0 not before rank 1 has come
//!
//! matched collectives ─▶ readings of two clocks ─▶ a line for each pair ─▶ a tree of pairs ─▶ corrections
//! ```

use crate::line::{Line, Reading};
use crate::whole_run::report_assumed_groups;
use crate::{Calls, Domain, Matched, Part, domains, parts};
use std::collections::BTreeMap;
use stepscope_base::percentiles::nearest_rank_of_unsorted;
use stepscope_base::units::format_ns;
use stepscope_trace::{ClockCorrection, ClockSource, FindingCode, ProcessId, Trace};

/// How clocks are put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Align {
    /// As the sources state them, unless they state none, or collectives contradict them.
    #[default]
    Auto,
    /// As the sources state them.
    Base,
    /// As collectives say.
    Collectives,
    /// Not at all: all clocks begin at the start.
    None,
}

/// `trace` on one clock. Findings say what was corrected, what contradicts, and of which collectives the group was assumed.
pub fn aligned(mut trace: Trace, align: Align) -> Trace {
    report_assumed_groups(&mut trace);
    let domains = domains(&trace);
    if align == Align::None {
        return begun_together(trace, &domains);
    }
    if domains.len() < 2 || trace.collectives.is_empty() {
        return trace;
    }
    let is_unknown = trace.findings.count(FindingCode::ClocksUnrelated) > 0;
    // Where clocks are stated, a contradiction may as well show that a group is not what was assumed.
    let counts = |part: &Part| !part.is_group_assumed || is_unknown || align == Align::Collectives;
    let mut pairs = {
        let parts = parts(&trace, &Calls::of(&trace));
        let matched = Matched::of(&parts);
        Pairs::of(&domains, matched.each_of(&parts).filter(|same| same.clone().next().is_some_and(counts)))
    };
    let stated = vec![Line::default(); domains.len()];
    let contradictions = pairs.contradictions(&stated);
    let is_corrected = match align {
        Align::Base | Align::None => false,
        Align::Collectives => true,
        Align::Auto => is_unknown || contradictions > 0,
    };
    if !is_corrected || pairs.of_pair.is_empty() {
        trace.findings.add_count(FindingCode::ClocksContradict, contradictions);
        return trace;
    }
    let tree = Tree::of(domains.len(), &mut pairs);
    trace.findings.add_count(FindingCode::ClocksContradict, pairs.contradictions(&tree.lines()));
    if tree.is_whole() {
        trace.findings.forget(FindingCode::ClocksUnrelated);
    }
    if let Some(joined) = trace.joined.as_mut().filter(|_| tree.is_whole() || !is_unknown) {
        joined.clocks = ClockSource::Collectives;
    }
    let mut corrections: Vec<ClockCorrection> =
        (0..trace.processes.len()).map(|at| ClockCorrection::none(ProcessId::from_index(at))).collect();
    for (domain, clock) in domains.iter().zip(&tree.clocks) {
        let Some(clock) = clock else { continue };
        if clock.line != Line::default() {
            trace.findings.add(FindingCode::ClocksCorrected, || clock.text(domain));
        }
        for process in &domain.processes {
            let correction = &mut corrections[process.index()];
            (correction.offset_ns, correction.drift) = (clock.line.offset_ns, clock.line.drift);
            correction.collectives = clock.collectives;
        }
    }
    trace.with_corrected_clocks(corrections)
}

/// `trace` with `offset_ns` added to the clock of each of these ranks. Offsets of one rank add up.
pub fn with_offsets(trace: Trace, offsets: &[(u32, i64)]) -> Trace {
    if offsets.is_empty() {
        return trace;
    }
    let offset_of = |rank: u32| {
        let of_rank = offsets.iter().filter(|(of, _)| *of == rank).map(|(_, offset_ns)| *offset_ns);
        of_rank.fold(0_i64, i64::saturating_add)
    };
    let corrections = trace.processes.iter().enumerate().map(|(at, process)| ClockCorrection {
        offset_ns: offset_of(process.rank),
        ..ClockCorrection::none(ProcessId::from_index(at))
    });
    let corrections = corrections.collect();
    trace.with_corrected_clocks(corrections)
}

/// `trace` as if what each clock measures had begun at one moment.
fn begun_together(mut trace: Trace, domains: &[Domain]) -> Trace {
    let mut first_ns: Vec<Option<i64>> = vec![None; trace.processes.len()];
    for track in &trace.tracks {
        if let Some(first) = track.slice_ids().next() {
            let (known, start_ns) = (&mut first_ns[track.process.index()], trace.slices.start_ns[first.index()]);
            *known = Some(known.map_or(start_ns, |known_ns: i64| known_ns.min(start_ns)));
        }
    }
    let mut corrections: Vec<ClockCorrection> =
        (0..trace.processes.len()).map(|at| ClockCorrection::none(ProcessId::from_index(at))).collect();
    for domain in domains {
        let start_ns = domain.processes.iter().filter_map(|process| first_ns[process.index()]).min().unwrap_or(0);
        domain.processes.iter().for_each(|process| corrections[process.index()].offset_ns = -start_ns);
    }
    if let Some(joined) = &mut trace.joined {
        joined.clocks = ClockSource::BegunTogether;
    }
    trace.with_corrected_clocks(corrections)
}

/// The clocks of a trace, two at a time: the one of the lowest rank in a collective, and each other one.
pub(crate) struct Pairs {
    of_pair: BTreeMap<(usize, usize), Vec<Reading>>,
}

/// The part of a domain in a collective.
struct Side {
    domain: usize,
    last_start_ns: i64,
    first_end_ns: i64,
    /// When the one in the middle ends.
    end_ns: i64,
}

impl Side {
    /// That of the domain that all of `ranks` are of; there is at least one. `ends_ns` is reused.
    fn of(ranks: &[OfRank], ends_ns: &mut Vec<i64>) -> Self {
        ends_ns.clear();
        ends_ns.extend(ranks.iter().map(|of| of.end_ns));
        let end_ns = nearest_rank_of_unsorted(ends_ns, 50).expect("it has a part");
        let least = ranks.iter().map(|of| of.end_ns).min();
        let most = ranks.iter().map(|of| of.start_ns).max();
        let (first_end_ns, last_start_ns) = least.zip(most).expect("it has a part");
        Self { domain: ranks[0].domain, last_start_ns, first_end_ns, end_ns }
    }
}

/// When a rank takes part in a collective, on the clock of its domain.
struct OfRank {
    domain: usize,
    start_ns: i64,
    end_ns: i64,
}

impl Pairs {
    /// From the parts of each collective.
    pub(crate) fn of<'a>(
        domains: &[Domain],
        collectives: impl Iterator<Item = impl Iterator<Item = &'a Part> + Clone>,
    ) -> Self {
        let processes = domains.iter().flat_map(|domain| &domain.processes).count();
        let mut domain_of = vec![0; processes];
        for (at, domain) in domains.iter().enumerate() {
            domain.processes.iter().for_each(|process| domain_of[process.index()] = at);
        }
        let mut of_pair: BTreeMap<(usize, usize), Vec<Reading>> = BTreeMap::new();
        let ends_together = |part: &Part| part.kind.is_some_and(|kind| kind.ends_together());
        let (mut of_ranks, mut ends_ns) = (Vec::new(), Vec::new());
        for parts in collectives.filter(|parts| parts.clone().next().is_some_and(ends_together)) {
            of_ranks.clear();
            of_ranks.extend(parts.map(|part| OfRank {
                domain: domain_of[part.process.index()],
                start_ns: part.start_ns,
                end_ns: part.end_ns,
            }));
            of_ranks.sort_by_key(|of| of.domain);
            let mut sides = of_ranks.chunk_by(|a, b| a.domain == b.domain).map(|of| Side::of(of, &mut ends_ns));
            let Some(first) = sides.next() else { continue };
            for other in sides {
                let reading = Reading {
                    at_ns: other.end_ns,
                    difference_ns: first.end_ns - other.end_ns,
                    least_ns: first.last_start_ns - other.first_end_ns,
                    most_ns: first.first_end_ns - other.last_start_ns,
                };
                of_pair.entry((first.domain, other.domain)).or_default().push(reading);
            }
        }
        Self { of_pair }
    }

    /// Of the clocks of lower ranks the one with which a domain has most readings, the lowest of those, and the readings.
    pub(crate) fn with_most_readings(&self, domain: usize) -> (Option<usize>, &[Reading]) {
        let with = self.of_pair.iter().filter(|((_, other), _)| *other == domain);
        let most = with.max_by_key(|((first, _), readings)| (readings.len(), std::cmp::Reverse(*first)));
        most.map_or((None, &[]), |((first, _), readings)| (Some(*first), readings.as_slice()))
    }

    /// How many readings show, with these corrections of domains, that one side leaves before the other has come.
    fn contradictions(&self, lines: &[Line]) -> u64 {
        let contradicts = |(first, other): (usize, usize), reading: &&Reading| {
            reading.contradicts(lines[other].at(reading.at_ns) - lines[first].at(reading.at_ns))
        };
        let of_pair = self.of_pair.iter();
        of_pair
            .map(|(pair, readings)| readings.iter().filter(|reading| contradicts(*pair, reading)).count() as u64)
            .sum()
    }
}

/// What brings a domain's clock to that of the lowest rank that it has to do with.
#[derive(Clone, Copy, Debug)]
struct Clock {
    line: Line,
    /// Collectives of the pair that says so.
    collectives: u64,
    /// By how much those differ from the line, in the middle.
    spread_ns: i64,
}

impl Clock {
    fn text(&self, domain: &Domain) -> String {
        let Self { line, collectives, spread_ns } = self;
        let drift = match line.drift.over(1_000_000_000) {
            0 => String::new(),
            ns => format!(", {} more each second", format_ns(ns)),
        };
        let (name, offset, spread) = (domain.name(), format_ns(line.offset_ns), format_ns(*spread_ns));
        format!("{name}: {offset}{drift}, as {collectives} collectives say within {spread}")
    }
}

/// The pairs with most readings that connect all domains that can be connected.
struct Tree {
    /// By domain; `None` when it shares no collective with any other.
    clocks: Vec<Option<Clock>>,
    parts: usize,
}

impl Tree {
    fn of(domains: usize, pairs: &mut Pairs) -> Self {
        let mut order: Vec<(usize, usize)> = pairs.of_pair.keys().copied().collect();
        order.sort_by_key(|pair| (std::cmp::Reverse(pairs.of_pair[pair].len()), *pair));
        // Each domain's part of the forest is named by its lowest domain.
        let mut part: Vec<usize> = (0..domains).collect();
        let mut neighbours: Vec<Vec<(usize, Clock)>> = vec![Vec::new(); domains];
        for (first, other) in order {
            let (a, b) = (part[first], part[other]);
            if a == b {
                continue;
            }
            part.iter_mut().filter(|of| **of == a.max(b)).for_each(|of| *of = a.min(b));
            let readings = pairs.of_pair.get_mut(&(first, other)).expect("it is one of them");
            let line = Line::through(readings);
            let mut off: Vec<i64> = readings.iter().map(|of| (of.difference_ns - line.at(of.at_ns)).abs()).collect();
            let spread_ns = nearest_rank_of_unsorted(&mut off, 50).unwrap_or(0);
            let clock = Clock { line, collectives: readings.len() as u64, spread_ns };
            neighbours[first].push((other, clock));
            neighbours[other].push((first, Clock { line: line.reversed(), ..clock }));
        }
        let mut clocks: Vec<Option<Clock>> = vec![None; domains];
        for root in (0..domains).filter(|at| part[*at] == *at && !neighbours[*at].is_empty()) {
            clocks[root] = Some(Clock { line: Line::default(), collectives: 0, spread_ns: 0 });
            let mut open = vec![root];
            while let Some(at) = open.pop() {
                let to_root = clocks[at].expect("it was reached").line;
                for (next, clock) in &neighbours[at] {
                    if clocks[*next].is_none() {
                        clocks[*next] = Some(Clock { line: clock.line.then(to_root), ..*clock });
                        open.push(*next);
                    }
                }
            }
        }
        part.sort_unstable();
        part.dedup();
        Self { clocks, parts: part.len() }
    }

    fn lines(&self) -> Vec<Line> {
        self.clocks.iter().map(|clock| clock.map_or(Line::default(), |clock| clock.line)).collect()
    }

    /// True when every domain is brought to the clock of the first.
    fn is_whole(&self) -> bool {
        self.parts == 1
    }
}

#[cfg(test)]
mod tests;
