//! What a process recorded, as `torch.profiler` lists it: its [events](Events) in a tree, and their
//! [averages](averages). Names that it hides are hidden, steps lose their numbers, and what does nothing but call itself
//! is one event.

mod averages;
mod backward;
mod calls;
mod device;
mod event_source;
mod events;
mod flops;
mod flows;
mod inputs;
mod memory;
mod named;
mod numbers;
mod stacks;
mod sums;
mod tree;
mod wanted;

pub use averages::{Average, Grouping, averages};
pub use device::{DeviceColumns, activity};
pub use events::{Events, NO_ROW};
pub use inputs::InputTexts;
pub use named::{NamedAverage, join, read_averages};
pub use stacks::Stacks;
pub use wanted::Wanted;

use std::path::Path;
use stepscope_import::read_capture;
use stepscope_run::{RecordFilter, RunError};

/// The events of what a process records, or has recorded, into the capture at `raw` and `filter` selects. Times
/// count from the begin of the first span.
///
/// # Errors
/// When neither the capture nor the part that it has become can be read.
pub fn read(raw: &Path, filter: &RecordFilter, wanted: Wanted) -> Result<Events, RunError> {
    let mut capture = read_capture(raw, filter)?;
    let zero_ns = filter.resolved_spans(&capture).first().map_or(capture.opened_ns, |span| span.start);
    filter.apply(&mut capture);
    Ok(Events::of(&capture, zero_ns, wanted))
}
