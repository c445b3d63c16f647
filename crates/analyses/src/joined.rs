//! Results of several ranks that are put together from those of each, which are computed of the events of that rank alone.
//!
//! ```text
//! events of a rank ─▶ its result ─┐
//! events of a rank ─▶ its result ─┴▶ joined ─▶ analyses
//! ```

use crate::AnalysisContext;
use crate::compare::Counted;
use crate::context::{Shared, SharedResults};
use crate::coverage::Launched;
use std::any::Any;

/// A result of some ranks that can be put together with that of others. It refers to no trace.
pub(crate) trait Joinable: Shared + Sized {
    /// That of all of them. Each rank is in one, and they come by rank.
    fn joined(of_ranks: Vec<Self>) -> Self;
}

/// Which result is computed of each rank and put together.
#[derive(Clone, Copy, Debug)]
pub struct Joined {
    of: fn(&AnalysisContext<'_>) -> OfRanks,
    join: fn(Vec<OfRanks>) -> SharedResults,
}

/// The result of some ranks, and how much was asked for.
pub struct OfRanks {
    result: Box<dyn Any + Send + Sync>,
    launched: Launched,
    counted: Counted,
}

impl Joined {
    /// Results of type `T`.
    pub(crate) const fn by<T: Joinable>() -> Self {
        Self { of: of::<T>, join: join::<T> }
    }

    /// The result of the part of a trace that `context` is of.
    pub fn of(self, context: &AnalysisContext<'_>) -> OfRanks {
        (self.of)(context)
    }

    /// What analyses share of all ranks; each is in one of `of_ranks`, which come by rank.
    pub fn join(self, of_ranks: Vec<OfRanks>) -> SharedResults {
        (self.join)(of_ranks)
    }
}

fn of<T: Joinable>(context: &AnalysisContext<'_>) -> OfRanks {
    let result = Box::new(T::compute(context));
    OfRanks { result, launched: Launched::asked_for(context), counted: *context.get() }
}

fn join<T: Joinable>(of_ranks: Vec<OfRanks>) -> SharedResults {
    let shared = SharedResults::default();
    shared.give(of_ranks.iter().map(|of| of.launched).sum::<Launched>().coverage());
    shared.give(of_ranks.iter().map(|of| of.counted).sum::<Counted>());
    let results = of_ranks.into_iter().map(|of| *of.result.downcast::<T>().expect("all are results of one type"));
    shared.give(T::joined(results.collect()));
    shared
}
