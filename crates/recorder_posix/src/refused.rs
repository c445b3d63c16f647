//! Calls that are not recorded for lack of room: they are counted.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use stepscope_recorder::set_own_metadata;

/// Metadata: the counts, in the order of [`Lack`].
const KEY: &str = "io_refused";

/// What there is no more room for.
#[derive(Clone, Copy)]
pub(crate) enum Lack {
    /// Paths: calls that name another one, or whose descriptor is looked up.
    Paths,
    /// Files that are open at once: those that were opened beyond.
    OpenFiles,
    /// Calls of signal handlers that wait until another call is written.
    Waiting,
}

static COUNTS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
/// The sum of what was said last.
static SAID: AtomicU64 = AtomicU64::new(0);

/// There is no room for a call.
#[cold]
pub(crate) fn count(lack: Lack) {
    COUNTS[lack as usize].fetch_add(1, Ordering::Relaxed);
}

/// Says what was counted since.
pub(crate) fn say() {
    let counts = COUNTS.each_ref().map(|count| count.load(Ordering::Relaxed));
    let sum = counts.iter().sum();
    if SAID.swap(sum, Ordering::Relaxed) != sum {
        let mut text = String::new();
        for count in counts {
            let _ = write!(text, "{}{count}", if text.is_empty() { "" } else { " " });
        }
        set_own_metadata(KEY, &text);
    }
}

/// Recording begins, or goes on in a forked child: nothing has been refused yet.
pub(crate) fn begin() {
    COUNTS.iter().chain([&SAID]).for_each(|count| count.store(0, Ordering::Relaxed));
}
