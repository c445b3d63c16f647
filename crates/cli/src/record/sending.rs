//! A run that goes to an object store: it is recorded on this disk, and what is closed is sent while the job runs.

use crate::color::{DIM, HINT, WARNING};
use crate::failure::Failure;
use crate::upload::{Upload, failure};
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, Scope};
use std::time::Duration;
use stepscope_store::{Fault, StoreError};

/// How often the run is looked at for what is closed.
const LOOKED_AT: Duration = Duration::from_secs(2);

/// Checks that the run can be sent, as far as that can be known before the job; sends `run.json`. A store that is away may
/// be back later.
pub(super) fn begun(run: &Path, to: &Path, is_joined: bool) -> Result<Upload, Failure> {
    if !is_joined && stepscope_store::is_folder(to) {
        let failure = Failure::new("this address already holds objects").at(to.display());
        return Err(failure.hint("name another one with -o, or join the run with --join"));
    }
    let mut upload = Upload::of(run, to);
    match upload.send_closed() {
        Err(error) if !is_away(&error) => Err(failure(&error, to)),
        Err(error) => {
            say(&format!("{WARNING}stepscope:{WARNING:#} {error}: the run is kept here, and sent when that works"));
            Ok(upload)
        }
        Ok(()) => Ok(upload),
    }
}

fn is_away(error: &std::io::Error) -> bool {
    let away = [Fault::Unreachable, Fault::Throttled, Fault::Cut, Fault::Other];
    StoreError::in_error(error).is_some_and(|said| away.contains(&said.fault))
}

/// Sends beside the job, until it is told to end.
pub(super) fn beside<'scope>(
    scope: &'scope Scope<'scope, '_>,
    upload: &'scope mut Upload,
) -> (Sender<()>, thread::ScopedJoinHandle<'scope, ()>) {
    let (ends, ended) = channel();
    let work = move || {
        while ended.recv_timeout(LOOKED_AT) == Err(RecvTimeoutError::Timeout) {
            // What does not work now is tried again, and told at the end.
            let _ = stepscope_engine::close_ended(upload.run());
            let _ = upload.send_closed();
        }
    };
    (ends, scope.spawn(work))
}

/// Sends what is left. The program has ended: nothing here changes its exit code.
pub(super) fn finish(mut upload: Upload, run: &Path) {
    match upload.send_all() {
        Ok(()) => say(&format!("{DIM}stepscope:{DIM:#} {}", upload.sum())),
        Err(error) => {
            let (run, to) = (crate::report::to_type(run), crate::report::to_type(upload.to()));
            failure(&error, upload.to()).report();
            say(&format!("{WARNING}stepscope:{WARNING:#} the run is kept here: {run}"));
            say(&format!("{DIM}stepscope: next:{DIM:#} {HINT}stepscope upload {run} {to}{HINT:#}"));
        }
    }
}

fn say(line: &str) {
    let _ = anstream::stderr().write_all(format!("{line}\n").as_bytes());
}
