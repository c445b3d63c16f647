//! What there is to gain by a piece of advice, and how much it matters.

use serde::{Deserialize, Serialize};

/// How much a piece of advice matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Priority {
    /// The job suffers from it.
    High,
    /// Worth a change.
    Medium,
    /// Worth knowing.
    #[default]
    Low,
}

impl Priority {
    /// The priority's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }

    /// By the share of the window that there is to gain.
    pub(super) fn of_gain(gain_ratio: f64) -> Self {
        match gain_ratio {
            ratio if ratio >= 0.10 => Self::High,
            ratio if ratio >= 0.03 => Self::Medium,
            _ => Self::Low,
        }
    }
}

/// How an expected gain is estimated. The comment of `advice.rs` defines each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GainEstimate {
    /// All that was measured goes away, and nothing comes in its place: a forecast.
    Removal,
    /// No less than what was measured: the change also saves what is not recorded, or follows from it.
    Floor,
    /// No more than what was measured: how much the change leaves of it is not known.
    Bound,
    /// Communication hides under computing.
    Overlap,
    /// Operators reach their roofline.
    Roofline,
    /// Kernels get faster as peak rates differ.
    PeakRates,
    /// Kernels fill the device.
    FullDevice,
    /// Steps are replayed with the change: a forecast.
    Replay,
}

impl GainEstimate {
    /// Whether it says what will be, and no limit of it.
    pub fn is_forecast(self) -> bool {
        matches!(self, Self::Removal | Self::Replay)
    }

    /// The words before the gain in a sentence: a forecast is `about` so much.
    pub fn words(self) -> &'static str {
        match self {
            Self::Removal | Self::Replay => "about",
            Self::Floor => "at least",
            _ => "up to",
        }
    }

    /// What the estimate rests on: a forecast, a lower bound or an upper one, and of what.
    pub fn method(self) -> &'static str {
        match self {
            Self::Removal => "forecast: what was measured goes away, and nothing comes in its place",
            Self::Replay => "forecast: the steps are replayed with the change",
            Self::Floor => "lower bound: what was measured goes away, with more that is not recorded",
            Self::Bound => "upper bound: all that was measured",
            Self::Overlap => "upper bound: communication hides under as much computing as there is",
            Self::Roofline => "upper bound: operators reach what the device can do",
            Self::PeakRates => "upper bound: kernels get faster as peak rates differ",
            Self::FullDevice => "upper bound: kernels fill the device",
        }
    }

    /// The least and the most that is gained where `gain_ns` is the estimate, of which no other advice is about `own_ns`. A
    /// forecast and a lower bound may be wrong by `error_ns`, and a forecast is less where other advice is followed first; a
    /// lower bound has no most, and an upper bound no least but 0.
    pub fn range(self, gain_ns: i64, own_ns: Option<i64>, error_ns: i64) -> (i64, Option<i64>) {
        let own_ns = own_ns.map_or(gain_ns, |own_ns| own_ns.min(gain_ns));
        match self {
            Self::Removal | Self::Replay => ((own_ns - error_ns).max(0), Some(gain_ns + error_ns)),
            // Of a part, the error is less.
            Self::Floor => {
                let error_ns = i128::from(error_ns) * i128::from(own_ns) / i128::from(gain_ns.max(1));
                ((own_ns - error_ns as i64).max(0), None)
            }
            Self::Bound | Self::Overlap | Self::Roofline | Self::PeakRates | Self::FullDevice => (0, Some(gain_ns)),
        }
    }

    /// The estimate's name in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Removal => "removal",
            Self::Floor => "floor",
            Self::Bound => "bound",
            Self::Overlap => "overlap",
            Self::Roofline => "roofline",
            Self::PeakRates => "peak_rates",
            Self::FullDevice => "full_device",
            Self::Replay => "replay",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::GainEstimate::{self, *};

    const ALL: [GainEstimate; 8] = [Removal, Floor, Bound, Overlap, Roofline, PeakRates, FullDevice, Replay];

    #[test]
    fn a_forecast_is_a_range_and_a_bound_is_open_at_its_other_end() {
        for (estimate, own_ns, error_ns, range) in [
            (Removal, None, 0, (9, Some(9))),
            (Removal, Some(4), 0, (4, Some(9))),
            (Removal, None, 2, (7, Some(11))),
            (Removal, Some(4), 5, (0, Some(14))),
            (Replay, Some(12), 0, (9, Some(9))),
            (Floor, None, 2, (7, None)),
            (Floor, Some(4), 0, (4, None)),
            (Floor, Some(6), 3, (4, None)),
            (Bound, None, 2, (0, Some(9))),
            (Overlap, Some(4), 0, (0, Some(9))),
        ] {
            assert_eq!(estimate.range(9, own_ns, error_ns), range, "{estimate:?}, {own_ns:?}");
        }
        let second = 1_000_000_000;
        assert_eq!(Floor.range(100 * second, None, 5 * second), (95 * second, None));
    }

    #[test]
    fn the_method_the_words_and_the_range_say_the_same() {
        for estimate in ALL {
            let kind = match estimate.range(9, None, 0) {
                (9, Some(9)) => ("about", "forecast"),
                (9, None) => ("at least", "lower bound"),
                (0, Some(9)) => ("up to", "upper bound"),
                range => panic!("{estimate:?}: {range:?}"),
            };
            let (method, _) = estimate.method().split_once(": ").expect("a kind, and of what");
            assert_eq!((estimate.words(), method), kind, "{estimate:?}");
        }
    }
}
