//! Order statistics of integers, without interpolation: every percentile is a value that occurred.

/// The nearest-rank percentile of ascending `sorted`: the smallest value that at least `percent` of 100 of the values
/// do not exceed. `None` when there is no value.
///
/// # Panics
/// When `percent` is not in `1..=100`.
pub fn nearest_rank(sorted: &[i64], percent: u32) -> Option<i64> {
    assert!((1..=100).contains(&percent), "percent is 1..=100");
    let rank = (sorted.len() * percent as usize).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

/// The nearest-rank percentile of values in any order, which are reordered; takes linear time.
///
/// # Panics
/// When `percent` is not in `1..=100`.
pub fn nearest_rank_of_unsorted(values: &mut [i64], percent: u32) -> Option<i64> {
    assert!((1..=100).contains(&percent), "percent is 1..=100");
    let at = (values.len() * percent as usize).div_ceil(100).checked_sub(1)?;
    Some(*values.select_nth_unstable(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values = [10, 20, 30, 40];
        assert_eq!(nearest_rank(&values, 50), Some(20));
        assert_eq!(nearest_rank(&values, 51), Some(30));
        assert_eq!(nearest_rank(&values, 99), Some(40));
        assert_eq!(nearest_rank(&values, 1), Some(10));
        assert_eq!(nearest_rank(&[], 50), None);
    }

    #[test]
    fn order_does_not_matter() {
        let sorted = [1, 2, 2, 5, 9, 9, 12];
        for percent in 1..=100 {
            assert_eq!(nearest_rank_of_unsorted(&mut [9, 2, 12, 1, 9, 5, 2], percent), nearest_rank(&sorted, percent));
        }
        assert_eq!(nearest_rank_of_unsorted(&mut [], 50), None);
    }
}
