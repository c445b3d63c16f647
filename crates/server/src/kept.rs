//! Results that were computed, kept while they fit: those asked for last stay. Who asks for one that is being computed
//! waits for it.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Entries that are kept at most, however small.
const MAX_ENTRIES: usize = 256;

/// Values by key.
pub(crate) struct Kept<K, V> {
    /// Those asked for last stand at the end.
    entries: Mutex<Vec<Entry<K, V>>>,
    max_bytes: usize,
}

struct Entry<K, V> {
    key: K,
    value: Arc<OnceCell<Arc<V>>>,
    /// 0 while it is being computed.
    bytes: usize,
}

impl<K: PartialEq + Clone, V> Kept<K, V> {
    /// Keeps values of so many bytes together.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { entries: Mutex::new(Vec::new()), max_bytes }
    }

    /// The value of `key`: as it was kept, or as `compute` gives it. Of several who ask at once one computes; when it goes
    /// away, the next goes on. `bytes` says how large a value is; one that is larger than all that is kept, is not.
    ///
    /// # Errors
    /// What `compute` says; it is asked again the next time.
    pub(crate) async fn get<E>(
        &self,
        key: K,
        bytes: impl FnOnce(&V) -> usize,
        compute: impl Future<Output = Result<V, E>>,
    ) -> Result<Arc<V>, E> {
        let cell = self.cell(&key);
        let mut is_new = false;
        let found = cell
            .get_or_try_init(|| async {
                is_new = true;
                compute.await.map(Arc::new)
            })
            .await;
        match &found {
            Ok(value) if is_new => self.weigh(&cell, bytes(value)),
            Ok(_) => {}
            Err(_) => self.forget(&cell),
        }
        found.cloned()
    }

    fn cell(&self, key: &K) -> Arc<OnceCell<Arc<V>>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = match entries.iter().position(|entry| entry.key == *key) {
            Some(at) => entries.remove(at),
            None => Entry { key: key.clone(), value: Arc::default(), bytes: 0 },
        };
        let cell = entry.value.clone();
        entries.push(entry);
        if entries.len() > MAX_ENTRIES {
            entries.remove(0);
        }
        cell
    }

    /// Notes how large a value is, and lets go of the oldest until all fit.
    fn weigh(&self, cell: &Arc<OnceCell<Arc<V>>>, bytes: usize) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.value, cell)) {
            entry.bytes = bytes;
        }
        let mut total: usize = entries.iter().map(|entry| entry.bytes).sum();
        while total > self.max_bytes {
            let Some(oldest) = entries.iter().position(|entry| entry.bytes > 0) else { break };
            total -= entries.remove(oldest).bytes;
        }
    }

    fn forget(&self, cell: &Arc<OnceCell<Arc<V>>>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| !Arc::ptr_eq(&entry.value, cell) || entry.value.initialized());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;

    #[test]
    fn what_was_computed_is_not_computed_again_while_it_fits() {
        Builder::new_current_thread().build().unwrap().block_on(async {
            let kept = Kept::<u32, u32>::new(100);
            let mut computed = Vec::new();
            for key in [1, 2, 1, 3, 1, 2] {
                let value = kept
                    .get(key, |_| 40, async {
                        computed.push(key);
                        Ok::<_, ()>(key * 10)
                    })
                    .await;
                assert_eq!(value, Ok(Arc::new(key * 10)));
            }
            // 3 pushes 2 out, which was asked for before 1.
            assert_eq!(computed, [1, 2, 3, 2]);
        });
    }

    #[test]
    fn what_is_too_large_is_given_and_not_kept() {
        Builder::new_current_thread().build().unwrap().block_on(async {
            let kept = Kept::<u32, u32>::new(100);
            assert_eq!(kept.get(1, |_| 101, async { Ok::<_, ()>(5) }).await, Ok(Arc::new(5)));
            assert!(kept.entries.lock().unwrap().is_empty());
        });
    }

    #[test]
    fn a_failure_is_not_kept() {
        Builder::new_current_thread().build().unwrap().block_on(async {
            let kept = Kept::<u32, u32>::new(100);
            assert_eq!(kept.get(1, |_| 1, async { Err("no") }).await, Err("no"));
            assert_eq!(kept.get(1, |_| 1, async { Ok::<_, &str>(5) }).await, Ok(Arc::new(5)));
        });
    }

    #[test]
    fn who_asks_meanwhile_waits_for_the_same_answer() {
        Builder::new_current_thread().build().unwrap().block_on(async {
            let kept = Arc::new(Kept::<u32, u32>::new(100));
            let asked: Vec<_> = (0..5_u32)
                .map(|number| {
                    let kept = kept.clone();
                    tokio::spawn(async move {
                        kept.get(1, |_| 1, async {
                            tokio::task::yield_now().await;
                            Ok::<_, ()>(number)
                        })
                        .await
                    })
                })
                .collect();
            // The first goes away while it computes.
            tokio::task::yield_now().await;
            asked[0].abort();
            for asked in asked.into_iter().skip(1) {
                assert_eq!(asked.await.unwrap(), Ok(Arc::new(1)));
            }
        });
    }
}
