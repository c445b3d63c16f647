//! Several analyses of one part of a trace: what they share is computed once, and they run on all processors.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use stepscope_analyses::{Analysis, AnalysisContext, Outcome};

/// The outcome of each of `analyses`, in their order.
pub fn outcomes(context: &AnalysisContext<'_>, analyses: &[&Analysis]) -> Vec<Outcome> {
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    outcomes_on(processors.min(analyses.len()), context, analyses)
}

/// As [`outcomes`], on `threads` threads, this one among them.
fn outcomes_on(threads: usize, context: &AnalysisContext<'_>, analyses: &[&Analysis]) -> Vec<Outcome> {
    let left: Mutex<Range<usize>> = Mutex::new(0..analyses.len());
    let outcomes: Vec<OnceLock<Outcome>> = analyses.iter().map(|_| OnceLock::new()).collect();
    // Neighbours share most: threads take them from both ends, so that one seldom waits for what another computes.
    let run = |is_from_front: bool| {
        let next = || {
            let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
            if is_from_front { left.next() } else { left.next_back() }
        };
        while let Some(at) = next() {
            outcomes[at].get_or_init(|| (analyses[at].run)(context));
        }
    };
    thread::scope(|scope| {
        for number in 1..threads {
            scope.spawn(move || run(number % 2 == 0));
        }
        run(true);
    });
    outcomes.into_iter().map(|outcome| outcome.into_inner().expect("every analysis was taken once")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use stepscope_analyses::catalogue;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let trace = drawn(
            "rank 0 step     000001111122222
             rank 0 cpu 1    .aaab..cc.dd...
             rank 0 launch 1 ..C...NH.......
             rank 0 sync 1   .....sssss.....
             rank 0 stream 7 ....CCCC..NNHH.
             rank 0 memory 1 a.b.cAB........",
        );
        let selection = Selection::default();
        let analyses: Vec<&Analysis> = catalogue().iter().collect();
        let alone: Vec<Outcome> =
            analyses.iter().map(|analysis| (analysis.run)(&AnalysisContext::new(&trace, &selection))).collect();
        for threads in [0, 1, 2, 3, 64] {
            assert_eq!(outcomes_on(threads, &AnalysisContext::new(&trace, &selection), &analyses), alone);
        }
        assert_eq!(outcomes(&AnalysisContext::new(&trace, &selection), &[]), []);
    }
}
