//! What to change, from `advice`.

use crate::{AnalysisContext, Selection, Trace, fit_name};
use serde::Serialize;
use stepscope_analyses::advice::{self, Advice};
use stepscope_base::units::{format_ns, format_ratio};

/// One piece of advice.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AdviceRow {
    /// What names it among all advice on the run.
    pub id: String,
    /// The rank it is about; none for all.
    pub rank: Option<u32>,
    /// The device it is about.
    pub device: Option<i64>,
    /// The rule's stable code.
    pub rule: &'static str,
    /// What is wrong, in a few words.
    pub fault: &'static str,
    /// `high`, `medium` or `low`.
    pub priority: &'static str,
    /// What there is to gain; none when that is not known.
    pub gain_ns: Option<i64>,
    /// What it would still gain if all that other advice names more exactly were gone; none when that is not known.
    pub own_gain_ns: Option<i64>,
    /// The least that is gained: 0 of an upper bound.
    pub gain_low_ns: Option<i64>,
    /// The most that is gained; none of a lower bound.
    pub gain_high_ns: Option<i64>,
    /// `gain_ns` as a share of the window that the rule looks at.
    pub gain_ratio: Option<f64>,
    /// How the gain is estimated.
    pub gain_estimate: Option<&'static str>,
    /// What that means in a sentence: `about`, `at least` or `up to` so much.
    pub gain_words: Option<&'static str>,
    /// What the gain rests on: a forecast, a lower or an upper bound, and of what.
    pub gain_method: Option<&'static str>,
    /// The range of the gain and its share, as every report says it.
    pub gain_says: String,
    /// What is so, in one sentence with its numbers.
    pub says: String,
    /// What to do about it.
    pub to_do: &'static str,
    /// The change as a diff, where it is a mechanical one.
    pub diff: Option<&'static str>,
    /// What would be seen if it were not so.
    pub disproof: &'static str,
    /// The analysis that has the numbers.
    pub evidence: &'static str,
    /// A place in the timeline.
    pub start_ns: Option<i64>,
    /// What is there.
    pub slice: Option<String>,
    /// The line of the program to look at.
    pub line: Option<String>,
    /// Rows of the same rule for other ranks and devices, with less to gain.
    pub others: usize,
}

impl AdviceRow {
    /// The fault, where it is and what there is to gain where that is known, in one sentence. `is_named` where a person has to be told which
    /// rank it is about.
    pub fn answer(&self, is_named: bool) -> String {
        let rank = self.rank.filter(|_| is_named).map(|rank| format!("rank {rank}"));
        let place = self.line.clone().or_else(|| self.slice.as_ref().map(|slice| fit_name(slice, 60)));
        let at: Vec<String> = rank.into_iter().chain(place).collect();
        let at = if at.is_empty() { String::new() } else { format!(" ({})", at.join(", ")) };
        match self.gain_ns {
            Some(_) => format!("{}{at}: {} to gain.", self.fault, self.gain_says),
            None => format!("{}{at}.", self.fault),
        }
    }

    /// `is_named` where a person has to be told which rank it is about.
    fn of(row: &Advice, is_named: bool) -> Self {
        let rank = row.rank.filter(|_| is_named);
        Self {
            id: row.id.clone(),
            rank: row.rank,
            device: row.device,
            rule: row.rule.as_str(),
            fault: row.fault(),
            priority: row.priority.as_str(),
            gain_ns: row.gain.map(|(ns, _)| ns),
            own_gain_ns: row.own_gain_ns,
            gain_low_ns: row.gain_range().map(|(low_ns, _)| low_ns),
            gain_high_ns: row.gain_range().and_then(|(_, high_ns)| high_ns),
            gain_ratio: row.gain_ratio(),
            gain_estimate: row.gain.map(|(_, estimate)| estimate.as_str()),
            gain_words: row.gain.map(|(_, estimate)| estimate.words()),
            gain_method: row.gain_method(),
            gain_says: gain_says(row),
            says: rank.map_or_else(|| row.says.clone(), |rank| format!("Rank {rank}: {}", row.says)),
            to_do: row.to_do(),
            diff: row.diff(),
            disproof: row.disproof(),
            evidence: row.evidence(),
            start_ns: row.place.as_ref().map(|place| place.start_ns),
            slice: row.place.as_ref().and_then(|place| place.slice.clone()),
            line: row.line.clone(),
            others: 0,
        }
    }

    /// Every row of the analysis `advice`, in its order.
    pub fn all(context: &AnalysisContext<'_>) -> Vec<Self> {
        let is_named = are_several(context.trace, context.selection);
        advice::rows(context).iter().map(|row| Self::of(row, is_named)).collect()
    }

    /// The first row of each rule, in the order of `rows`; the rest are counted. What one rule says of several
    /// operators of the same rank stays.
    pub(super) fn first_of_each(context: &AnalysisContext<'_>) -> Vec<Self> {
        let is_named = are_several(context.trace, context.selection);
        let mut firsts: Vec<Self> = Vec::new();
        for row in advice::rows(context) {
            let is_elsewhere = |first: &Self| (first.rank, first.device) != (row.rank, row.device);
            match firsts.iter_mut().find(|first| first.rule == row.rule.as_str()) {
                Some(first) if is_elsewhere(first) => first.others += 1,
                _ => firsts.push(Self::of(row, is_named)),
            }
        }
        firsts
    }
}

/// `about 356 ms, 33.9 %`, and `210 ms to 356 ms, 33.9 %` where other advice is about as much of it, or it may be wrong by as
/// much, as can be seen in the numbers; the share is that of the forecast. `at least 210 ms, 20.0 %`; `up to 356 ms, 33.9 % (210 ms its own)`.
fn gain_says(row: &Advice) -> String {
    let (Some((gain_ns, estimate)), Some((low_ns, high_ns))) = (row.gain, row.gain_range()) else {
        return "gain not known".into();
    };
    let share = |ns: i64| {
        let ratio = row.gain_ratio().filter(|_| gain_ns > 0);
        ratio.map_or(String::new(), |ratio| format!(", {}", format_ratio(ratio * ns as f64 / gain_ns as f64)))
    };
    let is_part = |part_ns: i64, of_ns: i64| part_ns < of_ns && format_ns(part_ns) != format_ns(of_ns);
    let words = estimate.words();
    match high_ns {
        None => format!("{words} {}{}", format_ns(low_ns), share(low_ns)),
        Some(high_ns) if low_ns > 0 && is_part(low_ns, high_ns) => {
            format!("{} to {}{}", format_ns(low_ns), format_ns(high_ns), share(gain_ns))
        }
        Some(high_ns) => {
            // A forecast that may be wrong by all of it is no range.
            let ns = if estimate.is_forecast() { gain_ns } else { high_ns };
            let own_ns = row.own_gain_ns.filter(|own_ns| low_ns == 0 && is_part(*own_ns, ns));
            let own = own_ns.map_or(String::new(), |own_ns| format!(" ({} its own)", format_ns(own_ns)));
            format!("{words} {}{}{own}", format_ns(ns), share(ns))
        }
    }
}

/// Whether more than one rank is asked for.
fn are_several(trace: &Trace, selection: &Selection) -> bool {
    trace.ranks().into_iter().filter(|rank| selection.has_rank(*rank)).nth(1).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use stepscope_analyses::advice::GainEstimate;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn ranks_with_the_same_advice_are_counted() {
        let row = |cells: &str| cells.chars().map(|cell| cell.to_string().repeat(1_000)).collect::<String>();
        let ranks = [("CCCCCN|N|N", 0), ("CCCCN|N|N|N", 1), ("CCCCCN|N|N", 2)];
        let drawing: Vec<String> =
            ranks.iter().map(|(cells, rank)| format!("rank {rank} stream 7 {}", row(cells))).collect();
        let (trace, all) = (drawn(&drawing.join("\n")), Selection::default());
        let context = AnalysisContext::new(&trace, &all);
        let firsts = AdviceRow::first_of_each(&context);
        assert_eq!(firsts[0].id, "comm.overlap@1.0");
        let lines: Vec<_> = firsts.iter().map(|row| (row.rule, row.rank, row.gain_ns, row.others)).collect();
        let gain = Some(4_000_000);
        assert_eq!(lines, [("comm.overlap", Some(1), gain, 2)]);
        assert_eq!(AdviceRow::all(&context).len(), 3);
        assert!(firsts[0].says.starts_with("Rank 1: GPU 0 hides"), "{}", firsts[0].says);
    }

    #[test]
    fn a_gain_is_a_range_with_its_kind() {
        let row = |estimate, own_gain_ns| Advice {
            gain: Some((4_000_000, estimate)),
            window_ns: Some(8_000_000),
            own_gain_ns,
            ..Advice::default()
        };
        let wrong_by = |error_ns, own_ns| Advice { error_ns, ..row(GainEstimate::Removal, own_ns) };
        assert_eq!(gain_says(&wrong_by(500_000, None)), "3.50 ms to 4.50 ms, 50.0 %");
        assert_eq!(gain_says(&wrong_by(4_000_000, None)), "about 4.00 ms, 50.0 %");
        assert_eq!(gain_says(&wrong_by(4_000_000, Some(1_000_000))), "about 4.00 ms, 50.0 % (1.00 ms its own)");
        assert_eq!(wrong_by(6_000_000, None).gain_range(), Some((0, Some(8_000_000))), "no more than there is");
        for (estimate, own_ns, said) in [
            (GainEstimate::Removal, None, "about 4.00 ms, 50.0 %"),
            (GainEstimate::Removal, Some(3_000_000), "3.00 ms to 4.00 ms, 50.0 %"),
            // A part that looks like all of it is no range.
            (GainEstimate::Replay, Some(3_999_999), "about 4.00 ms, 50.0 %"),
            (GainEstimate::Removal, Some(0), "about 4.00 ms, 50.0 % (0 ns its own)"),
            (GainEstimate::Floor, None, "at least 4.00 ms, 50.0 %"),
            (GainEstimate::Floor, Some(3_000_000), "at least 3.00 ms, 37.5 %"),
            (GainEstimate::Bound, Some(3_000_000), "up to 4.00 ms, 50.0 % (3.00 ms its own)"),
            (GainEstimate::Overlap, Some(3_999_999), "up to 4.00 ms, 50.0 %"),
        ] {
            assert_eq!(gain_says(&row(estimate, own_ns)), said, "{estimate:?}, {own_ns:?}");
        }
        assert_eq!(gain_says(&Advice { window_ns: None, ..row(GainEstimate::Bound, None) }), "up to 4.00 ms");
        assert_eq!(gain_says(&Advice::default()), "gain not known");
    }

    #[test]
    fn a_row_has_the_ends_of_its_gain_its_method_and_what_is_mechanical() {
        let trace =
            drawn(&format!("rank 0 stream 7 {}", "C".repeat(4_000) + &format!("{}|", "N".repeat(1_000)).repeat(4)));
        let all = Selection::default();
        let row = AdviceRow::first_of_each(&AnalysisContext::new(&trace, &all)).remove(0);
        assert_eq!((row.gain_low_ns, row.gain_high_ns), (Some(0), Some(4_000_000)));
        assert_eq!(row.gain_method, Some("upper bound: communication hides under as much computing as there is"));
        assert_eq!((row.rule, row.diff), ("comm.overlap", None));
    }
}
