//! Pooling and interpolation: each element of the result is made of a window of the input.

use super::counts::{Counts, POSITION_BYTES, sum, times};
use super::inputs::{Inputs, product as elements};

/// How one axis is cut into windows.
struct Window {
    kernel: i64,
    stride: i64,
    padding: i64,
    dilation: i64,
    is_rounded_up: bool,
}

impl Window {
    /// Windows along an axis, as PyTorch counts them: the last one must begin inside the input or its padding before it.
    fn count(&self, size: i64) -> Option<i64> {
        let reach = self.dilation.checked_mul(self.kernel.checked_sub(1)?)?;
        let room = size.checked_add(self.padding.checked_mul(2)?)?.checked_sub(reach)?.checked_sub(1)?;
        if room < 0 || self.stride <= 0 || self.kernel <= 0 {
            return None;
        }
        let rounded = if self.is_rounded_up { room.checked_add(self.stride - 1)? } else { room };
        let count = (rounded / self.stride).checked_add(1)?;
        let last_starts_at = (count - 1).checked_mul(self.stride)?;
        Some(if self.is_rounded_up && last_starts_at >= size.checked_add(self.padding)? { count - 1 } else { count })
    }
}

/// Sizes along each axis at a position: one for all, or one each.
fn sizes(inputs: &Inputs, at: usize, axes: usize) -> Option<Vec<i64>> {
    match inputs.numbers(at)?.as_slice() {
        [all] => Some(vec![*all; axes]),
        sizes if sizes.len() == axes => Some(sizes.to_vec()),
        _ => None,
    }
}

/// The shape of the input in front of its last axes, and these.
fn split(dims: &[i64], axes: usize) -> Option<(&[i64], &[i64])> {
    dims.len().checked_sub(axes).map(|at| dims.split_at(at))
}

/// Arguments: input, kernel, stride, padding, then dilation when it is the largest that is taken, and rounding. One
/// operation for each element of each window.
pub(super) fn pool(inputs: &Inputs, axes: usize, is_max: bool) -> Counts {
    let x = inputs.tensor(0)?;
    let (outer, inner) = split(&x.dims, axes)?;
    let kernel = sizes(inputs, 1, axes)?;
    // None given means the kernel's.
    let stride = if inputs.numbers(2)?.is_empty() { kernel.clone() } else { sizes(inputs, 2, axes)? };
    let padding = sizes(inputs, 3, axes)?;
    let dilation = if is_max { sizes(inputs, 4, axes)? } else { vec![1; axes] };
    let is_rounded_up = inputs.flag(if is_max { 5 } else { 4 })?;
    let count = |axis: usize| {
        let [kernel, stride, padding, dilation] = [&kernel, &stride, &padding, &dilation].map(|sizes| sizes[axis]);
        Window { kernel, stride, padding, dilation, is_rounded_up }.count(inner[axis])
    };
    let windows: Vec<i64> = (0..axes).map(count).collect::<Option<_>>()?;
    let results = times(&[elements(outer)?, elements(&windows)?])?;
    let positions = if is_max { times(&[results, POSITION_BYTES]) } else { Some(0) };
    Some((times(&[results, elements(&kernel)?])?, sum([x.bytes(), x.bytes_of(Some(results)), positions])))
}

/// The gradient goes to where the largest was: arguments 0, 1 and 7 are gradient, input and positions.
pub(super) fn max_pool_backward(inputs: &Inputs) -> Counts {
    let (grad, x, positions) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(7)?);
    Some((grad.elements()?, sum([grad.bytes(), positions.bytes(), x.bytes_unexpanded()])))
}

/// The gradient goes to each element of its window: arguments 0, 1 and 2 are gradient, input and kernel.
pub(super) fn avg_pool_backward(inputs: &Inputs, axes: usize) -> Counts {
    let (grad, x) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let kernel = elements(&sizes(inputs, 2, axes)?)?;
    Some((times(&[grad.elements()?, kernel])?, sum([grad.bytes(), x.bytes_unexpanded()])))
}

/// Elements that all windows along one axis have, when `size` is cut into `windows` that may overlap: window i reaches
/// from floor(i·size / windows) to ceil((i + 1)·size / windows), so each limit between two that is no whole number is in
/// both.
fn adaptive_reads(size: i64, windows: i64) -> Option<i64> {
    if size <= 0 || windows <= 0 {
        return Some(0);
    }
    let (mut a, mut b) = (size, windows);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    size.checked_add(windows)?.checked_sub(a)
}

fn adaptive(outer: &[i64], from: &[i64], to: &[i64]) -> Option<i64> {
    let reads: Vec<i64> = from.iter().zip(to).map(|(from, to)| adaptive_reads(*from, *to)).collect::<Option<_>>()?;
    times(&[elements(outer)?, elements(&reads)?])
}

/// The mean of as many windows as asked for: arguments 0 and 1 are input and sizes of the result.
pub(super) fn adaptive_pool(inputs: &Inputs, axes: usize) -> Counts {
    let (x, result) = (inputs.tensor(0)?, sizes(inputs, 1, axes)?);
    let (outer, inner) = split(&x.dims, axes)?;
    let results = times(&[elements(outer)?, elements(&result)?])?;
    Some((adaptive(outer, inner, &result)?, sum([x.bytes(), x.bytes_of(Some(results))])))
}

/// Arguments 0 and 1 are gradient and input.
pub(super) fn adaptive_pool_backward(inputs: &Inputs, axes: usize) -> Counts {
    let (grad, x) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let ((outer, inner), (_, result)) = (split(&x.dims, axes)?, split(&grad.dims, axes)?);
    Some((adaptive(outer, inner, result)?, sum([grad.bytes(), x.bytes_unexpanded()])))
}

/// A weighted sum of `taps` elements for each of the result, of which argument 1 has the sizes; the nearest of one tap
/// is only copied. Of an input that is made smaller, no more is read than the taps.
pub(super) fn interpolate(inputs: &Inputs, axes: usize, taps: i64) -> Counts {
    let x = inputs.tensor(0)?;
    let (outer, _) = split(&x.dims, axes)?;
    let results = times(&[elements(outer)?, elements(&sizes(inputs, 1, axes)?)?])?;
    let tapped = times(&[results, taps])?;
    let flops = if taps == 1 { 0 } else { times(&[2, tapped])? };
    Some((flops, sum([x.bytes_of(x.stored.map(|stored| stored.min(tapped))), x.bytes_of(Some(results))])))
}

/// Arguments 0 and 2 are the gradient and the shape of the input.
pub(super) fn interpolate_backward(inputs: &Inputs, taps: i64) -> Counts {
    let grad = inputs.tensor(0)?;
    let factor = if taps == 1 { 1 } else { 2 };
    let flops = times(&[factor, taps, grad.elements()?])?;
    let written = inputs.numbers(2).and_then(|shape| grad.bytes_of(elements(&shape)));
    Some((flops, sum([grad.bytes(), written])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against windows laid out one by one.
        #[test]
        fn windows_that_may_overlap_are_counted(size in 1_i64..60, windows in 1_i64..60) {
            let window = |at: i64| ((at + 1) * size).div_euclid(windows) - (at * size).div_euclid(windows)
                + i64::from((at + 1) * size % windows != 0);
            prop_assert_eq!(adaptive_reads(size, windows), Some((0..windows).map(window).sum()));
        }

        /// Against laying one window behind the other, rounded up until one reaches the end.
        #[test]
        fn windows_begin_at_every_stride_that_has_room(
            size in 1_i64..40,
            kernel in 1_i64..6,
            stride in 1_i64..6,
            half_padding in 0_i64..3,
            dilation in 1_i64..4,
            is_rounded_up: bool,
        ) {
            let padding = half_padding.min(kernel / 2);
            let window = Window { kernel, stride, padding, dilation, is_rounded_up };
            let reach = dilation * (kernel - 1);
            prop_assume!(size + 2 * padding > reach);
            let (mut count, mut start) = (1, -padding);
            loop {
                let next = start + stride;
                let has_room = next + reach < size + padding;
                let is_needed = start + reach < size + padding - 1 && next < size;
                if !(if is_rounded_up { is_needed } else { has_room }) {
                    break;
                }
                (count, start) = (count + 1, next);
            }
            prop_assert_eq!(window.count(size), Some(count));
        }
    }
}
