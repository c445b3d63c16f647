//! Queries of which a client has read the first rows: their programs wait with the next ones until somebody asks for these.

use crate::sql_process::SqlProcess;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Programs that wait at once; the one that has waited longest ends for another. Each may hold as much memory as a query.
const MOST: usize = 4;
/// How long a program waits.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// The programs that wait, the latest last.
#[derive(Default)]
pub(crate) struct WaitingQueries(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// How many there were so far.
    count: u64,
    programs: VecDeque<(u64, SqlProcess)>,
}

impl WaitingQueries {
    /// Lets a program wait for a while; the number by which to ask for its next rows.
    pub(crate) fn add(self: &Arc<Self>, program: SqlProcess) -> u64 {
        let number = {
            let mut waiting = self.lock();
            waiting.count += 1;
            let number = waiting.count;
            waiting.programs.push_back((number, program));
            if waiting.programs.len() > MOST {
                waiting.programs.pop_front();
            }
            number
        };
        let queries = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            queries.take(number);
        });
        number
    }

    /// The program with this number; `None` once it waits no more.
    pub(crate) fn take(&self, number: u64) -> Option<SqlProcess> {
        let mut waiting = self.lock();
        let at = waiting.programs.iter().position(|(known, _)| *known == number)?;
        waiting.programs.remove(at).map(|(_, program)| program)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
