//! What an analysis gets: a trace, a selection, and intermediate results that several analyses need. Such a result is
//! declared where it is computed, as a [`Shared`] type. It is computed when it is first needed, and once, also when
//! analyses run on several threads.

use crate::{Coverage, Selection};
use std::any::{Any, TypeId};
use std::sync::{Arc, OnceLock};
use stepscope_trace::Trace;

/// A result that several analyses need. It may need others, but not itself.
pub(crate) trait Shared: Send + Sync + 'static {
    /// Computes it.
    fn compute(context: &AnalysisContext<'_>) -> Self;
}

/// The part of a trace that an analysis is about, and what analyses share of it.
pub struct AnalysisContext<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// The part of it, and how to answer.
    pub selection: &'a Selection,
    results: SharedResults,
}

/// What analyses have shared so far of one selection of one trace. A clone is the same results, so that a later context
/// goes on with them.
#[derive(Clone, Default)]
pub struct SharedResults(Arc<Link>);

impl SharedResults {
    /// Results of which only this is known.
    pub fn resting_on(coverage: Coverage) -> Self {
        let results = Self::default();
        results.give(coverage);
        results
    }

    /// Whether there is a result of this type.
    pub(crate) fn has<T: Shared>(&self) -> bool {
        std::iter::successors(self.0.get(), |entry| entry.next.get()).any(|entry| entry.of == TypeId::of::<T>())
    }

    /// Adds a result that need not be computed; of its type there is none yet.
    pub(crate) fn give<T: Shared>(&self, result: T) {
        let mut link = &*self.0;
        while let Some(entry) = link.get() {
            link = &entry.next;
        }
        let value: OnceLock<Box<dyn Any + Send + Sync>> = OnceLock::new();
        value.get_or_init(|| Box::new(result));
        link.get_or_init(|| Box::new(Entry { of: TypeId::of::<T>(), value, next: Link::new() }));
    }
}

/// A list that only grows, so that what it holds can be borrowed while other threads add to it.
type Link = OnceLock<Box<Entry>>;

struct Entry {
    of: TypeId,
    value: OnceLock<Box<dyn Any + Send + Sync>>,
    next: Link,
}

impl<'a> AnalysisContext<'a> {
    /// A context of `selection` of `trace`; nothing is computed yet.
    pub fn new(trace: &'a Trace, selection: &'a Selection) -> Self {
        Self::with_results(trace, selection, SharedResults::default())
    }

    /// A context that goes on with `results`, which are of the same selection of the same trace.
    pub fn with_results(trace: &'a Trace, selection: &'a Selection, results: SharedResults) -> Self {
        Self { trace, selection, results }
    }

    /// What results of it rest on.
    pub fn coverage(&self) -> Coverage {
        *self.get()
    }

    /// The result of this type. A loop fetches it once.
    pub(crate) fn get<T: Shared>(&self) -> &T {
        let (of, mut link) = (TypeId::of::<T>(), &*self.results.0);
        loop {
            let entry = link.get_or_init(|| Box::new(Entry { of, value: OnceLock::new(), next: Link::new() }));
            if entry.of == of {
                let value = entry.value.get_or_init(|| Box::new(T::compute(self)));
                return value.downcast_ref().expect("entries are found by type");
            }
            link = &entry.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, catalogue};
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn;

    proptest! {
        #[test]
        fn what_is_shared_changes_no_answer(
            host in "[.axsi|]{30}", launch in "[.CDN|]{30}", streams in prop::collection::vec("[.CDNH|]{30}", 1..3),
            memory in "[.abcABC]{30}", steps in "0{1,20}1{1,20}", backwards in any::<bool>(),
        ) {
            let mut drawing = format!("rank 0 step {steps}\nrank 0 cpu 1 {host}\nrank 0 launch 1 {launch}\nrank 0 memory 1 {memory}\n");
            streams.iter().enumerate().for_each(|(at, row)| drawing += &format!("rank 0 stream {at} {row}\n"));
            let trace = drawn(&drawing);
            for step in [None, Some(1)] {
                let selection = Selection { step, ..Selection::default() };
                let alone = catalogue().iter().map(|analysis| (analysis.run)(&AnalysisContext::new(&trace, &selection)));
                let context = AnalysisContext::new(&trace, &selection);
                let mut together: Vec<Outcome> = Vec::new();
                for at in 0..catalogue().len() {
                    let at = if backwards { catalogue().len() - 1 - at } else { at };
                    together.push((catalogue()[at].run)(&context));
                }
                if backwards {
                    together.reverse();
                }
                prop_assert_eq!(together, alone.collect::<Vec<_>>());
            }
        }
    }
}
