//! Matrix products have sizes that fit tensor cores badly: by their shapes, or where these are not recorded, by what the
//! names of their kernels say.

use super::cases::Cases;
use super::facts::{Facts, gpu, share, share_of_device};
use super::kernel_work::{KernelWork, kernels_of, saved};
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Rule};
use crate::flops::{Formula, shapes};
use crate::op_classes::op_class;
use crate::roofline::RooflineRow;
use crate::temporal_breakdown::TemporalBreakdown;
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
    let lacks = match facts.rooflines() {
        Ok(rows) => {
            let of_ranks = rows.chunk_by(|(a, _), (b, _)| a == b);
            return Ok(of_ranks.filter_map(|rows| of_rank(facts, rows)).collect());
        }
        Err(lacks) => lacks,
    };
    let of_devices: Vec<_> = facts.kernels()?.collect();
    if !of_devices.iter().any(|(_, work)| work.knows_alignment) {
        return Err(lacks);
    }
    Ok(of_devices.into_iter().filter_map(|(device, work)| of_kernels(facts, device, work)).collect())
}

/// Of a device whose operators have no shapes.
fn of_kernels(facts: &Facts, device: &TemporalBreakdown, work: &KernelWork) -> Option<Advice> {
    let unaligned = &work.unaligned;
    // Kernels that run at the same time are a sum that can exceed the window.
    let took_ns = unaligned.total_ns.min(device.compute_ns);
    let row = share_of_device(device, took_ns, THRESHOLD).filter(|row| unaligned.is_habit(row))?;
    let (op, op_ns) = unaligned.most(facts.trace)?;
    Some(Advice {
        says: format!(
            "{} spends {} ({}) of {} in {} whose kernels read less than 16 bytes at a time, as they have to where a size is \
             no multiple of 8, {} of it in {}.",
            gpu(device.device),
            format_ns(took_ns),
            format_ratio(row.measured_ratio?),
            format_ns(device.span_ns),
            counted(unaligned.count, "matrix product"),
            format_ns(op_ns),
            quoted(op)
        ),
        count: Some(unaligned.count),
        gain: Some((took_ns, GainEstimate::Bound)),
        place: unaligned.place(facts.trace),
        time: unaligned.saved(took_ns),
        ..row
    })
}

/// Whether a kernel of a product reads 16 bytes at a time, as far as its name says how many elements of which type it reads:
/// `align8` in those of CUTLASS, `ldg8` in those of cuBLAS. `None` where it does not, and of wide types that need none.
pub(super) fn is_aligned(kernel: &str) -> Option<bool> {
    let name = kernel.to_ascii_lowercase();
    let is_any = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    let bytes = match () {
        () if is_any(&["tf32"]) => 4,
        () if is_any(&["bf16", "_f16", "fp16", "_h884", "_h1688", "_h16816"]) => 2,
        () => return None,
    };
    let elements = ["_align", "_ldg"].iter().find_map(|word| {
        let digits = name.split_once(word)?.1;
        let end = digits.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse::<u32>().ok()
    })?;
    Some(elements * bytes >= 16)
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
    use crate::advice::tests::{check, products, rename, some_products};
    use stepscope_base::StringTable;

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
    fn without_shapes_the_names_of_kernels_say_it() {
        let of = |kernel: &str| {
            let mut trace = rename(products("", 3_000_000), "gemm", kernel);
            trace.ops.inputs.iter_mut().for_each(|inputs| inputs.dims = StringTable::EMPTY);
            trace
        };
        let unaligned = of("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>(Params)");
        check(
            &unaligned,
            "compute.gemm_shapes",
            &[
                "9000 of 9000 bound high: GPU 0 spends 9.00 ms (100.0 %) of 9.00 ms in 3 matrix products whose kernels read less than 16 bytes at a time, as they have to where a size is no multiple of 8, 9.00 ms of it in `aten::mm`.",
            ],
        );
        check(&of("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_tn"), "compute.gemm_shapes", &[]);
    }

    #[test]
    fn names_of_kernels_say_how_much_they_read_at_a_time() {
        for (kernel, expected) in [
            ("cutlass_75_tensorop_bf16_s1688gemm_bf16_128x256_nt_align1", Some(false)),
            ("cutlass_80_tensorop_f16_s16816gemm_relu_f16_64x64_64x6_tn_align8", Some(true)),
            ("cutlass_80_tensorop_s1688tf32gemm_256x64_16x4_tn_align4", Some(true)),
            ("cutlass_80_tensorop_s1688tf32gemm_128x128_16x5_nt_align1", Some(false)),
            ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", Some(true)),
            // One element of 64 bits, and what has no tensor cores, need no more.
            ("cutlass_80_tensorop_d884gemm_64x32_16x4_tn_align1", None),
            ("cutlass_80_simt_sgemm_128x256_8x4_nt_align1", None),
            ("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT", None),
            ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80(AttentionKernel)", None),
        ] {
            assert_eq!(is_aligned(kernel), expected, "{kernel}");
        }
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
