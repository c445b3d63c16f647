//! Whether a rank is slower than the others in step after step, or only now and then.

/// How often in ten steps it has to be.
const OFTEN: usize = 8;
/// What the excess may be at most before it begins, as a part of what it is then.
const PART_BEFORE: f64 = 0.25;
/// Fewer steps before do not tell when it began.
const LEAST_BEFORE: usize = 3;
const LEAST_AFTER: usize = 3;

/// A rank that is slower than the others.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Late {
    pub(super) rank: u32,
    /// By how much, on average over the steps in which it is.
    pub(super) excess_ns: i64,
    /// The step from which on it is; `None` for the first.
    pub(super) since: Option<i64>,
    /// Number of steps from then on, and in how many of them it takes longer than the middle one.
    pub(super) steps: usize,
    pub(super) late_steps: usize,
}

/// Whether a rank is slower in all steps, or from one on, by what it takes longer in each than the middle one of the others.
pub(super) fn persistent(rank: u32, numbers: &[i64], excesses: &[Option<i64>]) -> Option<Late> {
    let known: Vec<(i64, f64)> =
        numbers.iter().zip(excesses).filter_map(|(number, ns)| Some((*number, (*ns)? as f64))).collect();
    let late = |from: usize| {
        let values: Vec<f64> = known[from..].iter().map(|(_, ns)| *ns).collect();
        let late_steps = values.iter().filter(|ns| **ns > 0.0).count();
        let is_often = late_steps * 10 >= values.len() * OFTEN;
        (is_often && is_above_zero(&values)).then(|| Late {
            rank,
            excess_ns: mean(&values) as i64,
            since: (from > 0).then(|| known[from].0),
            steps: values.len(),
            late_steps,
        })
    };
    begins(&known).and_then(late).or_else(|| late(0))
}

/// From which step on the values are those that they were not before: where the two means differ by most.
fn begins(known: &[(i64, f64)]) -> Option<usize> {
    let values: Vec<f64> = known.iter().map(|(_, ns)| *ns).collect();
    let gap = |at: &usize| {
        let (before, after) = values.split_at(*at);
        (mean(after) - mean(before)).powi(2) * (before.len() * after.len()) as f64
    };
    let splits = LEAST_BEFORE..(values.len() + 1).saturating_sub(LEAST_AFTER);
    let at = splits.max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let (before, after) = values.split_at(at);
    (mean(before).abs() <= PART_BEFORE * mean(after)).then_some(at)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Whether a mean this far above zero comes about by chance once in a thousand times at most: Student's test.
fn is_above_zero(values: &[f64]) -> bool {
    /// The quantiles at 0.999 from two degrees of freedom on.
    const QUANTILES: [f64; 9] = [22.33, 10.21, 7.17, 5.89, 5.21, 4.79, 4.50, 4.30, 4.14];
    let Some(freedom) = values.len().checked_sub(1).filter(|freedom| *freedom >= 2) else { return false };
    let mean = mean(values);
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / freedom as f64;
    let quantile = QUANTILES[(freedom - 2).min(QUANTILES.len() - 1)];
    mean > 0.0 && mean >= quantile * (variance / values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(excesses: &[i64], expected: Option<(i64, Option<i64>, usize, usize)>) {
        let numbers: Vec<i64> = (10..).take(excesses.len()).collect();
        let known: Vec<Option<i64>> = excesses.iter().copied().map(Some).collect();
        let late = persistent(3, &numbers, &known);
        assert_eq!(
            late.map(|late| (late.excess_ns, late.since, late.steps, late.late_steps)),
            expected,
            "{excesses:?}"
        );
    }

    #[test]
    fn what_is_so_in_every_step_is_no_chance() {
        check(&[100, 100, 100], Some((100, None, 3, 3)));
        check(&[98, 101, 101], Some((100, None, 3, 3)));
        check(&[60, 140, 100], None);
        check(&[60, 140, 100, 110, 90, 130, 70, 100], Some((100, None, 8, 8)));
        check(&[-100, -100, -100], None);
        check(&[0, 0, 0], None);
    }

    #[test]
    fn what_changes_sides_is_chance() {
        check(&[100, -90, 110, -100, 95, -120, 100, -80], None);
        check(&[300, -20, -10, 290, -30, -15, -20, 310], None);
    }

    #[test]
    fn two_steps_say_nothing() {
        check(&[100, 100], None);
        check(&[], None);
    }

    #[test]
    fn when_it_begins_is_found() {
        check(&[1, -2, 3, 0, 100, 102, 98, 100], Some((100, Some(14), 4, 4)));
        // One or two steps before may be chance.
        check(&[0, 100, 101, 99, 100, 100, 100, 100, 100, 100, 100], Some((90, None, 11, 10)));
        check(&[1, -2, 100, 102, 98], None);
    }
}
