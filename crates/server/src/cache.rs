//! A cache of results, least recently used out first. A request for a result that is being computed waits for it
//! (single flight).

use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// The most entries, however small.
const MAX_ENTRIES: usize = 256;

/// A cache: values by key.
pub(crate) struct Cache<K, V> {
    /// The most recently used ones are at the end.
    entries: Mutex<Vec<Entry<K, V>>>,
    max_bytes: usize,
}

struct Entry<K, V> {
    key: K,
    value: Arc<OnceCell<Arc<V>>>,
    /// 0 while it is being computed.
    bytes: usize,
}

impl<K: PartialEq + Clone, V> Cache<K, V> {
    /// A cache for values of `max_bytes` together.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { entries: Mutex::new(Vec::new()), max_bytes }
    }

    /// The value of `key`: as it was kept, or as `compute` gives it. Of several who ask at once one computes; when it
    /// goes away, the next goes on. `bytes` says how large a value is; one that is larger than all that is kept, is
    /// not.
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
            Ok(value) if is_new => self.record_size(&cell, bytes(value)),
            Ok(_) => {}
            Err(_) => self.remove(&cell),
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

    /// Notes how large a value is, and evicts the least recently used ones until all fit.
    fn record_size(&self, cell: &Arc<OnceCell<Arc<V>>>, bytes: usize) {
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

    fn remove(&self, cell: &Arc<OnceCell<Arc<V>>>) {
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
            let cache = Cache::<u32, u32>::new(100);
            let mut computed = Vec::new();
            for key in [1, 2, 1, 3, 1, 2] {
                let value = cache
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
            let cache = Cache::<u32, u32>::new(100);
            assert_eq!(cache.get(1, |_| 101, async { Ok::<_, ()>(5) }).await, Ok(Arc::new(5)));
            assert!(cache.entries.lock().unwrap().is_empty());
        });
    }

    #[test]
    fn a_failure_is_not_kept() {
        Builder::new_current_thread().build().unwrap().block_on(async {
            let cache = Cache::<u32, u32>::new(100);
            assert_eq!(cache.get(1, |_| 1, async { Err("no") }).await, Err("no"));
            assert_eq!(cache.get(1, |_| 1, async { Ok::<_, &str>(5) }).await, Ok(Arc::new(5)));
        });
    }

    #[test]
    fn who_asks_meanwhile_waits_for_the_same_answer() {
        Builder::new_current_thread().build().unwrap().block_on(async {
            let cache = Arc::new(Cache::<u32, u32>::new(100));
            let requests: Vec<_> = (0..5_u32)
                .map(|number| {
                    let cache = cache.clone();
                    tokio::spawn(async move {
                        cache
                            .get(1, |_| 1, async {
                                tokio::task::yield_now().await;
                                Ok::<_, ()>(number)
                            })
                            .await
                    })
                })
                .collect();
            // The first goes away while it computes.
            tokio::task::yield_now().await;
            requests[0].abort();
            for request in requests.into_iter().skip(1) {
                assert_eq!(request.await.unwrap(), Ok(Arc::new(1)));
            }
        });
    }
}
