//! What a run consists of that is opened part by part: trace files, or ranks of a run of our own recorder.

use crate::ranks::{JoinedFiles, Joining};
use crate::{
    ImportError, Progress, RunRanks, dftracer, files_in, is_run_folder, name_of_several, open_joining, ranks,
    trace_name,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use stepscope_trace::Trace;

/// The parts of a run, which are opened by their place.
#[derive(Debug, Serialize, Deserialize)]
pub enum Parts {
    /// Trace files.
    Files {
        /// What a person calls the run.
        name: String,
        /// The files.
        files: Vec<PathBuf>,
    },
    /// Ranks of a run of our own recorder.
    Ranks(Box<RunRanks>),
}

impl Parts {
    /// The parts of the run that `paths` are: the ranks of a run folder, several paths, or the several trace files of a
    /// folder. `None` of what is opened at once.
    ///
    /// # Errors
    /// When a folder cannot be listed, or is a run of a newer version.
    pub fn of(paths: &[PathBuf]) -> Result<Option<Self>, ImportError> {
        match paths {
            [] => Ok(None),
            [only] if !stepscope_store::is_folder(only) || dftracer::is_folder(only) => Ok(None),
            [only] if is_run_folder(only) => Ok(Some(Self::Ranks(Box::new(RunRanks::of(only)?)))),
            [only] => {
                let files = files_in(only)?;
                Ok((files.len() > 1).then(|| Self::Files { name: trace_name(only), files }))
            }
            several => Ok(Some(Self::Files { name: name_of_several(several), files: several.to_vec() })),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Files { files, .. } => files.len(),
            Self::Ranks(ranks) => ranks.ranks().len(),
        }
    }

    /// The part at a place as the only one, which is then opened as here, without a look at the others. `moved` says where a
    /// file or folder of it is there.
    ///
    /// # Panics
    /// When there is no such place.
    #[must_use]
    pub fn alone(&self, at: usize, moved: impl Fn(&Path) -> PathBuf) -> Self {
        match self {
            Self::Files { name, files } => Self::Files { name: name.clone(), files: vec![moved(&files[at])] },
            Self::Ranks(ranks) => Self::Ranks(Box::new(ranks.alone(ranks.ranks()[at], moved))),
        }
    }

    /// The files of the part at a place.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn files(&self, at: usize) -> &[PathBuf] {
        match self {
            Self::Files { files, .. } => &files[at..=at],
            Self::Ranks(ranks) => ranks.files(ranks.ranks()[at]),
        }
    }

    /// The folder that the part at a place is in, and its name there.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn name_in_folder(&self, at: usize) -> (PathBuf, String) {
        match self {
            Self::Files { files, .. } => {
                let name = files[at].file_name().unwrap_or_default().to_string_lossy().into_owned();
                (files[at].parent().unwrap_or(Path::new(".")).into(), name)
            }
            Self::Ranks(ranks) => (ranks.path().into(), format!("rank={}", ranks.ranks()[at])),
        }
    }

    /// Where the trace of the part at a place says that it is from.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn source(&self, at: usize) -> String {
        let path = match self {
            Self::Files { files, .. } => &files[at],
            Self::Ranks(ranks) => ranks.path(),
        };
        path.display().to_string()
    }

    /// What the trace of the part at a place has that its files do not say; it changes with other files of a run.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn surroundings(&self, at: usize) -> String {
        match self {
            Self::Files { .. } => String::new(),
            Self::Ranks(ranks) => ranks.surroundings(ranks.ranks()[at]),
        }
    }

    /// Whether nothing is written to the part at a place any more, as far as its files say.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn is_closed(&self, at: usize) -> bool {
        match self {
            Self::Files { .. } => true,
            Self::Ranks(_) => {
                self.files(at).iter().all(|file| file.extension().is_some_and(|ending| ending == "parquet"))
            }
        }
    }

    /// Opens the part at a place.
    ///
    /// # Errors
    /// What is wrong with it.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn open(&self, at: usize, joining: &Joining, progress: &Progress) -> Result<Trace, ImportError> {
        match self {
            Self::Files { files, .. } => open_joining(&files[at], joining, progress),
            Self::Ranks(ranks) => ranks.open(ranks.ranks()[at], progress),
        }
    }

    /// The run whose parts `read` opens, by their place, each once. What it gives may be a trace of few slices of the part,
    /// as long as it has its processes, steps, facts, findings, first and last moment.
    ///
    /// # Errors
    /// When none of the files can be read: what is wrong with the first. When a rank cannot be read.
    pub fn join(
        &self,
        joining: &Joining,
        read: &mut dyn FnMut(usize) -> Result<Trace, ImportError>,
    ) -> Result<JoinedFiles, ImportError> {
        match self {
            Self::Files { name, files } => ranks::join(name.clone(), files, joining, read),
            Self::Ranks(ranks) => {
                let files: Vec<usize> = (0..self.count()).collect();
                let traces: Result<Vec<Trace>, ImportError> = files.iter().map(|at| read(*at)).collect();
                Ok(JoinedFiles { trace: ranks.join(traces?), files })
            }
        }
    }
}
