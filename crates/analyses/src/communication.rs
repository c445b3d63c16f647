//! Who communicates with whom, put together once for all analyses.

use crate::AnalysisContext;
use crate::context::Shared;
use stepscope_align::{Calls, Part, matched, parts};

impl Shared for Calls {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self::of(context.trace)
    }
}

/// Every communication of every rank.
pub(crate) struct Parts(pub(crate) Vec<Part>);

impl Shared for Parts {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self(parts(context.trace, context.get::<Calls>()))
    }
}

/// The collectives that at least two ranks of the run took part in.
pub(crate) struct Matched(pub(crate) Vec<Vec<Part>>);

impl Shared for Matched {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self(matched(&context.get::<Parts>().0))
    }
}
