//! io_uring as far as liburing is called: what stands in a ring, and which of it is known to the recorder.

pub(crate) mod known;
pub(crate) mod ring;
