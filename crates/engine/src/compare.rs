//! Two runs side by side, in the form of a result.

use crate::{Coverage, Envelope, RunIdentity, Selection, Table, Trace, check_selection};
use stepscope_analyses::comparison::{CompareBy, compare_results, compare_steps};
use stepscope_trace::Findings;

/// The rows of two results of the analysis that `by` names side by side: `a` is what was before.
pub fn compared(a: &Envelope, b: &Envelope, by: CompareBy) -> Envelope {
    let (name, definition) = match by {
        CompareBy::Operators => {
            ("compare_operators", "For each operator's name: its time in both runs, and the change.")
        }
        CompareBy::Kernels => ("compare_kernels", "For each kernel's name: its time in both runs, and the change."),
        CompareBy::Modules => ("compare_modules", "For each module: its time in both runs, and the change."),
    };
    let results = compare_results(&a.results, &b.results, by);
    of_both(name, definition, (&a.run, &a.findings), (&b.run, &b.findings), results)
}

/// How long the complete steps of two runs take, of all ranks or of one of each.
///
/// # Errors
/// When a rank is not there.
pub fn compared_steps(a: (&Trace, Option<u32>), b: (&Trace, Option<u32>)) -> Result<Envelope, crate::EngineError> {
    for (trace, rank) in [a, b] {
        check_selection(trace, &Selection { rank, ..Selection::default() })?;
    }
    let definition = "How long complete steps take in both runs, and whether the difference may be chance.";
    let runs = [a.0, b.0].map(RunIdentity::of);
    let findings = [&a.0.findings, &b.0.findings];
    let of = |side: usize| (&runs[side], findings[side]);
    Ok(of_both("compare_steps", definition, of(0), of(1), compare_steps(a, b)))
}

fn of_both(
    analysis: &'static str,
    definition: &str,
    a: (&RunIdentity, &Findings),
    b: (&RunIdentity, &Findings),
    results: Table,
) -> Envelope {
    let mut findings = a.1.clone();
    findings.extend(b.1);
    let run = RunIdentity {
        name: format!("{} → {}", a.0.name, b.0.name),
        ranks: b.0.ranks.clone(),
        sources: a.0.sources.iter().chain(&b.0.sources).cloned().collect(),
    };
    let coverage = Coverage { device_ns_linked_ratio: None };
    Envelope { analysis, definition: definition.into(), run, results, coverage, findings }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn a_comparison_reads_like_a_result() {
        let traces = [drawn("rank 0 cpu 1 aab"), drawn("rank 0 cpu 1 aaab")];
        let [a, b] = traces.each_ref().map(|trace| analyze(trace, "operators", &Selection::default()).unwrap());
        let value: serde_json::Value = serde_json::from_str(&compared(&a, &b, CompareBy::Operators).to_json()).unwrap();
        assert_eq!((&value["analysis"], &value["run"]["name"]), (&"compare_operators".into(), &"drawn → drawn".into()));
        assert_eq!(value["results"][0]["change_host_self_ns"], 1_000);
        let steps = compared_steps((&traces[0], None), (&traces[1], Some(0))).unwrap();
        assert_eq!(steps.results.len(), 1);
        assert!(compared_steps((&traces[0], Some(7)), (&traces[1], None)).is_err());
    }
}
