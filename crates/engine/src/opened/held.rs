//! What stays in memory for the next question: events that were read, and what analyses have shared.

use crate::{EngineError, Selection, SharedResults, Trace};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Parts of a trace of which what analyses share is kept.
const MAX_SELECTIONS: usize = 4;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What analyses have shared so far, by what was asked for last.
#[derive(Default)]
pub(super) struct BySelection(Mutex<Vec<(Selection, SharedResults)>>);

impl BySelection {
    /// That of a selection, begun by `make`.
    pub(super) fn get(
        &self,
        selection: &Selection,
        make: impl FnOnce() -> Result<SharedResults, EngineError>,
    ) -> Result<SharedResults, EngineError> {
        let known = |all: &mut Vec<(Selection, SharedResults)>| {
            let at = all.iter().position(|(asked, _)| asked == selection)?;
            let known = all.remove(at);
            all.push(known.clone());
            Some(known.1)
        };
        if let Some(results) = known(&mut locked(&self.0)) {
            return Ok(results);
        }
        // Making it may take long, and others do not wait for it.
        let results = make()?;
        let mut all = locked(&self.0);
        if let Some(results) = known(&mut all) {
            return Ok(results);
        }
        all.push((selection.clone(), results.clone()));
        if all.len() > MAX_SELECTIONS {
            all.remove(0);
        }
        Ok(results)
    }
}

/// All events of some files.
pub(super) struct HeldTrace {
    pub(super) trace: Arc<Trace>,
    /// What analyses of it have shared so far.
    pub(super) shared: BySelection,
}

/// Events that were read: those asked for last, as many as fit.
pub(super) struct Held {
    max_bytes: u64,
    slots: Mutex<Vec<Arc<Slot>>>,
}

/// The events of these files, once they are read.
struct Slot {
    files: Vec<usize>,
    bytes: u64,
    read: OnceLock<Result<Arc<HeldTrace>, EngineError>>,
}

impl Held {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self { max_bytes, slots: Mutex::default() }
    }

    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        bytes <= self.max_bytes
    }

    /// The events of `files`, which take about `bytes`; `read` reads them.
    ///
    /// # Errors
    /// Those of `read`; [`EngineError::TooLarge`].
    pub(super) fn get(
        &self,
        files: Vec<usize>,
        bytes: u64,
        read: impl FnOnce() -> Result<Trace, EngineError>,
    ) -> Result<Arc<HeldTrace>, EngineError> {
        if !self.has_room_for(bytes) {
            return Err(EngineError::TooLarge { files: files.len(), bytes, max_bytes: self.max_bytes });
        }
        let slot = self.slot(files, bytes);
        let held = || read().map(|trace| HeldTrace { trace: Arc::new(trace), shared: BySelection::default() });
        let read = slot.read.get_or_init(|| held().map(Arc::new)).clone();
        if read.is_err() {
            // It may be there the next time.
            locked(&self.slots).retain(|known| !Arc::ptr_eq(known, &slot));
        }
        read
    }

    fn slot(&self, files: Vec<usize>, bytes: u64) -> Arc<Slot> {
        let mut slots = locked(&self.slots);
        if let Some(at) = slots.iter().position(|slot| slot.files == files) {
            let known = slots.remove(at);
            slots.push(Arc::clone(&known));
            return known;
        }
        while slots.iter().map(|slot| slot.bytes).sum::<u64>() + bytes > self.max_bytes {
            slots.remove(0);
        }
        let slot = Arc::new(Slot { files, bytes, read: OnceLock::new() });
        slots.push(Arc::clone(&slot));
        slot
    }
}

/// What a program may use of the machine's memory without being told: three quarters of what is free now. Unlimited
/// where the system does not say.
pub(super) fn free_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib.saturating_mul(1024) / 4 * 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_last_stays_as_far_as_it_fits() {
        let held = Held::new(100);
        let mut reads = Vec::new();
        for (file, bytes) in [(0, 40), (1, 40), (0, 40), (2, 50), (0, 40), (1, 40)] {
            held.get(vec![file], bytes, || {
                reads.push(file);
                Ok(Trace::default())
            })
            .unwrap();
        }
        assert_eq!(reads, [0, 1, 2, 1], "1 made room for 2, and 2 for 1");
    }

    #[test]
    fn what_does_not_fit_and_what_cannot_be_read_are_errors() {
        let held = Held::new(100);
        let too_large = held.get(vec![0, 1], 101, || Ok(Trace::default())).err();
        assert_eq!(too_large, Some(EngineError::TooLarge { files: 2, bytes: 101, max_bytes: 100 }));
        assert_eq!(held.get(vec![0], 1, || Err(EngineError::NoInput)).err(), Some(EngineError::NoInput));
        assert!(held.get(vec![0], 1, || Ok(Trace::default())).is_ok(), "it is there now");
    }
}
