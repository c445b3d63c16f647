//! The rank-sum test of Mann and Whitney: whether values of one list tend to be larger than those of another, whatever
//! their distribution.

/// With fewer values on a side the normal distribution says too little.
const MIN_VALUES: usize = 5;

/// The probability of sums of ranks as far apart as those of `a` and `b`, both ascending, when they do not differ: by the
/// normal distribution with corrections for ties and for continuity, two-sided. `None` for too few values.
pub(super) fn p_value(a: &[i64], b: &[i64]) -> Option<f64> {
    if a.len() < MIN_VALUES || b.len() < MIN_VALUES {
        return None;
    }
    let (count_a, count_b) = (a.len() as f64, b.len() as f64);
    let count = count_a + count_b;
    let mut all: Vec<i64> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    let (mut sum_of_a, mut ties, mut before) = (0.0, 0.0, 0.0);
    for same in all.chunk_by(|x, y| x == y) {
        let size = same.len() as f64;
        let of_a = (a.partition_point(|x| *x <= same[0]) - a.partition_point(|x| *x < same[0])) as f64;
        sum_of_a += of_a * (before + (size + 1.0) / 2.0);
        ties += size.powi(3) - size;
        before += size;
    }
    let larger = sum_of_a - count_a * (count_a + 1.0) / 2.0;
    let variance = count_a * count_b / 12.0 * ((count + 1.0) - ties / (count * (count - 1.0)));
    if variance <= 0.0 {
        // All values are the same.
        return Some(1.0);
    }
    let distance = ((larger - count_a * count_b / 2.0).abs() - 0.5).max(0.0);
    Some(libm::erfc(distance / variance.sqrt() / std::f64::consts::SQRT_2).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_those_of_scipy() {
        // scipy.stats.mannwhitneyu(a, b, method="asymptotic").pvalue
        let close = |a: &[i64], b: &[i64], expected: f64| {
            let found = p_value(a, b).unwrap();
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        };
        close(&[1, 2, 3, 4, 5], &[6, 7, 8, 9, 10], SEPARATE);
        close(&[1, 2, 2, 3, 5, 8], &[2, 3, 5, 7, 7, 9, 9], TIED);
        close(&[4, 4, 4, 4, 4], &[4, 4, 4, 4, 4], 1.0);
    }

    const SEPARATE: f64 = 0.012_185_780_355_344_813;
    const TIED: f64 = 0.129_327_214_553_104_25;

    /// By definition: how often a value of `a` is larger than one of `b`, ties half.
    fn larger(a: &[i64], b: &[i64]) -> f64 {
        let half = |x: &i64, y: &i64| {
            if x > y {
                1.0
            } else if x == y {
                0.5
            } else {
                0.0
            }
        };
        a.iter().flat_map(|x| b.iter().map(move |y| half(x, y))).sum()
    }

    proptest! {
        #[test]
        fn sides_can_be_changed_and_what_is_further_apart_is_less_likely(
            mut a in prop::collection::vec(0_i64..20, 5..20), mut b in prop::collection::vec(0_i64..20, 5..20),
        ) {
            a.sort_unstable();
            b.sort_unstable();
            let found = p_value(&a, &b).unwrap();
            prop_assert!((0.0..=1.0).contains(&found));
            prop_assert!((found - p_value(&b, &a).unwrap()).abs() < 1e-12);
            let middle = (a.len() * b.len()) as f64 / 2.0;
            if (larger(&a, &b) - middle).abs() <= 0.5 {
                prop_assert_eq!(found, 1.0);
            } else {
                prop_assert!(found < 1.0);
            }
        }
    }
}
