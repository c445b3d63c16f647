//! The mean of times that are divided into parts.

/// The mean of each part over `rows`; `None` without a row.
pub(crate) fn mean_parts<const PARTS: usize>(rows: impl Iterator<Item = [i64; PARTS]>) -> Option<[i64; PARTS]> {
    let (mut sums, mut count) = ([0_i128; PARTS], 0_i128);
    for row in rows {
        count += 1;
        for (sum, part) in sums.iter_mut().zip(row) {
            *sum += i128::from(part);
        }
    }
    let mut means = means_of_sums(sums, count)?;
    Some(std::array::from_fn(|_| means.next().unwrap_or_default()))
}

/// The mean of each part, of their `sums` over `count` rows; `None` without a row. Running sums are divided, not the parts
/// themselves: that way every part is within 1 ns of its exact mean, and so is the sum of neighbours; the rounded parts
/// sum to the rounded mean of the whole.
pub(crate) fn means_of_sums(sums: impl IntoIterator<Item = i128>, count: i128) -> Option<impl Iterator<Item = i64>> {
    let (mut sum, mut end_ns) = (0, 0);
    (count > 0).then(|| {
        sums.into_iter().map(move |part| {
            sum += part;
            let begin_ns = std::mem::replace(&mut end_ns, sum / count);
            (end_ns - begin_ns) as i64
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_part_is_near_its_mean_and_all_sum_to_that_of_the_whole(
            rows in prop::collection::vec(prop::array::uniform4(0_i64..1 << 40), 0..20),
        ) {
            let means = mean_parts(rows.iter().copied());
            prop_assert_eq!(means.is_none(), rows.is_empty());
            prop_assume!(!rows.is_empty());
            let means = means.unwrap_or_default();
            let count = rows.len() as i64;
            for (part, mean) in means.into_iter().enumerate() {
                let sum: i64 = rows.iter().map(|row| row[part]).sum();
                prop_assert!((mean * count - sum).abs() < count);
            }
            let whole: i64 = rows.iter().flatten().sum();
            prop_assert_eq!(means.iter().sum::<i64>(), whole / count);
        }
    }
}
