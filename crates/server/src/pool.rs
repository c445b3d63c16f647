//! Where work is done that takes time: on a limited number of threads, what is quick apart from what is long.
//! Work of a request whose client went away before it was its turn is not begun.

use crate::failure::Failure;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

/// The threads for requests' work.
#[derive(Clone)]
pub(crate) struct Pool {
    quick: Arc<Semaphore>,
    long: Arc<Semaphore>,
    sent: Arc<Semaphore>,
    text: Arc<Semaphore>,
    queries: Arc<Semaphore>,
    long_started: Arc<AtomicU64>,
}

/// Files that are written at once while they are sent.
const SENT: usize = 4;
/// Queries that run at once: each is a program of its own, which uses all processors.
const QUERIES: usize = 2;

impl Pool {
    /// As many threads as there are processors for what is quick, half of that for what is long.
    pub(crate) fn new() -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        let of = |threads: usize| Arc::new(Semaphore::new(threads.max(1)));
        Self {
            quick: of(processors),
            long: of(processors / 2),
            sent: of(SENT),
            text: of(processors / 2),
            queries: of(QUERIES),
            long_started: Arc::default(),
        }
    }

    /// Does what takes milliseconds: tiles, look-ups. It never waits for [`Pool::long`].
    ///
    /// # Errors
    /// When `work` panics.
    pub(crate) async fn quick<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        run(&self.quick, work).await
    }

    /// Does what may take seconds: analyses, reports.
    ///
    /// # Errors
    /// When `work` panics.
    pub(crate) async fn long<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let started = self.long_started.clone();
        run(&self.long, move || {
            started.fetch_add(1, Ordering::Relaxed);
            work()
        })
        .await
    }

    /// How much long work was begun so far.
    pub(crate) fn long_started(&self) -> u64 {
        self.long_started.load(Ordering::Relaxed)
    }

    /// Looks something up in a file that a run was read from.
    ///
    /// # Errors
    /// When `work` panics.
    pub(crate) async fn text<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        run(&self.text, work).await
    }

    /// Writes what a client receives meanwhile: a slow one holds nobody up but others who want a file.
    ///
    /// # Errors
    /// When `work` panics.
    pub(crate) async fn sent<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        run(&self.sent, work).await
    }

    /// Waits until a query may run, which it may while the turn is held.
    pub(crate) async fn query_turn(&self) -> OwnedSemaphorePermit {
        turn(&self.queries).await
    }

    /// As [`Pool::sent`], for what another program writes: it may while the turn is held.
    pub(crate) async fn sent_turn(&self) -> OwnedSemaphorePermit {
        turn(&self.sent).await
    }
}

async fn turn(turns: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    turns.clone().acquire_owned().await.expect("it is never closed")
}

async fn run<T: Send + 'static>(
    turns: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let turn = turn(turns).await;
    let working = spawn_blocking(move || {
        let _turn = turn;
        work()
    });
    working.await.map_err(|error| {
        let failure = Failure::internal("internal error: this request failed, the server continues");
        // Shutting down drops work, too; nobody reads the answer then.
        failure.hint(format!("please report it with the address and what the command wrote: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;
    use tokio::runtime::Builder;

    #[test]
    fn what_is_quick_does_not_wait_for_what_is_long() {
        Builder::new_multi_thread().worker_threads(1).build().unwrap().block_on(async {
            let pool = Pool::new();
            let (release, released) = channel::<()>();
            let released = Arc::new(std::sync::Mutex::new(released));
            // More long work than there are turns.
            let long: Vec<_> = (0..20)
                .map(|_| {
                    let (pool, released) = (pool.clone(), released.clone());
                    tokio::spawn(async move { pool.long(move || released.lock().unwrap().recv().is_ok()).await })
                })
                .collect();
            assert_eq!(pool.quick(|| 7).await, Ok(7));
            (0..20).for_each(|_| release.send(()).unwrap());
            for work in long {
                assert_eq!(work.await.unwrap(), Ok(true));
            }
        });
    }

    #[test]
    fn work_whose_client_is_gone_is_not_begun() {
        Builder::new_multi_thread().worker_threads(1).build().unwrap().block_on(async {
            let pool = Pool { long: Arc::new(Semaphore::new(1)), ..Pool::new() };
            let (release, released) = channel::<()>();
            let first = tokio::spawn({
                let pool = pool.clone();
                async move { pool.long(move || released.recv().is_ok()).await }
            });
            while pool.long.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
            let was_begun = Arc::new(AtomicBool::new(false));
            let second = tokio::spawn({
                let (pool, was_begun) = (pool.clone(), was_begun.clone());
                async move { pool.long(move || was_begun.store(true, Ordering::SeqCst)).await }
            });
            tokio::task::yield_now().await;
            second.abort();
            assert!(second.await.unwrap_err().is_cancelled());
            release.send(()).unwrap();
            assert_eq!(first.await.unwrap(), Ok(true));
            assert_eq!(pool.long(|| 1).await, Ok(1));
            assert!(!was_begun.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn a_panic_is_an_answer_and_not_the_end() {
        Builder::new_multi_thread().worker_threads(1).build().unwrap().block_on(async {
            let pool = Pool::new();
            assert!(pool.quick(|| panic!("on purpose")).await.is_err());
            assert_eq!(pool.quick(|| 1).await, Ok(1));
        });
    }
}
