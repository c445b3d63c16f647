//! Which ranks of a job are asked for.

use std::error::Error;
use std::fmt::{self, Display, Formatter, Write};
use std::str::FromStr;
use std::sync::Arc;

/// Ranks that are asked for, as in `3`, `0-7` or `0,4,8-11`; the default is all of them.
///
/// Two that have the same ranks are only equal when they were asked for in the same parts: a number must be a rank of
/// the run, of a range one rank must be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ranks(Option<Arc<[Part]>>);

/// The first and the last rank of a part. Parts are by rank, and apart.
type Part = (u32, u32);

/// A text that names no ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RanksError {
    /// The beginning of the text.
    pub text: String,
}

impl Display for RanksError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let expected = "a number, a range, or several with commas, as in 3, 0-7 or 0,4,8-11";
        write!(out, "{:?} are no ranks: expected {expected}", self.text)
    }
}

impl Error for RanksError {}

impl Ranks {
    /// Whether `rank` is one of them.
    pub fn has(&self, rank: u32) -> bool {
        let Some(parts) = &self.0 else { return true };
        let behind = parts.partition_point(|(first, _)| *first <= rank);
        behind > 0 && rank <= parts[behind - 1].1
    }

    /// True when no ranks are named.
    pub fn are_all(&self) -> bool {
        self.0.is_none()
    }

    /// The rank that is asked for, when it is a single one.
    pub fn only(&self) -> Option<u32> {
        match self.0.as_deref()? {
            [(first, last)] if first == last => Some(*first),
            _ => None,
        }
    }

    /// As a person types them; `None` for all.
    pub fn text(&self) -> Option<String> {
        let mut text = String::new();
        for (first, last) in self.0.as_deref()? {
            let comma = if text.is_empty() { "" } else { "," };
            let _ = match first == last {
                true => write!(text, "{comma}{first}"),
                false => write!(text, "{comma}{first}-{last}"),
            };
        }
        Some(text)
    }

    /// The first part of which none of `ranks` is, as its first and its last rank.
    pub fn part_without(&self, ranks: &[u32]) -> Option<(u32, u32)> {
        let has_none = |(first, last): &&Part| !ranks.iter().any(|rank| (first..=last).contains(&rank));
        self.0.as_deref()?.iter().find(has_none).copied()
    }
}

impl From<u32> for Ranks {
    fn from(rank: u32) -> Self {
        Self(Some([(rank, rank)].into()))
    }
}

impl From<Option<u32>> for Ranks {
    fn from(rank: Option<u32>) -> Self {
        rank.map_or_else(Self::default, Self::from)
    }
}

impl FromStr for Ranks {
    type Err = RanksError;

    fn from_str(text: &str) -> Result<Self, RanksError> {
        let asked: Option<Vec<Part>> = text.split(',').map(part).collect();
        let mut asked = asked.ok_or_else(|| RanksError { text: text.chars().take(40).collect() })?;
        asked.sort_unstable();
        let mut parts: Vec<Part> = Vec::new();
        for (first, last) in asked {
            match parts.last_mut() {
                Some((_, end)) if first <= *end => *end = last.max(*end),
                _ => parts.push((first, last)),
            }
        }
        Ok(Self(Some(parts.into())))
    }
}

/// A number, or a range that does not go down.
fn part(text: &str) -> Option<Part> {
    // `parse` would take the sign of `+3`.
    let number = |text: &str| text.trim().parse().ok().filter(|_| !text.contains('+'));
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnalysisContext, Column, Selection, Table, Values, catalogue};
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use stepscope_trace::drawn::drawn;
    use stepscope_trace::simulated::{Job, Schedule};

    fn ranks(text: &str) -> Ranks {
        text.parse().unwrap()
    }

    #[test]
    fn ranks_are_read_as_they_are_typed() {
        for (typed, shown) in
            [("3", "3"), ("0-7", "0-7"), ("8-11, 4,0", "0,4,8-11"), ("0-4,2-6,3", "0-6"), ("0,1", "0,1"), ("2-2", "2")]
        {
            assert_eq!(ranks(typed).text().as_deref(), Some(shown), "{typed}");
        }
        assert_eq!((ranks("2-2").only(), ranks("2,2").only(), ranks("2,3").only()), (Some(2), Some(2), None));
        assert_eq!((Ranks::default().text(), Ranks::default().only(), Ranks::from(7)), (None, None, ranks("7")));
        assert_eq!(ranks("4294967295"), Ranks::from(u32::MAX));
    }

    #[test]
    fn what_names_no_ranks_is_refused_with_what_does() {
        for text in ["", "a", "-1", "7-0", "1,", "1-", "1--2", "1.5", "+3", "0-7-9", "4294967296", "0..7", "1 2"] {
            assert!(text.parse::<Ranks>().is_err(), "{text}");
        }
        let expected =
            "\"7-0\" are no ranks: expected a number, a range, or several with commas, as in 3, 0-7 or 0,4,8-11";
        assert_eq!("7-0".parse::<Ranks>().unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_number_must_be_there_and_of_a_range_one_rank() {
        let without = |text: &str| ranks(text).part_without(&[0, 2, 5]);
        assert_eq!((without("0,2"), without("0-4"), without("2-900,0")), (None, None, None));
        assert_eq!((without("0,1"), without("3-4,0"), without("7-9")), (Some((1, 1)), Some((3, 4)), Some((7, 9))));
        assert_eq!(Ranks::default().part_without(&[]), None);
    }

    proptest! {
        #[test]
        fn parsed_ranks_are_those_of_a_list_of_numbers(
            parts in prop::collection::vec((0_u32..24, 0_u32..6, any::<bool>()), 1..6),
        ) {
            let mut numbers = BTreeSet::new();
            let texts = parts.iter().map(|(first, more, is_range)| {
                let last = if *is_range { first + more } else { *first };
                numbers.extend(*first..=last);
                if *is_range { format!("{first}-{last}") } else { first.to_string() }
            });
            let text = texts.collect::<Vec<_>>().join(",");
            let parsed = ranks(&text);
            (0..40).for_each(|rank| assert_eq!(parsed.has(rank), numbers.contains(&rank), "rank {rank} of {text}"));
            prop_assert_eq!(&ranks(&parsed.text().unwrap()), &parsed);
            let only = if numbers.len() == 1 { numbers.first().copied() } else { None };
            prop_assert_eq!(parsed.only(), only);
        }

        /// Rows of several ranks are those of each of them.
        #[test]
        fn a_set_of_ranks_has_the_rows_of_each(
            rows in prop::collection::vec(("[.axs|]{20}", "[.CDN|]{20}", "[.CDNH|]{20}", "[.abcABC]{20}"), 4),
            text in prop::sample::select(vec!["0-1", "0,2", "1-3", "0,2-3", "3", "0-3"]),
        ) {
            let of_rank = |(rank, (host, launch, stream, memory)): (usize, &(String, String, String, String))| format!(
                "rank {rank} step {}{}\nrank {rank} cpu 1 {host}\nrank {rank} launch 1 {launch}\nrank {rank} stream 7 {stream}\n\
                 rank {rank} memory 1 {memory}\n", "0".repeat(10), "1".repeat(10),
            );
            same_rows(&drawn(&rows.iter().enumerate().map(of_rank).collect::<String>()), &ranks(text));
        }
    }

    #[test]
    fn a_set_of_ranks_of_a_job_has_the_rows_of_each() {
        let job = Job { ranks: 4, steps: 2, schedule: Schedule::Ddp { buckets: 2, overlaps: true }, ..Job::default() };
        same_rows(&job.run().trace(), &ranks("1,3"));
    }

    fn same_rows(trace: &stepscope_trace::Trace, asked: &Ranks) {
        let mut compared = 0;
        // Advice about one rank of several names it in its sentence, and some is about all ranks asked for together.
        for analysis in catalogue().iter().filter(|analysis| analysis.name != "advice") {
            let rows = |ranks: Ranks| {
                let selection = Selection { ranks, ..Selection::default() };
                rows_of((analysis.run)(&AnalysisContext::new(trace, &selection)).table)
            };
            let Some(mut found) = rows(asked.clone()) else { continue };
            let each = trace.ranks().into_iter().filter(|rank| asked.has(*rank));
            let mut expected: Vec<String> = each.flat_map(|rank| rows(rank.into()).unwrap()).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{} of {:?}", analysis.name, asked.text());
            compared += 1;
        }
        assert!(compared > 10, "{compared} analyses have rows of ranks");
    }

    /// The rows as text, of an analysis whose rows are of ranks.
    fn rows_of(table: Table) -> Option<Vec<String>> {
        let of_rank = |column: &Column| column.name == "rank" && !matches!(column.values, Values::Text(_));
        table.columns.iter().any(of_rank).then_some(())?;
        let cell = |values: &Values, at: usize| match values {
            Values::Int(values) => format!("{:?}", values[at]),
            Values::Float(values) => format!("{:?}", values[at]),
            Values::Text(values) => format!("{:?}", values[at]),
            Values::Bool(values) => format!("{:?}", values[at]),
        };
        let row = |at| table.columns.iter().map(|column| cell(&column.values, at)).collect::<Vec<_>>().join(" ");
        Some((0..table.len()).map(row).collect())
    }
}
