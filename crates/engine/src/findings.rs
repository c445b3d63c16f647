//! Findings in the form that every face shows.

use serde::Serialize;
use stepscope_trace::{Finding, Findings};

/// One finding of a result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FindingRow {
    /// The stable code.
    pub code: &'static str,
    /// How much it matters: `info`, `suspect`, `severe`.
    pub severity: &'static str,
    /// How many times it applies.
    pub count: u64,
    /// One sentence for people.
    pub says: &'static str,
    /// The first few cases.
    pub examples: Vec<String>,
}

/// `findings` as rows, the most severe first.
pub fn finding_rows(findings: &Findings) -> Vec<FindingRow> {
    let mut rows: Vec<&Finding> = findings.iter().collect();
    rows.sort_by_key(|finding| (std::cmp::Reverse(finding.code.severity()), finding.code));
    rows.into_iter().map(finding_row).collect()
}

fn finding_row(finding: &Finding) -> FindingRow {
    FindingRow {
        code: finding.code.code(),
        severity: finding.code.severity().as_str(),
        count: finding.count,
        says: finding.code.says(),
        examples: finding.examples.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::FindingCode;

    #[test]
    fn the_most_severe_come_first() {
        let mut findings = Findings::default();
        findings.add(FindingCode::NoSteps, String::new);
        findings.add(FindingCode::TruncatedInput, || "byte 9".into());
        findings.add_count(FindingCode::NegativeDuration, 2);
        let rows: Vec<_> = finding_rows(&findings).iter().map(|row| (row.severity, row.count)).collect();
        assert_eq!(rows, [("severe", 1), ("suspect", 2), ("info", 1)]);
    }
}
