//! How many processors this process may use.

use std::sync::OnceLock;

/// Their number.
pub(crate) fn count() -> usize {
    // Asking reads files of the system.
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().map_or(1, |count| count.get()))
}
