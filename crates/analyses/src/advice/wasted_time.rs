//! Operators take much longer on the device than the device would have to.

use super::cases::Cases;
use super::facts::{Facts, share};
use super::kernel_work::{kernels_of, saved};
use super::words::quoted;
use super::{Advice, GainEstimate, Judged, Rule};
use crate::roofline::RooflineRow;
use std::collections::BTreeMap;
use stepscope_base::units::{format_count, format_ns, format_ratio};

/// Share of the devices' windows that is wasted in one operator.
const THRESHOLD: f64 = 0.03;
/// Operators named at most.
const NAMED: usize = 3;

pub(super) const RULE: Rule = Rule {
    code: "compute.roofline",
    fault: "An operator is far from what the device can do",
    disproof: "By itself, with the same shapes, it takes as long in other libraries.",
    evidence: "roofline",
    to_do: "Look at the shapes and kernels that it has. Bound by memory: fuse what is around it \
            (`torch.compile`), 16-bit types, `channels_last`. Bound by computing: 16-bit types, larger batches, sizes \
            in multiples of 64, attention by `scaled_dot_product_attention`.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let of_ranks = facts.rooflines()?.chunk_by(|(a, _), (b, _)| a == b);
    Ok(of_ranks.flat_map(|rows| of_rank(facts, rows)).collect())
}

/// `rows` of one rank.
fn of_rank(facts: &Facts, rows: &[(u32, RooflineRow)]) -> Vec<Advice> {
    let mut by_name: BTreeMap<&str, RooflineRow> = BTreeMap::new();
    for (_, row) in rows.iter().filter(|(_, row)| row.modeled_ns > 0) {
        let Some(label) = &row.label else { continue };
        by_name.entry(&label.name).or_default().extend(row);
    }
    let rank = rows.first().map(|(rank, _)| *rank);
    let window_ns = rank.map_or(0, |rank| facts.window_ns(rank));
    let of_name = |(name, row): (&&'_ str, &RooflineRow)| Some((of_operator(name, row, window_ns)?, name.to_string()));
    let mut found: Vec<(Advice, String)> = by_name.iter().filter_map(of_name).collect();
    found.sort_by_key(|(row, _)| std::cmp::Reverse(row.measured_ns));
    let with_time = |(row, name): (Advice, String)| {
        let kernels = rank.map(|rank| kernels_of(facts.context, rank, |other| other == name)).unwrap_or_default();
        let is_habit = Cases::of(&kernels).are_habit(&row);
        is_habit.then(|| Advice { rank, time: saved(&kernels, row.measured_ns.unwrap_or(0)), ..row })
    };
    found.into_iter().filter_map(with_time).take(NAMED).collect()
}

fn of_operator(name: &str, row: &RooflineRow, window_ns: i64) -> Option<Advice> {
    // Work of several streams at the same time is a sum that can exceed the window.
    let wasted_ns = row.wasted_ns.min(window_ns);
    let found = share(wasted_ns, window_ns, THRESHOLD).filter(|_| row.wasted_ns > row.modeled_ns / 2)?;
    let (calls, took) = (format_count(row.count), format_ns(row.modeled_ns));
    let (least, bound) = (format_ns(row.roofline_ns), row.bound()?.as_str());
    let (wasted, ratio) = (format_ns(wasted_ns), format_ratio(found.measured_ratio?));
    let peak = if bound == "compute" { "rate of computing" } else { "memory bandwidth" };
    Some(Advice {
        says: format!(
            "{calls} × {} took {took} on the device; at its peak {peak} they would take {least}: {wasted} less, {ratio} \
             of {}.",
            quoted(name),
            format_ns(window_ns)
        ),
        count: Some(row.count),
        gain: Some((wasted_ns, GainEstimate::Roofline)),
        ..found
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{check, products, some_products};

    #[test]
    fn an_operator_far_from_its_roofline_is_said() {
        // 312 GFLOP at 312 TFLOP/s: 1 ms.
        check(
            &products("[[3000,4000],[4000,13000]]", 3_000_000),
            "compute.roofline",
            &[
                "6000 of 9000 roofline high: 3 × `aten::mm` took 9.00 ms on the device; at its peak rate of computing they would take 3.00 ms: 6.00 ms less, 66.7 % of 9.00 ms.",
            ],
        );
        // Once is no habit.
        check(&some_products(2, "[[3000,4000],[4000,13000]]", 3_000_000), "compute.roofline", &[]);
        check(&products("[[3000,4000],[4000,13000]]", 2_000_000), "compute.roofline", &[]);
    }
}
