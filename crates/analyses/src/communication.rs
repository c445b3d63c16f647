//! Who communicates with whom, put together once for all analyses.

use crate::AnalysisContext;
use crate::context::Shared;
use stepscope_align::{Calls, Matched, Part, parts};

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

impl Shared for Matched {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        Self::of(&context.get::<Parts>().0)
    }
}

/// The collectives that at least two ranks of the run took part in: the parts of each, by rank.
pub(crate) fn matched<'a>(context: &'a AnalysisContext<'_>) -> impl Iterator<Item = Vec<Part>> + 'a {
    context.get::<Matched>().each(&context.get::<Parts>().0)
}
