//! Captures with activity records of devices, as traces.

mod made_capture;
mod missing;
mod ranks;
mod replayed;
mod sessions;
