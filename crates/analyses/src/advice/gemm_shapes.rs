//! Matrix products have sizes that fit tensor cores badly.

use super::cases::Cases;
use super::facts::{Facts, share};
use super::kernel_work::{kernels_of, saved};
use super::words::counted;
use super::{Advice, GainEstimate, Judged, Rule};
use crate::flops::{Formula, shapes};
use crate::op_classes::op_class;
use crate::roofline::RooflineRow;
use stepscope_base::units::{format_count, format_ns, format_ratio};

const THRESHOLD: f64 = 0.02;
/// Sizes should be multiples of 16 bytes: of 8 elements of 16 bits, which suffices for wider ones too.
const MULTIPLE: i64 = 8;
/// Rows and columns of the smallest tile that kernels of products work on.
const TILE: i64 = 64;

pub(super) const RULE: Rule = Rule {
    code: "compute.gemm_shapes",
    fault: "Sizes of matrix products fit the device badly",
    disproof: "The same products take as long with padded sizes.",
    evidence: "roofline",
    to_do: "Pad sizes to multiples of 8, better 64 (vocabulary, hidden size, batch times sequence length), and put \
            small products into one: `torch.bmm`, concatenated weights, larger batches.",
    judge,
};

/// Rows, shared dimension, columns.
type Sizes = [i64; 3];

fn judge(facts: &Facts) -> Judged {
    let of_ranks = facts.rooflines()?.chunk_by(|(a, _), (b, _)| a == b);
    Ok(of_ranks.filter_map(|rows| of_rank(facts, rows)).collect())
}

/// `rows` of one rank.
fn of_rank(facts: &Facts, rows: &[(u32, RooflineRow)]) -> Option<Advice> {
    let rank = rows.first()?.0;
    let found = rows.iter().filter_map(|(_, row)| Some((row, misfit(row)?)));
    let found: Vec<(&RooflineRow, Sizes)> = found.collect();
    let sum = |ns: fn(&RooflineRow) -> i64| found.iter().fold(0_i64, |sum, (row, _)| sum.saturating_add(ns(row)));
    let window_ns = facts.window_ns(rank);
    let wasted_ns = sum(|row| row.wasted_ns).min(window_ns);
    let worst = found.iter().max_by_key(|(row, _)| row.wasted_ns).copied();
    let row = share(wasted_ns, window_ns, THRESHOLD)?;
    let is_found = |name: &str| found.iter().any(|(row, _)| row.label.as_ref().is_some_and(|label| label.name == name));
    let kernels = kernels_of(facts.context, rank, is_found);
    let row = Some(row).filter(|row| Cases::of(&kernels).are_habit(row))?;
    let time = saved(&kernels, wasted_ns);
    advice(Advice { rank: Some(rank), time, ..row }, worst?, sum(|row| row.modeled_ns), sum(|row| row.count))
}

fn advice(row: Advice, (worst, sizes): (&RooflineRow, Sizes), took_ns: i64, count: i64) -> Option<Advice> {
    let [rows, shared, columns] = sizes.map(format_count);
    let (wasted_ns, window_ns) = (row.measured_ns?, row.window_ns?);
    let (calls, took, ratio) =
        (counted(count, "matrix product"), format_ns(took_ns), format_ratio(row.measured_ratio?));
    let (name, worst_ns) = (&worst.label.as_ref()?.name, format_ns(worst.modeled_ns));
    Some(Advice {
        says: format!(
            "{calls} with small sizes or sizes that are no multiples of 8 take {took}, {} ({ratio} of \
             {}) more than at the device's peaks; the worst is `{name}` of {rows} × {shared} by {shared} × {columns} \
             with {worst_ns}.",
            format_ns(wasted_ns),
            format_ns(window_ns)
        ),
        count: Some(count),
        gain: Some((wasted_ns, GainEstimate::Roofline)),
        ..row
    })
}

/// The sizes of a row's product when they fit badly and it takes more than twice its roofline time. Products with a
/// vector are bound by memory, and no padding helps them.
fn misfit(row: &RooflineRow) -> Option<Sizes> {
    let label = row.label.as_ref()?;
    let sizes = sizes(op_class(&label.name).formula?, &shapes(label.shapes.as_ref()?)?)?;
    let [rows, _, columns] = sizes;
    let is_unaligned = sizes.iter().any(|size| size % MULTIPLE != 0);
    let is_small = rows.min(columns) < TILE;
    let is_slow = row.wasted_ns > row.modeled_ns / 2;
    (is_slow && rows > 1 && columns > 1 && (is_unaligned || is_small)).then_some(sizes)
}

/// Of one product of a batch.
fn sizes(formula: Formula, shapes: &[Option<Vec<i64>>]) -> Option<Sizes> {
    let shape = |at: usize| shapes.get(at)?.as_deref();
    match formula {
        Formula::Product(of) => match (shape(of.a)?, shape(of.b)?) {
            ([.., rows, shared], [.., inner, columns]) if shared == inner => Some([*rows, *shared, *columns]),
            _ => None,
        },
        Formula::Linear => {
            let (input, weight) = (shape(0)?, shape(1)?);
            let (shared, rows) = input.split_last()?;
            let rows = rows.iter().try_fold(1_i64, |rows, size| rows.checked_mul(*size))?;
            match weight {
                [columns, inner] if shared == inner => Some([rows, *shared, *columns]),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::tests::{check, products, some_products};

    #[test]
    fn sizes_that_are_no_multiples_of_eight_are_said_with_what_they_waste() {
        // 3,900 is no multiple of 8, 4,000 and 10,000 are.
        check(
            &products("[[3900,4000],[4000,10000]]", 3_000_000),
            "compute.gemm_shapes",
            &[
                "6000 of 9000 roofline high: 3 matrix products with small sizes or sizes that are no multiples of 8 take 9.00 ms, 6.00 ms (66.7 % of 9.00 ms) more than at the device's peaks; the worst is `aten::mm` of 3,900 × 4,000 by 4,000 × 10,000 with 9.00 ms.",
            ],
        );
        // Once is no habit.
        check(&some_products(2, "[[3900,4000],[4000,10000]]", 3_000_000), "compute.gemm_shapes", &[]);
        check(&products("[[3904,4000],[4000,10000]]", 3_000_000), "compute.gemm_shapes", &[]);
        check(&products("[[3900,4000],[4000,10000]]", 2_000_000), "compute.gemm_shapes", &[]);
    }

    #[test]
    fn sizes_are_those_of_one_product() {
        let of = |formula, dims| sizes(formula, &shapes(dims).unwrap());
        assert_eq!(of(Formula::parse("product 1 2").unwrap(), "[[7],[5,3,4],[5,4,6]]"), Some([3, 4, 6]));
        assert_eq!(of(Formula::parse("product 0 1").unwrap(), "[[3,4],[4]]"), None);
        assert_eq!(of(Formula::Linear, "[[2,3,4],[6,4],[]]"), Some([6, 4, 6]));
        assert_eq!(of(Formula::Copy, "[[3,4],[4,3]]"), None);
    }
}
