//! Events as the timeline shows them: of a whole run, of what was condensed of it, or of one rank.

use crate::failure::Failure;
use crate::source_files::SourceFiles;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use stepscope_engine::{DEVICE_WORK, Joined, OpenedRun, Trace};
use stepscope_timeline::{OtherWork, SearchIndex, Timeline};
use tokio::sync::SetOnce;

/// Events, and what requests of the timeline look up.
pub(crate) struct Shown {
    pub(crate) trace: Arc<Trace>,
    /// What devices do, where the trace has only what was condensed of a run.
    work: Option<OtherWork>,
    source_files: OnceLock<SourceFiles>,
    /// What ranks do together.
    joined: OnceLock<Joined>,
    timeline: SetOnce<Option<Timeline>>,
    search: SetOnce<Option<SearchIndex>>,
}

impl Shown {
    pub(crate) fn new(trace: Arc<Trace>) -> Self {
        let (source_files, joined) = (OnceLock::new(), OnceLock::new());
        Self { trace, work: None, source_files, joined, timeline: SetOnce::new(), search: SetOnce::new() }
    }

    /// What was condensed of `run`.
    pub(crate) fn condensed(run: &OpenedRun) -> Self {
        let trace = Arc::clone(run.trace());
        let of_ranks = || run.device_work().map(|work| (work.rank, work.spans.clone())).collect();
        let work = trace.strings.find(DEVICE_WORK).map(|name| OtherWork { name, of_ranks: of_ranks() });
        Self { work, ..Self::new(trace) }
    }

    /// Builds what requests of the timeline need. Requests only wait for it.
    pub(crate) fn prepare(&self) {
        // A defect must leave no request waiting.
        let timeline = catch_unwind(AssertUnwindSafe(|| Timeline::with_work(&self.trace, self.work.as_ref()))).ok();
        let _ = self.timeline.set(timeline);
        let search = catch_unwind(AssertUnwindSafe(|| SearchIndex::of(&self.trace))).ok();
        let _ = self.search.set(search);
    }

    /// Which files its stacks name.
    pub(crate) fn source_files(&self) -> &SourceFiles {
        self.source_files.get_or_init(|| SourceFiles::of(&self.trace))
    }

    /// What ranks do together: computed when it is first asked for, which may take a while.
    pub(crate) fn joined(&self) -> &Joined {
        self.joined.get_or_init(|| Joined::of(&self.trace))
    }

    /// The rows of the timeline, once they are built.
    ///
    /// # Errors
    /// When building them met a defect.
    pub(crate) async fn timeline(&self) -> Result<&Timeline, Failure> {
        self.timeline.wait().await.as_ref().ok_or_else(|| Failure::internal("internal error in the timeline"))
    }

    /// The rows of the timeline, if they are built already.
    pub(crate) fn timeline_if_ready(&self) -> Option<&Timeline> {
        self.timeline.get()?.as_ref()
    }

    /// The index of names, if it is built already.
    pub(crate) fn search_if_ready(&self) -> Option<&SearchIndex> {
        self.search.get()?.as_ref()
    }

    /// The index of names, once it is built.
    ///
    /// # Errors
    /// As [`Shown::timeline`].
    pub(crate) async fn search(&self) -> Result<&SearchIndex, Failure> {
        self.search.wait().await.as_ref().ok_or_else(|| Failure::internal("internal error in the search"))
    }
}
