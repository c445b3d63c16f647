//! Captures as processes write them, as traces.

mod clocks;
mod files;
mod made_capture;
mod missing;
mod one_rank;
mod ranks;
mod replayed;
mod sessions;
