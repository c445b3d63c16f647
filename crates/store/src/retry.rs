//! For how long requests are repeated.

use object_store::{BackoffConfig, RetryConfig};
use std::time::Duration;

/// Says for how many seconds.
const VARIABLE: &str = "STEPSCOPE_STORE_RETRY_S";
/// Where nothing else is said.
const SECONDS: u64 = 60;

/// Requests that fail by the network or the server are repeated after 0.1 to 5 s.
pub(crate) fn config() -> RetryConfig {
    let seconds = std::env::var(VARIABLE).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(SECONDS);
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(5), base: 2. };
    // The time is the limit.
    RetryConfig {
        backoff,
        max_retries: if seconds == 0 { 0 } else { 1_000 },
        retry_timeout: Duration::from_secs(seconds),
    }
}
