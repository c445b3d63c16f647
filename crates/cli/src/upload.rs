//! `stepscope upload`: a run into an object store. `stepscope record -o s3://…` sends what it records in the same way.

use crate::Ending;
use crate::failure::Failure;
use crate::output::print;
use crate::plural::plural;
use clap::Args;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use stepscope_base::units::format_bytes;
use stepscope_engine::EngineError;
use stepscope_store::{Fault, StoreError};

/// Copy a run into an object store
///
/// Files that are there already are not sent again: what broke off goes on. Processes that were killed are closed before,
/// as by `stepscope recover`.
#[derive(Args)]
#[command(after_help = "\
Example:
  stepscope upload stepscope-runs/20260101-120000-train s3://bucket/runs/train")]
pub(crate) struct UploadArguments {
    /// The run's folder
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Where it goes, such as s3://BUCKET/FOLDER, gs://BUCKET/FOLDER or az://CONTAINER/FOLDER
    #[arg(value_name = "ADDRESS")]
    to: PathBuf,
}

/// Carries `stepscope upload` out.
pub(crate) fn upload(arguments: &UploadArguments) -> Ending {
    let UploadArguments { run, to } = arguments;
    if !run.exists() {
        return Err(EngineError::NotFound { path: run.clone() }.into());
    }
    if !stepscope_store::is_remote(to) {
        let failure = Failure::new("this is no address of an object store").at(to.display());
        return Err(failure.hint("an address is one such as s3://BUCKET/FOLDER").code(2));
    }
    stepscope_engine::recover(run).map_err(|error| Failure::run(&error, run))?;
    let mut upload = Upload::of(run, to);
    upload.leave_out_what_is_there().map_err(|error| failure(&error, to))?;
    upload.send_all().map_err(|error| failure(&error, to))?;
    print(&format!("{}\n", upload.sum()))?;
    Ok(0)
}

/// What a store says.
pub(crate) fn failure(error: &io::Error, to: &Path) -> Failure {
    let failure = Failure::new(format!("cannot write: {error}")).at(to.display());
    match StoreError::in_error(error).and_then(StoreError::hint) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The files of a run that go to a store, each once.
pub(crate) struct Upload {
    run: PathBuf,
    to: PathBuf,
    /// Below the run.
    sent: BTreeSet<PathBuf>,
    bytes: u64,
    count: u64,
}

impl Upload {
    pub(crate) fn of(run: &Path, to: &Path) -> Self {
        Self { run: run.into(), to: to.into(), sent: BTreeSet::new(), bytes: 0, count: 0 }
    }

    /// What is sent.
    pub(crate) fn run(&self) -> &Path {
        &self.run
    }

    /// Where it goes.
    pub(crate) fn to(&self) -> &Path {
        &self.to
    }

    /// Files of the same length are those of an earlier upload: a part is never changed.
    fn leave_out_what_is_there(&mut self) -> io::Result<()> {
        // One request tells of all files.
        if let Err(error) = stepscope_store::list(&self.to) {
            let is_new = StoreError::in_error(&error).is_some_and(|said| said.fault == Fault::NotFound);
            return if is_new { Ok(()) } else { Err(error) };
        }
        for file in self.files() {
            let there = stepscope_store::metadata(&self.to.join(&file)).ok();
            if there.is_some_and(|there| there.len == stepscope_store::len(&self.run.join(&file))) {
                self.sent.insert(file);
            }
        }
        Ok(())
    }

    /// Sends the files that nobody writes any more: `run.json`, and the parts of processes that have ended.
    ///
    /// # Errors
    /// What the store says; the file is sent the next time.
    pub(crate) fn send_closed(&mut self) -> io::Result<()> {
        self.send(|file| file == "run.json" || file.extension().is_some_and(|extension| extension == "parquet"))
    }

    /// Sends all of the run but captures that a process still writes.
    ///
    /// # Errors
    /// What the store says; what was sent is.
    pub(crate) fn send_all(&mut self) -> io::Result<()> {
        self.send(|file| !file.starts_with("raw"))
    }

    fn send(&mut self, is_wanted: impl Fn(&Path) -> bool) -> io::Result<()> {
        for file in self.files().into_iter().filter(|file| is_wanted(file)) {
            if !self.sent.contains(&file) {
                let from = self.run.join(&file);
                stepscope_store::upload(&from, &self.to.join(&file))?;
                self.bytes += stepscope_store::len(&from);
                self.count += 1;
                self.sent.insert(file);
            }
        }
        Ok(())
    }

    /// The files of the run; not what is written beside them, which has a name that begins with a dot.
    fn files(&self) -> Vec<PathBuf> {
        fn add(folder: &Path, files: &mut Vec<PathBuf>) {
            for path in stepscope_store::list(folder).unwrap_or_default() {
                let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
                match path.is_dir() {
                    _ if is_hidden => {}
                    true => add(&path, files),
                    false => files.push(path),
                }
            }
        }
        let mut files = Vec::new();
        add(&self.run, &mut files);
        let below = |file: PathBuf| file.strip_prefix(&self.run).map(Path::to_path_buf).ok();
        files.into_iter().filter_map(below).collect()
    }

    /// What was sent: `3 files, 31.2 KiB sent to s3://bucket/run`.
    pub(crate) fn sum(&self) -> String {
        let bytes = format_bytes(i64::try_from(self.bytes).unwrap_or(i64::MAX));
        format!("{}, {bytes} sent to {}", plural(self.count, "file"), self.to.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_sent_once_and_captures_not_at_all() {
        let (run, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for file in ["run.json", "rank=0/part-1.parquet", "raw/1.capture", "rank=0/.part-2.new"] {
            let path = run.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "1234").unwrap();
        }
        std::fs::create_dir(to.path().join("rank=0")).unwrap();
        let mut upload = Upload::of(run.path(), to.path());
        upload.send_closed().unwrap();
        assert_eq!((upload.count, upload.bytes), (2, 8));
        upload.send_all().unwrap();
        assert_eq!(upload.count, 2, "there is nothing else");
        let mut again = Upload::of(run.path(), to.path());
        std::fs::write(to.path().join("run.json"), "1").unwrap();
        again.leave_out_what_is_there().unwrap();
        again.send_all().unwrap();
        assert_eq!(again.count, 1, "what is shorter is not whole");
    }
}
