//! Two runs side by side, in the form of a result.

use crate::{EngineError, Envelope, RunIdentity, Selection, Trace, check_selection};
use stepscope_analyses::compare::{Compared, analysis, compare as put_beside};

/// Puts the part of `a` that was asked for beside that of `b`. The result is of a run that is called `a → b`.
///
/// # Errors
/// When a rank or a step is not there.
pub fn compare(a: (&Trace, &Selection), b: (&Trace, &Selection), what: Compared) -> Result<Envelope, EngineError> {
    for (trace, selection) in [a, b] {
        check_selection(trace, selection)?;
    }
    let outcome = put_beside(a, b, what);
    let mut findings = a.0.findings.clone();
    findings.extend(&b.0.findings);
    findings.extend(&outcome.findings);
    let (before, now) = (RunIdentity::of(a.0), RunIdentity::of(b.0));
    let run = RunIdentity {
        name: format!("{} → {}", before.name, now.name),
        ranks: now.ranks,
        sources: before.sources.into_iter().chain(now.sources).collect(),
    };
    let analysis = analysis();
    let (definition, results, coverage) = (analysis.definition(), outcome.table, outcome.coverage);
    Ok(Envelope { analysis: analysis.name, definition, run, results, coverage, findings })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn a_comparison_reads_like_a_result() {
        let (a, b) = (drawn("rank 0 cpu 1 aab"), drawn("rank 0 cpu 1 aaab"));
        let all = Selection::default();
        let json = compare((&a, &all), (&b, &all), Compared::Operators).unwrap().to_json();
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&value["analysis"], &value["run"]["name"]), (&"compare".into(), &"drawn → drawn".into()));
        assert_eq!(value["results"][0]["change_host_self_ns"], 1_000);
        let gone = Selection { rank: Some(7), ..all };
        assert!(compare((&a, &all), (&b, &gone), Compared::Steps).is_err());
    }
}
