//! By how much one sample is larger than another, and whether that may be chance.

/// More values than this are thinned out evenly: the number of pairs is what takes time.
const MAX_VALUES: usize = 1_000;
/// Up to this product of sizes, and without ties, the probability is counted and not estimated.
const MAX_COUNTED: usize = 400;
/// The standard deviations within which 95 % of the normal distribution lie.
const Z_95: f64 = 1.959_963_984_540_054;

/// How two samples differ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Difference {
    /// The median difference of all pairs: by how much the second is larger.
    pub shift: i64,
    /// The limits that hold it with a confidence of 95 % at least; `None` where even the least and the greatest
    /// difference do not, as for three values against three.
    pub limits: Option<(i64, i64)>,
    /// How likely so clear a difference, either way, would be without one; `None` for samples of one.
    pub p_value: Option<f64>,
}

/// How `b` differs from `a`; `None` when one of them is empty.
pub fn difference(a: &[i64], b: &[i64]) -> Option<Difference> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let (a, b) = (thinned(a), thinned(b));
    let mut pairs: Vec<i64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    pairs.sort_unstable();
    let shift = median(&pairs);
    if a.len() < 2 || b.len() < 2 {
        return Some(Difference { shift, limits: None, p_value: None });
    }
    // Of the differences that can be limits, the innermost make the narrowest interval.
    let limits = limits_from_outside(a.len(), b.len()).checked_sub(1);
    let limits = limits.map(|inwards| (pairs[inwards], pairs[pairs.len() - 1 - inwards]));
    Some(Difference { shift, limits, p_value: Some(p_value(&a, &b)) })
}

fn thinned(values: &[i64]) -> Vec<i64> {
    match values.len() > MAX_VALUES {
        true => (0..MAX_VALUES).map(|at| values[at * values.len() / MAX_VALUES]).collect(),
        false => values.to_vec(),
    }
}

/// The middle of sorted values; of two middle ones their mean.
fn median(sorted: &[i64]) -> i64 {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => (i128::from(sorted[middle - 1]) + i128::from(sorted[middle])).div_euclid(2) as i64,
        _ => sorted[middle],
    }
}

/// How many of the ordered differences of all pairs, from either end, hold the true one between them and their likes at
/// the other end with a confidence of 95 %.
fn limits_from_outside(n: usize, m: usize) -> usize {
    if n * m <= MAX_COUNTED {
        let tails = tails(n, m);
        return tails.iter().take_while(|tail| 2.0 * **tail <= 0.05).count();
    }
    let (n, m) = (n as f64, m as f64);
    (n * m / 2.0 - Z_95 * (n * m * (n + m + 1.0) / 12.0).sqrt()).floor() as usize
}

/// The two-sided probability of the rank sum test.
fn p_value(a: &[i64], b: &[i64]) -> f64 {
    // Twice the number of pairs in which b is larger, ties counting half.
    let twice_u: u64 = b.iter().flat_map(|b| a.iter().map(move |a| if b > a { 2 } else { u64::from(a == b) })).sum();
    let mut all: Vec<i64> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    let ties: Vec<f64> = all.chunk_by(|a, b| a == b).map(|equal| equal.len() as f64).collect();
    let has_ties = ties.len() < all.len();
    if !has_ties && a.len() * b.len() <= MAX_COUNTED {
        return counted(a.len(), b.len(), (twice_u / 2) as usize);
    }
    let (n, m, total) = (a.len() as f64, b.len() as f64, all.len() as f64);
    let correction: f64 = ties.iter().map(|t| t * t * t - t).sum::<f64>() / (total * (total - 1.0));
    let variance = n * m / 12.0 * (total + 1.0 - correction);
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = ((twice_u as f64 / 2.0 - n * m / 2.0).abs() - 0.5).max(0.0);
    (2.0 * upper_tail(distance / variance.sqrt())).min(1.0)
}

/// As [`p_value`], by counting all orders of `n` and `m` values without ties, of which `u` pairs are in order.
fn counted(n: usize, m: usize, u: usize) -> f64 {
    (2.0 * tails(n, m)[u.min(n * m - u)]).min(1.0)
}

/// For each number of pairs in order: the share of all orders of `n` and `m` values without ties that have that number
/// or fewer.
fn tails(n: usize, m: usize) -> Vec<f64> {
    // ways[k][u]: orders of k values of the first and j of the second sample with u such pairs, for growing j.
    let pairs = n * m;
    let mut ways = vec![vec![0.0_f64; pairs + 1]; n + 1];
    ways.iter_mut().for_each(|row| row[0] = 1.0);
    for _ in 0..m {
        // The largest value is of the second sample, and above all k of the first, or is of the first.
        let mut next = vec![vec![0.0_f64; pairs + 1]; n + 1];
        for k in 0..=n {
            for u in 0..=pairs {
                let of_second = if u >= k { ways[k][u - k] } else { 0.0 };
                let of_first = if k > 0 { next[k - 1][u] } else { 0.0 };
                next[k][u] = of_second + of_first;
            }
        }
        ways = next;
    }
    let total: f64 = ways[n].iter().sum();
    let mut sum = 0.0;
    let upto = ways[n].iter().map(|ways| {
        sum += ways;
        sum / total
    });
    upto.collect()
}

/// The share of the normal distribution above `z`.
fn upper_tail(z: f64) -> f64 {
    libm::erfc(z / std::f64::consts::SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counted_probabilities_are_those_of_the_tables() {
        // Two against two: the most extreme of six orders, either way.
        assert!((counted(2, 2, 0) - 2.0 / 6.0).abs() < 1e-12);
        assert!((counted(2, 2, 2) - 1.0).abs() < 1e-12);
        // scipy.stats.mannwhitneyu([1, 2, 3], [4, 5, 6]): 0.1
        assert!((difference(&[1, 2, 3], &[4, 5, 6]).unwrap().p_value.unwrap() - 0.1).abs() < 1e-12);
        // scipy.stats.mannwhitneyu([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]): 0.007936507936507936
        let p = difference(&[1, 2, 3, 4, 5], &[6, 7, 8, 9, 10]).unwrap().p_value.unwrap();
        assert!((p - 0.007_936_507_936_507_936).abs() < 1e-12);
    }

    #[test]
    fn what_is_estimated_is_near_what_is_counted() {
        for u in [0, 20, 60, 100, 150, 200] {
            let (exact, n) = (counted(20, 20, u), 20.0_f64);
            let z = (((u as f64) - n * n / 2.0).abs() - 0.5).max(0.0) / (n * n * (2.0 * n + 1.0) / 12.0).sqrt();
            assert!((exact - 2.0 * upper_tail(z)).abs() < 0.01, "{u}: {exact} {}", 2.0 * upper_tail(z));
        }
        assert!((upper_tail(Z_95) - 0.025).abs() < 1e-15);
        assert!((upper_tail(0.0) - 0.5).abs() < 1e-15);
    }

    #[test]
    fn limits_are_those_of_r() {
        // wilcox.test(b, a, conf.int = TRUE) of five values each, and why: two of 252 orders are beyond the first, four
        // beyond the second, eight beyond the third, which is 3.2 %; beyond the fourth are 5.6 %.
        let (a, b) = ([1_000, 1_010, 1_020, 1_030, 1_040], [1_500, 1_510, 1_520, 1_530, 1_540]);
        assert_eq!(difference(&a, &b).unwrap().limits, Some((470, 530)));
        assert_eq!(
            [(2, 2), (3, 3), (4, 4), (5, 5), (20, 20)].map(|(n, m)| limits_from_outside(n, m)),
            [0, 0, 1, 3, 128]
        );
        assert_eq!(difference(&[1, 2, 3], &[4, 5, 6]).unwrap().limits, None);
        // What is estimated goes on where what is counted ends.
        assert_eq!(limits_from_outside(20, 21), 134);
    }

    #[test]
    fn too_few_values_have_a_shift_and_no_limits() {
        assert_eq!(difference(&[5], &[9]), Some(Difference { shift: 4, limits: None, p_value: None }));
        assert_eq!(difference(&[], &[9]), None);
    }

    proptest! {
        #[test]
        fn a_sample_and_its_shifted_copy_differ_by_the_shift(values in prop::collection::vec(-1_000_i64..1_000, 2..60), by in -500_i64..500) {
            let shifted: Vec<i64> = values.iter().map(|value| value + by).collect();
            let found = difference(&values, &shifted).unwrap();
            prop_assert_eq!(found.shift, by);
            let back = difference(&shifted, &values).unwrap();
            prop_assert_eq!(back.shift, -by);
            prop_assert_eq!(found.limits.is_some(), values.len() > 3);
            if let Some((low, high)) = found.limits {
                prop_assert!(low <= by && by <= high);
                prop_assert_eq!(back.limits, Some((-high, -low)));
            }
            prop_assert!((back.p_value.unwrap() - found.p_value.unwrap()).abs() < 1e-9);
            prop_assert!(by != 0 || found.p_value.unwrap() > 0.99);
        }
    }
}
