//! What to change, from `advice`.

use crate::Table;
use crate::cells::Cells;
use serde::Serialize;
use stepscope_base::units::{format_ns, format_ratio};

/// One piece of advice.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AdviceRow {
    /// The rank it is about; none for all.
    pub rank: Option<i64>,
    /// The device it is about.
    pub device: Option<i64>,
    /// The rule's stable code.
    pub rule: String,
    /// `high`, `medium` or `low`.
    pub priority: String,
    /// What there is to gain at most; none when that is not known.
    pub gain_ns: Option<i64>,
    /// The same as a share of the window that the rule looks at.
    pub gain_ratio: Option<f64>,
    /// What kind of bound the gain is.
    pub gain_estimate: Option<String>,
    /// What is so, in one sentence with its numbers.
    pub says: String,
    /// What to do about it.
    pub to_do: String,
    /// The analysis that has the numbers.
    pub evidence: String,
    /// A place in the timeline.
    pub start_ns: Option<i64>,
    /// What is there.
    pub slice: Option<String>,
    /// Rows of the same rule for other ranks and devices, with less to gain.
    pub others: usize,
}

impl AdviceRow {
    /// `up to 356 ms, 33.9 %`.
    pub fn gain_words(&self) -> String {
        let share = self.gain_ratio.map_or(String::new(), |ratio| format!(", {}", format_ratio(ratio)));
        self.gain_ns.map_or("gain not known".into(), |ns| format!("up to {}{share}", format_ns(ns)))
    }

    /// Every row of a result of `advice`, in its order.
    pub fn all(table: &Table) -> Vec<Self> {
        let text = |column: &str, row: usize| table.text_at(column, row).map(str::to_string);
        let of_row = |row: usize| Self {
            rank: table.int_at("rank", row),
            device: table.int_at("device", row),
            rule: text("rule", row).unwrap_or_default(),
            priority: text("priority", row).unwrap_or_default(),
            gain_ns: table.int_at("gain_ns", row),
            gain_ratio: table.float_at("gain_ratio", row),
            gain_estimate: text("gain_estimate", row),
            says: text("says", row).unwrap_or_default(),
            to_do: text("to_do", row).unwrap_or_default(),
            evidence: text("evidence", row).unwrap_or_default(),
            start_ns: table.int_at("start_ns", row),
            slice: text("slice", row),
            others: 0,
        };
        (0..table.len()).map(of_row).collect()
    }

    /// The first row of each rule, in the order of the result; the rest are counted. What one rule says of several
    /// operators of the same rank stays.
    pub(super) fn first_of_each(table: &Table) -> Vec<Self> {
        let mut firsts: Vec<Self> = Vec::new();
        for row in Self::all(table) {
            let is_of = |first: &&mut Self| first.rule == row.rule;
            let is_elsewhere = |first: &Self| (first.rank, first.device) != (row.rank, row.device);
            match firsts.iter_mut().find(is_of) {
                Some(first) if is_elsewhere(first) => first.others += 1,
                _ => firsts.push(row),
            }
        }
        firsts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Selection, analyze};
    use stepscope_trace::drawn::drawn;

    #[test]
    fn ranks_with_the_same_advice_are_counted() {
        let row = |cells: &str| cells.chars().map(|cell| cell.to_string().repeat(1_000)).collect::<String>();
        let ranks = [("CCCCCCNN", 0), ("CCCCNNNN", 1), ("CCCCCNNN", 2)];
        let drawing: Vec<String> =
            ranks.iter().map(|(cells, rank)| format!("rank {rank} stream 7 {}", row(cells))).collect();
        let results = analyze(&drawn(&drawing.join("\n")), "advice", &Selection::default()).unwrap().results;
        let firsts = AdviceRow::first_of_each(&results);
        let lines: Vec<_> = firsts.iter().map(|row| (row.rule.as_str(), row.rank, row.gain_ns, row.others)).collect();
        let gain = Some(4_000_000);
        assert_eq!(lines, [("comm.exposed", Some(1), gain, 2), ("comm.overlap", Some(1), gain, 2)]);
        assert_eq!(AdviceRow::all(&results).len(), 6);
    }
}
