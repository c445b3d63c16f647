//! The summary of one rank: what other ranks are compared by, and the results that depend on no other rank. It is a
//! Parquet file of one row, small enough that those of thousands of ranks are read at once, and is kept beside the trace
//! that it was made of, or in the user's cache.
//!
//! ```text
//! traces/rank3.json.gz                      read once
//! traces/.stepscope/rank3.json.gz.parquet   its summary, which says what the trace and the program were
//! ```

mod file;
mod place;
mod stored;
mod tables;

pub use file::{SummaryError, from_bytes, table_from_bytes, to_bytes};
pub use place::{Place, of_program};

use stepscope_analyses::{RankAdvice, RankResults, RankRows, Table, Values};
use stepscope_trace::{Contents, Trace};

/// The summary of one trace, of one rank as a rule.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The trace with few slices.
    pub trace: Trace,
    /// What was computed of the others.
    pub results: RankResults,
    /// What the whole trace has.
    pub contents: Contents,
    /// The rows that are put together with those of other ranks.
    pub rows: RankRows,
    /// The same of complete steps alone, by which runs are compared; `None` where that is all.
    pub rows_in_steps: Option<RankRows>,
    /// What is advised for the rank.
    pub advice: RankAdvice,
    /// The results of analyses whose rows depend on no other rank, by name, as far as they are in memory.
    pub tables: Vec<(&'static str, Table)>,
    /// Where they are otherwise.
    pub place: Option<Place>,
    /// The rank that was stated.
    pub rank: Option<u32>,
}

impl Summary {
    /// Takes every moment of results and rows as `of` has it.
    pub fn set_moments(&mut self, of: impl Fn(i64) -> i64) {
        self.results.set_moments(&of);
        self.rows.set_moments(&of);
        self.rows_in_steps.iter_mut().for_each(|rows| rows.set_moments(&of));
        self.advice.set_moments(&of);
    }

    /// The result of the analysis called `name`, if it is kept.
    pub fn table(&self, name: &str) -> Option<Table> {
        let mut table = match self.table_in_memory(name) {
            Some(table) => table.clone(),
            None => self.place.as_ref()?.read_table(name)?,
        };
        let Some(rank) = self.rank else { return Some(table) };
        for column in &mut table.columns {
            if let ("rank", Values::Int(ranks)) = (column.name, &mut column.values) {
                ranks.fill(Some(rank.into()));
            }
        }
        Some(table)
    }

    fn table_in_memory(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|(of, _)| *of == name).map(|(_, table)| table)
    }

    /// States that all of it is of this rank.
    pub fn set_rank(&mut self, rank: u32) {
        self.results.set_rank(rank);
        self.rows.set_rank(rank);
        self.rows_in_steps.iter_mut().for_each(|rows| rows.set_rank(rank));
        self.advice.set_rank(rank);
        self.rank = Some(rank);
    }
}

#[cfg(test)]
mod tests;
