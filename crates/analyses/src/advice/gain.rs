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
    /// The words before the gain in a sentence: a forecast is `about` so much.
    pub fn words(self) -> &'static str {
        match self {
            Self::Removal | Self::Replay => "about",
            Self::Floor => "at least",
            _ => "up to",
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
