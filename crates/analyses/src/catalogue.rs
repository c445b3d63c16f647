//! Every analysis, by name. One line here makes it a command, a Python method, a JSON document and a page.

use crate::{AnalysisContext, Column, Coverage, Joined, Options, Row, Selection, Table};
use stepscope_trace::{Findings, Trace};

/// What an analysis found, in the form that every face prints.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// The result.
    pub table: Table,
    /// What it rests on.
    pub coverage: Coverage,
    /// What is doubtful about it, beside the findings of the trace.
    pub findings: Findings,
}

impl Outcome {
    /// A result over device events.
    pub(crate) fn of<R: Row>(context: &AnalysisContext<'_>, rows: &[R]) -> Self {
        Self { coverage: context.coverage(), ..Self::without_coverage(context, rows) }
    }

    /// A result that does not depend on which launches are known.
    pub(crate) fn without_coverage<R: Row>(context: &AnalysisContext<'_>, rows: &[R]) -> Self {
        Self { table: R::table(rows, context.trace, context.selection), ..Self::default() }
    }

    /// A result of two runs, whose rows refer to neither.
    pub(crate) fn of_runs<R: Row>(rows: &[R]) -> Self {
        Self { table: R::table(rows, &Trace::default(), &Selection::default()), ..Self::default() }
    }
}

/// One entry of the catalogue.
#[derive(Clone, Copy)]
pub struct Analysis {
    /// Its name on the command line, in JSON and in Python.
    pub name: &'static str,
    /// The source of its file, whose comment is its reference page.
    pub source: &'static str,
    /// Computes it.
    pub run: fn(&AnalysisContext<'_>) -> Outcome,
    /// The options that it accepts.
    pub options: Options,
    /// What it needs of a run of several ranks.
    pub needs: Needs,
    /// The same where another program's definition is used.
    pub compat_needs: Needs,
}

/// What an analysis needs of a run of several ranks.
#[derive(Clone, Copy, Debug)]
pub enum Needs {
    /// The events of all ranks at once, whichever are asked for.
    AllEvents,
    /// The events of one rank after the other: its rows come by rank, and those of a rank depend on no other.
    EachRank,
    /// The same, of an analysis that is cheap and has few rows as a rule: they are kept with what is known of a rank.
    EachRankKept,
    /// The events of one rank after the other, of which results are made that are then [joined](Joined).
    Joined(Joined),
    /// The events of one rank after the other, of which [`RankRows`](crate::RankRows) are made, and kept.
    Rows,
    /// The same, and all ranks as they were [condensed](crate::condensed), to [compare](crate::advice::AllRanks) them.
    RowsTogether,
    /// No events: what was [condensed](crate::condensed) of each rank, and [given](crate::given).
    Condensed,
    /// No events and no results: what is known of all ranks, such as their steps.
    Steps,
}

impl Needs {
    /// Whether the rows come by rank, and those of a rank depend on no other.
    pub fn is_by_rank(self) -> bool {
        matches!(self, Self::EachRank | Self::EachRankKept)
    }
}

impl Analysis {
    /// The entry of an analysis without options; the catalogue adds its name and its source.
    pub(crate) const fn of(run: fn(&AnalysisContext<'_>) -> Outcome) -> Self {
        let [needs, compat_needs] = [Needs::AllEvents; 2];
        Self { name: "", source: "", run, options: Options::NONE, needs, compat_needs }
    }

    /// The same, which needs only this of a run of several ranks.
    pub(crate) const fn needing(self, needs: Needs) -> Self {
        Self { needs, compat_needs: needs, ..self }
    }

    /// The same, which needs this where another program's definition is used.
    pub(crate) const fn needing_for_compat(self, compat_needs: Needs) -> Self {
        Self { compat_needs, ..self }
    }

    /// What it needs for an answer to `selection`.
    pub fn needs_for(&self, selection: &Selection) -> Needs {
        if selection.compat.is_some() { self.compat_needs } else { self.needs }
    }

    /// The columns that its result has for `selection`, without values.
    pub fn columns(&self, selection: &Selection) -> Vec<Column> {
        (self.run)(&AnalysisContext::new(&Trace::default(), selection)).table.columns
    }

    /// The text under a heading of the file's comment: `Definition`, `Units`, `Source`, `Edge cases`.
    pub fn section(&self, heading: &str) -> String {
        section_of(self.source, heading)
    }

    /// The first sentence of its definition, on one line.
    pub fn definition(&self) -> String {
        definition_of(self.source)
    }
}

/// The text under a heading of the comment that `source` begins with.
pub(crate) fn section_of(source: &str, heading: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let from_heading = lines.skip_while(|line| line.strip_prefix("# ") != Some(heading)).skip(1);
    let body: Vec<&str> = from_heading.take_while(|line| !line.starts_with("# ")).collect();
    body.join("\n").trim().to_string()
}

/// The first sentence under `Definition` of the comment that `source` begins with, on one line.
pub(crate) fn definition_of(source: &str) -> String {
    let text = section_of(source, "Definition").replace('\n', " ");
    match text.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => text,
    }
}

macro_rules! catalogue_of {
    ($($name:ident),* $(,)?) => {
        &[$(Analysis {
            name: stringify!($name),
            source: include_str!(concat!(stringify!($name), ".rs")),
            ..crate::$name::ANALYSIS
        },)*]
    };
}

/// Every analysis, in the order a person would read them.
pub fn catalogue() -> &'static [Analysis] {
    catalogue_of![
        advice,
        step_breakdown,
        temporal_breakdown,
        overlap,
        gpu_utilization,
        gpu_utilization_curve,
        operators,
        modules,
        call_tree,
        source_lines,
        host_lines,
        roofline,
        device_peaks,
        kernels,
        kernel_durations,
        launch_statistics,
        queue_length,
        queue_length_curve,
        graphs,
        copies,
        ranks_overview,
        collectives,
        stragglers,
        lateness,
        slow_groups,
        imbalance,
        micro_batches,
        layout,
        bubbles,
        what_if,
        hangs,
        clock_residuals,
        device_clocks,
        synchronizations,
        idle_causes,
        idle_gaps,
        critical_path,
        critical_path_slack,
        critical_path_slices,
        critical_path_pieces,
        critical_path_ranks,
        memory_summary,
        memory_curve,
        memory_peak,
        memory_statistics,
        memory_events,
        memory_timeline,
        io_summary,
        io_files,
        io_curve,
        io_workers,
        io_samples,
        checkpoints,
        findings,
    ]
}

/// The analysis called `name`; `-` and `_` are the same.
pub fn find(name: &str) -> Option<&'static Analysis> {
    let name = name.replace('-', "_");
    catalogue().iter().find(|analysis| analysis.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn moments_of_kept_tables_are_known_as_such() {
        for analysis in catalogue().iter().filter(|analysis| matches!(analysis.needs, Needs::EachRankKept)) {
            for column in analysis.columns(&Selection::default()) {
                let is_said = column.doc.contains("start of the trace");
                assert_eq!(column.is_moment(), is_said, "{}: {}", analysis.name, column.name);
            }
        }
    }

    #[test]
    fn every_analysis_documents_itself_under_the_same_four_headings() {
        for analysis in catalogue() {
            let comment = analysis.source.lines().map_while(|line| line.strip_prefix("//!"));
            let headings: Vec<&str> = comment.filter_map(|line| line.trim().strip_prefix("# ")).collect();
            assert_eq!(headings, ["Definition", "Units", "Source", "Edge cases"], "{}", analysis.name);
            headings.iter().for_each(|heading| assert!(!analysis.section(heading).is_empty(), "{}", analysis.name));
            assert!(analysis.definition().ends_with('.'), "{}: {}", analysis.name, analysis.definition());
            let is_code = headings.iter().any(|heading| analysis.section(heading).contains("..="));
            assert!(!is_code, "{}: a range is said in words, as in \"from 0 to 1\"", analysis.name);
        }
    }

    #[test]
    fn names_are_found_with_dashes_too() {
        assert_eq!(find("temporal-breakdown").map(|analysis| analysis.name), Some("temporal_breakdown"));
        assert!(find("nothing").is_none());
    }

    #[test]
    fn every_choice_that_is_accepted_makes_a_table_whose_columns_are_documented() {
        for analysis in catalogue() {
            let options = analysis.options;
            let groups = options.group_by.iter().map(|group_by| (Some(*group_by), None));
            let choices = [(None, None)]
                .into_iter()
                .chain(groups)
                .chain(options.compat.iter().map(|compat| (None, Some(*compat))));
            for (group_by, compat) in choices {
                let selection = Selection { group_by, compat, ..Selection::default() };
                let columns = analysis.columns(&selection);
                assert!(!columns.is_empty(), "{}", analysis.name);
                for Column { name, doc, .. } in columns {
                    let is_rust = doc.contains("[`") || doc.contains("`None`") || doc.contains("::");
                    assert!(doc.ends_with('.') && !is_rust, "{} {name}: {doc:?}", analysis.name);
                }
            }
        }
    }

    #[test]
    fn every_analysis_answers_for_an_empty_trace() {
        for analysis in catalogue() {
            let outcome = (analysis.run)(&AnalysisContext::new(&Trace::default(), &Selection::default()));
            assert!(outcome.table.is_empty() && !outcome.table.columns.is_empty(), "{}", analysis.name);
        }
    }

    #[test]
    fn what_is_linked_is_a_share_of_device_time() {
        let trace = drawn("rank 0 launch 1 K...\nrank 0 stream 7 .KZZ");
        let ratio = AnalysisContext::new(&trace, &Selection::default()).coverage().device_ns_linked_ratio;
        assert_eq!(ratio, Some(1.0 / 3.0));
    }
}
