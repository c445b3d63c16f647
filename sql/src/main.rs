//! `stepscope-sql`: SQL over the tables of runs, which `stepscope sql` makes and hands over.
//!
//! ```text
//! arguments ─▶ session (tables, functions, memory) ─▶ query (statements, analyses) ─▶ output
//!                                                          ▲        │
//!                                                 prompt ──┘        └▶ cluster (workers)
//! ```

mod analyses;
mod arguments;
mod cluster;
mod error;
mod examples;
mod functions;
mod output;
mod prompt;
mod query;
mod run_tables;
mod schema;
mod session;
mod spans;
mod stored;
mod tables;

use arguments::{Arguments, Role};
use clap::Parser;
use error::QueryError;
use session::Session;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

/// How long a worker that is told to end may take.
const WORKER_ENDS_IN: Duration = Duration::from_secs(2);
/// Ended by Ctrl-C, as shells count it.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(QueryError { is_reader_gone: true, .. }) => ExitCode::SUCCESS,
        Err(error) if error.is_interrupted => ExitCode::from(INTERRUPTED),
        Err(error) => {
            error.report(arguments.output.is_json());
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), QueryError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(arguments.threads())
        .build()
        .map_err(|error| QueryError::new(format!("cannot start threads: {error}")))?;
    let done = runtime.block_on(async {
        if let Some(Role::Worker(worker)) = &arguments.role {
            return cluster::serve(worker).await;
        }
        let session = Session::open(arguments).await?;
        if arguments.schema {
            return schema::print(&session, arguments.output.json).await;
        }
        match arguments.text()? {
            Some(text) => tokio::select! {
                done = query::run_until_interrupted(&session, &text, &arguments.output) => done,
                () = output::reader_gone() => Err(QueryError::writing(&ErrorKind::BrokenPipe.into())),
            },
            None => prompt::prompt(&session, &arguments.output).await,
        }
    });
    match arguments.role {
        // What a worker has started ends with it.
        Some(Role::Worker(_)) => runtime.shutdown_timeout(WORKER_ENDS_IN),
        // A query that was ended may still have threads at work; nobody waits for them.
        None => runtime.shutdown_background(),
    }
    done
}
