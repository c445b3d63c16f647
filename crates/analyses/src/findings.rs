//! # Definition
//! What is doubtful or incomplete about the input: one row for each kind of statement, with how often it applies.
//!
//! # Units
//! Counts of cases.
//!
//! # Source
//! Whatever the reader repaired, left out or could not link, and what recording itself reported.
//!
//! # Edge cases
//! No row means that nothing was found. Findings are about the whole input, whatever rank or step is asked for; of the
//! cases only the first few are given as examples.

use crate::{Analysis, AnalysisContext, Fixed, Needs, Outcome};
use stepscope_trace::{Finding, Trace};

/// Every finding of the trace, the most serious first, then by code.
pub fn findings(trace: &Trace) -> Vec<&Finding> {
    let mut rows: Vec<&Finding> = trace.findings.iter().collect();
    rows.sort_by_key(|finding| (std::cmp::Reverse(finding.code.severity()), finding.code));
    rows
}

columns! {
    /// A finding as a row.
    struct FindingRow {
        /// The stable code of the finding.
        code: Fixed => Text,
        /// How serious it is.
        severity: Fixed => Text,
        /// Number of cases.
        count: u64 => Count,
        /// What was found, and how it was handled.
        says: Fixed => Text,
        /// Some of the cases.
        examples: String => Text,
    }
}

pub(crate) const ANALYSIS: Analysis = Analysis::of(outcome).needing(Needs::Condensed);

fn outcome(context: &AnalysisContext<'_>) -> Outcome {
    let row = |finding: &Finding| FindingRow {
        code: Fixed(finding.code.code()),
        severity: Fixed(finding.code.severity().as_str()),
        count: finding.count,
        says: Fixed(finding.code.says()),
        examples: finding.examples.join("; "),
    };
    Outcome::of(context, &findings(context.trace).into_iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Selection, Values};
    use stepscope_trace::FindingCode;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn the_most_serious_come_first() {
        let mut trace = drawn("rank 0 cpu 1 a\nrank 0 stream 7 K");
        trace.findings.add(FindingCode::TruncatedInput, || "at byte 7".into());
        let codes: Vec<&str> = findings(&trace).iter().map(|finding| finding.code.code()).collect();
        assert_eq!(codes, ["import.truncated_input", "import.unlinked_device_event", "trace.no_steps"]);
        let outcome = outcome(&AnalysisContext::new(&trace, &Selection::default()));
        let examples = &outcome.table.column("examples").expect("a column").values;
        assert!(matches!(examples, Values::Text(texts) if texts[0].as_deref() == Some("at byte 7")));
    }

    #[test]
    fn a_sound_trace_has_none() {
        let trace = drawn("rank 0 step 00\nrank 0 launch 1 K.\nrank 0 stream 7 .K");
        assert_eq!(findings(&trace), Vec::<&Finding>::new());
    }
}
