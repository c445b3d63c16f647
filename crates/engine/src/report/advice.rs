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
    /// `gain_ns` as a share of the window that the rule looks at.
    pub gain_ratio: Option<f64>,
    /// How the gain is estimated.
    pub gain_estimate: Option<&'static str>,
    /// What that means in a sentence: `about`, `at least` or `up to` so much.
    pub gain_words: Option<&'static str>,
    /// What is so, in one sentence with its numbers.
    pub says: String,
    /// What to do about it.
    pub to_do: &'static str,
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
    /// `up to 356 ms, 33.9 %`, or `about` so much for a forecast, or `at least`; `210 ms to 356 ms, 33.9 %` where other
    /// advice is about as much of it as can be seen in the numbers.
    pub fn gain_sentence(&self) -> String {
        let share = self.gain_ratio.map_or(String::new(), |ratio| format!(", {}", format_ratio(ratio)));
        let is_part = |own_ns: &i64, ns: i64| *own_ns < ns && format_ns(*own_ns) != format_ns(ns);
        let range = |ns: i64| match self.own_gain_ns.filter(|own_ns| is_part(own_ns, ns)) {
            Some(own_ns) => format!("{} to {}{share}", format_ns(own_ns), format_ns(ns)),
            None => format!("{} {}{share}", self.gain_words.unwrap_or_default(), format_ns(ns)),
        };
        self.gain_ns.map_or("gain not known".into(), range)
    }

    /// The fault, where it is and what there is to gain, in one sentence. `is_named` where a person has to be told which
    /// rank it is about.
    pub fn answer(&self, is_named: bool) -> String {
        let rank = self.rank.filter(|_| is_named).map(|rank| format!("rank {rank}"));
        let place = self.line.clone().or_else(|| self.slice.as_ref().map(|slice| fit_name(slice, 60)));
        let at: Vec<String> = rank.into_iter().chain(place).collect();
        let at = if at.is_empty() { String::new() } else { format!(" ({})", at.join(", ")) };
        format!("{}{at}: {} to gain.", self.fault, self.gain_sentence())
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
            gain_ratio: row.gain_ratio(),
            gain_estimate: row.gain.map(|(_, estimate)| estimate.as_str()),
            gain_words: row.gain.map(|(_, estimate)| estimate.words()),
            says: rank.map_or_else(|| row.says.clone(), |rank| format!("Rank {rank}: {}", row.says)),
            to_do: row.to_do(),
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

/// Whether more than one rank is asked for.
fn are_several(trace: &Trace, selection: &Selection) -> bool {
    trace.ranks().into_iter().filter(|rank| selection.has_rank(*rank)).nth(1).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
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
    fn a_part_that_looks_like_all_of_it_is_no_range() {
        let trace =
            drawn(&format!("rank 0 stream 7 {}", "C".repeat(4_000) + &format!("{}|", "N".repeat(1_000)).repeat(4)));
        let all = Selection::default();
        let row = AdviceRow::first_of_each(&AnalysisContext::new(&trace, &all)).remove(0);
        let said = |own_ns: i64| AdviceRow { own_gain_ns: Some(own_ns), ..row.clone() }.gain_sentence();
        assert_eq!(row.gain_ns, Some(4_000_000));
        assert_eq!(said(3_000_000), "3.00 ms to 4.00 ms, 50.0 %");
        assert_eq!(said(3_999_999), "up to 4.00 ms, 50.0 %");
    }
}
