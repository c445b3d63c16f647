//! Two runs side by side, in the form of a result.

use crate::{Column, EngineError, Envelope, OpenedRun, RunIdentity, Selection, Table, Values, check_selection};
use stepscope_analyses::Needs;
use stepscope_analyses::compare::{self as side_by_side, Compared, Side};

/// A run, and the part of it that was asked for.
type Asked<'a> = (&'a OpenedRun, &'a Selection);

/// Puts the part of `a` that was asked for beside that of `b`. The result is of a run that is called `a → b`.
///
/// # Errors
/// When a rank or a step is not there, or events that are needed cannot be read.
pub fn compare(a: Asked<'_>, b: Asked<'_>, what: Compared) -> Result<Envelope, EngineError> {
    for (run, selection) in [a, b] {
        check_selection(run.trace(), selection)?;
    }
    let needs = what.needs();
    let outcome = with_side(a, needs, |a| with_side(b, needs, |b| side_by_side::compare(a, b, what)))??;
    let mut findings = a.0.trace().findings.clone();
    // Of two ranks of one run they are the same, and counted once.
    if !std::ptr::eq(a.0, b.0) {
        findings.extend(&b.0.trace().findings);
    }
    findings.extend(&outcome.findings);
    let [before, now] = [a, b].map(|(run, _)| RunIdentity::of(run.trace()));
    let run = RunIdentity {
        name: format!("{} → {}", called(&before, a.1), called(&now, b.1)),
        ranks: now.ranks,
        sources: before.sources.into_iter().chain(now.sources).collect(),
    };
    let (definition, results, coverage) = (side_by_side::definition(), outcome.table, outcome.coverage);
    Ok(Envelope { analysis: side_by_side::NAME, definition, run, results, coverage, findings })
}

/// Of a comparison of operators, kernels or modules: the measure that tells most, and each row with it before, now and
/// changed, in the order of `table`, which is that of the largest changes. Nothing where nothing changed.
pub fn largest_changes(table: &Table) -> Option<(&'static str, Table)> {
    let measure = main_measure(table)?;
    Some((measure, narrowed(table, measure)))
}

/// The first measure that has changed anywhere.
fn main_measure(table: &Table) -> Option<&'static str> {
    let has_changed = |column: &&Column| match &column.values {
        Values::Int(values) => values.iter().flatten().any(|by| *by != 0),
        _ => false,
    };
    let changed = table.columns.iter().filter(|column| column.name.starts_with("change_")).find(has_changed);
    changed.and_then(|column| column.name.strip_prefix("change_"))
}

/// A row's name, and the measure before and now.
fn narrowed(table: &Table, measure: &str) -> Table {
    let named = table.columns.first().cloned();
    let ratio = format!("change_{}_ratio", measure.trim_end_matches("_ns").trim_end_matches("_bytes"));
    let becomes = [
        (format!("a_{measure}"), "before_ns"),
        (format!("b_{measure}"), "now_ns"),
        (format!("change_{measure}"), "change_ns"),
        (ratio, "change_ratio"),
    ];
    let columns = becomes.iter().filter_map(|(name, becomes)| {
        let column = table.column(name)?;
        Some(Column { name: becomes, ..column.clone() })
    });
    Table { columns: named.into_iter().chain(columns).collect() }
}

/// What `make` makes of the part of a run that was asked for.
fn with_side<T>(
    (run, selection): Asked<'_>,
    [of_whole, of_steps]: [Needs; 2],
    make: impl FnOnce(&Side<'_>) -> T,
) -> Result<T, EngineError> {
    let [whole, in_steps] = Side::selections(run.trace(), selection);
    run.with_context(&whole, of_whole, |whole| {
        run.with_context(&in_steps, of_steps, |in_steps| make(&Side { whole, in_steps }))
    })?
}

/// A run's name, with the ranks when not all were asked for.
fn called(run: &RunIdentity, selection: &Selection) -> String {
    match (selection.ranks.only(), selection.ranks.text()) {
        (Some(rank), _) => format!("{} (rank {rank})", run.name),
        (None, Some(ranks)) => format!("{} (ranks {ranks})", run.name),
        (None, None) => run.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn a_comparison_reads_like_a_result() {
        let [a, b] = ["rank 0 cpu 1 aab", "rank 0 cpu 1 aaab"].map(|drawing| OpenedRun::of(drawn(drawing)));
        let all = Selection::default();
        let json = compare((&a, &all), (&b, &all), Compared::Operators).unwrap().to_json();
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&value["analysis"], &value["run"]["name"]), (&"compare".into(), &"drawn → drawn".into()));
        assert_eq!(value["results"][0]["change_host_self_ns"], 1_000);
        let rank = Selection { ranks: 0.into(), ..all.clone() };
        assert_eq!(compare((&a, &rank), (&b, &all), Compared::Steps).unwrap().run.name, "drawn (rank 0) → drawn");
        let gone = Selection { ranks: 7.into(), ..all.clone() };
        assert!(compare((&a, &all), (&b, &gone), Compared::Steps).is_err());
    }
}
