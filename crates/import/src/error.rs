//! Why an input gives no trace at all. What can be read in part is read, and the rest is a finding of the trace.

use std::path::PathBuf;
use stepscope_store::StoreError;

/// An input that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The operating system refused.
    #[error("cannot read: {source}: {path}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No byte in it.
    #[error("expected a trace, found an empty file: {path}")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Compressed data of which nothing can be decompressed.
    #[error("expected compressed data, found damage in its first block ({message}): {path}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the decoder said.
        message: String,
    },
    /// A kind of file that no reader knows.
    #[error("expected a trace, found {found}: {path}")]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// What it seems to be.
        found: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// Text that does not begin as JSON does.
    #[error("expected JSON ({expected}), found {found} at byte {at_byte}: {path}")]
    NotJson {
        /// The file.
        path: PathBuf,
        /// What could stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
        /// Where, counted in decompressed bytes from 0.
        at_byte: u64,
    },
    /// JSON in which there are no trace events.
    #[error("expected a trace (JSON with traceEvents, or a list of events), found {found} at byte {at_byte}: {path}")]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// What it holds instead.
        found: String,
        /// Where that was certain, counted in decompressed bytes from 0.
        at_byte: u64,
    },
    /// A pickle that is neither a memory snapshot nor a dump of the Flight Recorder.
    #[error(
        "expected a memory snapshot or a dump of the Flight Recorder of PyTorch (a pickled dict with segments or \
         entries), found {found}: {path}"
    )]
    NotASnapshot {
        /// The file.
        path: PathBuf,
        /// What it holds instead, and where.
        found: String,
    },
    /// JSON that begins as a dump of the Flight Recorder and cannot be read.
    #[error("expected a dump of the Flight Recorder of PyTorch (JSON with entries), found {found}: {path}")]
    NotADump {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        found: String,
    },
    /// What a reader in another process said.
    #[error("{text}")]
    Elsewhere {
        /// Its error, as it would be here.
        text: String,
        /// Its hint.
        hint: Option<String>,
    },
    /// A run folder that cannot be read.
    #[error(transparent)]
    Run {
        /// Why not.
        #[from]
        source: stepscope_run::RunError,
    },
}

impl ImportError {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        if let Some(said) = self.of_store() {
            return said.hint().map(String::from);
        }
        let hint = match self {
            Self::Run { source } => return source.hint(),
            Self::Elsewhere { hint, .. } => return hint.clone(),
            other => other.hint_of_file()?,
        };
        Some(hint.into())
    }

    /// What a store said: then nothing is known of what is there.
    pub fn of_store(&self) -> Option<&StoreError> {
        match self {
            Self::Read { source, .. } => StoreError::in_error(source),
            Self::Run { source } => source.of_store(),
            _ => None,
        }
    }

    /// Whether it says something of the machine, which did not give what is there, and nothing of what is there.
    pub fn is_of_machine(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Run { source: stepscope_run::RunError::Io { .. } })
    }

    fn hint_of_file(&self) -> Option<&'static str> {
        match self {
            Self::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Some("check the path; a run is a folder, other profilers' traces are files")
            }
            Self::Read { .. } => None,
            Self::Empty { .. } => Some("the job may have ended before its profiler wrote anything"),
            Self::Damaged { .. } => Some("copy the file again: it was damaged on its way"),
            Self::UnknownFormat { hint, .. } => Some(hint),
            Self::NotJson { .. } | Self::NotATrace { .. } => {
                Some("PyTorch's profiler writes such a file with prof.export_chrome_trace(\"trace.json.gz\")")
            }
            Self::NotASnapshot { .. } => {
                Some("PyTorch writes such a file with torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")")
            }
            Self::NotADump { .. } => Some("copy the file again: it may be cut or damaged"),
            Self::Run { .. } | Self::Elsewhere { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_lower_case_and_end_with_the_path() {
        let error =
            ImportError::NotJson { path: "a/b.json".into(), expected: "'{' or '['", found: "'x'".into(), at_byte: 0 };
        assert_eq!(error.to_string(), "expected JSON ('{' or '['), found 'x' at byte 0: a/b.json");
        assert!(error.hint().is_some());
    }
}
