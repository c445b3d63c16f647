//! The tables of a run that queries are about: Parquet files, made once and kept.

use crate::app_state::AppState;
use crate::failure::Failure;
use crate::run::Run;
use std::ffi::OsString;
use std::path::PathBuf;
use stepscope_engine::{OpenedRun, Progress};
use stepscope_export::{KeptTables, kept_tables};

/// The tables of a run.
pub(crate) struct RunTables {
    kept: KeptTables,
    /// What the run is called.
    name: String,
    /// What they were made of.
    input: PathBuf,
}

impl RunTables {
    /// The tables of what `run` is now. Making them takes as long as reading the run.
    ///
    /// # Errors
    /// When the run cannot be read, or the tables can be kept nowhere.
    pub(crate) async fn of(state: &AppState, run: &Run) -> Result<Self, Failure> {
        let turn = run.making_tables.clone().lock_owned().await;
        let (input, options) = (run.path.clone(), state.runs.open_options().clone());
        let make = move || {
            // Held until they are made, also when nobody waits for them any more.
            let _turn = turn;
            // What the server has read may be older than the files, and tables are kept as those of the files.
            let open = || OpenedRun::open(&[&input], &options, &Progress::default());
            kept_tables(std::slice::from_ref(&input), &options, open)
        };
        let kept = state.pool.long(make).await??;
        Ok(Self { kept, name: run.name().to_string(), input: run.path.clone() })
    }

    /// What the program that runs SQL is told of them.
    pub(crate) fn told(&self) -> Vec<OsString> {
        self.kept.told(&self.name, std::slice::from_ref(&self.input))
    }
}
