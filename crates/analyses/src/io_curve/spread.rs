//! Bytes spread over buckets.

use crate::buckets::Buckets;
use crate::io_calls::IoCall;
use stepscope_trace::IoAction;

/// Bits behind the point of a byte while bytes are spread, where there is room for them.
const FRACTION_BITS: u32 = 62;

/// The bytes of each bucket, of calls that do `action`.
pub(super) fn bytes_of(buckets: &Buckets, calls: &[IoCall], action: IoAction) -> Vec<Option<i64>> {
    let (sized, unsized_): (Vec<&IoCall>, Vec<&IoCall>) =
        calls.iter().filter(|call| call.event.action == action).partition(|call| call.event.bytes.is_some());
    let (instants, lasting): (Vec<&IoCall>, Vec<&IoCall>) = sized.iter().partition(|call| call.span.is_empty());
    let mut bytes = spread(buckets, &lasting);
    for call in instants {
        let sum = &mut bytes[buckets.at(call.span.start_ns)];
        *sum = sum.saturating_add(call.event.bytes.unwrap_or(0));
    }
    let (has_sized, has_unsized) = (touched(buckets, &sized), touched(buckets, &unsized_));
    let is_known = has_sized.into_iter().zip(has_unsized).map(|(sized, is_unsized)| sized || !is_unsized);
    bytes.into_iter().zip(is_known).map(|(bytes, is_known)| is_known.then_some(bytes)).collect()
}

/// For each bucket whether any of `calls` runs in it.
fn touched(buckets: &Buckets, calls: &[&IoCall]) -> Vec<bool> {
    let mut changes = vec![0_i64; buckets.len() as usize + 1];
    for IoCall { span, .. } in calls {
        changes[buckets.at(span.start_ns)] += 1;
        changes[buckets.at((span.end_ns - 1).max(span.start_ns)) + 1] -= 1;
    }
    let open = changes.iter().scan(0, |open, change| {
        *open += change;
        Some(*open > 0)
    });
    open.take(buckets.len() as usize).collect()
}

/// The bytes of calls that last, each spread evenly over its time, in each bucket. One pass over starts, ends and buckets: a call
/// that lasts for all buckets costs no more than another.
fn spread(buckets: &Buckets, calls: &[&IoCall]) -> Vec<i64> {
    let bytes_of = |call: &IoCall| i128::from(call.event.bytes.unwrap_or(0));
    let all = calls.iter().map(|call| bytes_of(call)).sum::<i128>();
    let bits = (all.leading_zeros() - 2).min(FRACTION_BITS);
    let half = (1 << bits) >> 1;
    // What a call moves in a nanosecond, rounded down; the rest comes with its end.
    let rate = |call: &IoCall| (bytes_of(call) << bits) / i128::from(call.span.duration_ns());
    let by_time = |at_ns: fn(&IoCall) -> i64| {
        let mut calls = calls.to_vec();
        calls.sort_by_key(|call| at_ns(call));
        calls.into_iter().peekable()
    };
    let mut starts = by_time(|call| call.span.start_ns);
    let mut ends = by_time(|call| call.span.end_ns);
    let (mut done, mut open, mut open_rate) = (0_i128, 0_i128, 0_i128);
    let (mut now_ns, mut told) = (buckets.window().start_ns, 0_i128);
    let mut bytes = Vec::with_capacity(buckets.len() as usize);
    for at in 0..buckets.len() as usize {
        let end_ns = buckets.span(at).end_ns;
        loop {
            let (start, end) = (starts.peek().map(|call| call.span.start_ns), ends.peek().map(|call| call.span.end_ns));
            // What begins where the bucket ends is the next one's.
            let start = start.filter(|ns| *ns < end_ns);
            let end = end.filter(|ns| *ns <= end_ns);
            let is_start = start.is_some_and(|start| end.is_none_or(|end| start < end));
            let Some(next_ns) = (if is_start { start } else { end }) else { break };
            open += open_rate * i128::from(next_ns - now_ns);
            now_ns = next_ns;
            if is_start {
                open_rate += starts.next().map_or(0, rate);
            } else if let Some(call) = ends.next() {
                open_rate -= rate(call);
                open -= rate(call) * i128::from(call.span.duration_ns());
                done += bytes_of(call);
            }
        }
        open += open_rate * i128::from(end_ns - now_ns);
        now_ns = end_ns;
        let come = done + ((open + half) >> bits);
        bytes.push(i64::try_from(come - told).unwrap_or(i64::MAX));
        told = come;
    }
    assert!(starts.next().is_none() && ends.next().is_none(), "every call lies in the buckets");
    bytes
}
