//! How clocks of processes were corrected, so that times of different processes can be compared.

use crate::ProcessId;
use serde::{Deserialize, Serialize};

/// A clock that runs too slow or too fast, in parts of 10^12: 1,000,000 is a microsecond a second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Drift(pub i64);

impl Drift {
    /// What it comes to in `ns`.
    pub fn over(self, ns: i64) -> i64 {
        const WHOLE: i64 = 1_000_000_000_000;
        if let Some(product) = self.0.checked_mul(ns) {
            return product.div_euclid(WHOLE);
        }
        let product = i128::from(self.0) * i128::from(ns);
        product.div_euclid(WHOLE.into()).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// The correction of one process's clock: to each time t of the source, `offset_ns` and the drift over t is added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClockCorrection {
    /// The process.
    pub process: ProcessId,
    /// What is added at time 0 of the trace as it was read.
    pub offset_ns: i64,
    /// What is added on top for each nanosecond since.
    pub drift: Drift,
    /// Number of collectives that say so.
    pub collectives: u64,
}

impl ClockCorrection {
    /// The clock of a process as it is.
    pub fn none(process: ProcessId) -> Self {
        Self { process, offset_ns: 0, drift: Drift(0), collectives: 0 }
    }

    /// Both corrections, this one first.
    pub(crate) fn then(&self, next: &Self) -> Self {
        Self {
            process: self.process,
            offset_ns: next.corrected(self.offset_ns),
            drift: Drift(self.drift.0.saturating_add(next.drift.0)),
            collectives: self.collectives.max(next.collectives),
        }
    }

    /// The corrected time.
    pub fn corrected(&self, time_ns: i64) -> i64 {
        time_ns.saturating_add(self.offset_ns).saturating_add(self.drift.over(time_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_drift_comes_to_its_part_of_the_time(drift in any::<i32>(), ns in any::<i64>(), bits in 0_u32..64) {
            let ns = ns >> bits;
            let exact = (i128::from(drift) * i128::from(ns)).div_euclid(1_000_000_000_000);
            prop_assert_eq!(i128::from(Drift(drift.into()).over(ns)), exact);
        }
    }
}
