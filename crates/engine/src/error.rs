//! What can go wrong between a person's request and a result.

use std::path::PathBuf;
use stepscope_analyses::RanksError;
use stepscope_base::units::format_bytes;

/// A request that cannot be answered. `Display` is one line of what happened, in lower case; [`EngineError::place`]
/// says where, [`EngineError::hint`] what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EngineError {
    /// No input was given.
    #[error("no run was given")]
    NoInput,
    /// Nothing is there.
    #[error("no such file or folder")]
    NotFound {
        /// The input.
        path: PathBuf,
    },
    /// A pattern such as `rank*.json` matches nothing.
    #[error("no file or folder matches the pattern")]
    NothingMatches {
        /// The pattern.
        pattern: PathBuf,
    },
    /// The reader could not make a trace of the input.
    #[error("{what}")]
    Import {
        /// The reader's own sentence.
        what: String,
        /// The input.
        path: PathBuf,
        /// What the reader advises.
        hint: Option<String>,
    },
    /// Another process made no summary of a part of the run that can be used.
    #[error("{what}")]
    Elsewhere {
        /// Why not.
        what: String,
        /// The part.
        path: PathBuf,
        /// What to do.
        hint: String,
    },
    /// No analysis has this name.
    #[error("there is no analysis called {name:?}")]
    UnknownAnalysis {
        /// The name asked for.
        name: String,
        /// The name that looks most like it.
        nearest: Option<&'static str>,
    },
    /// The result has no column of this name.
    #[error("the result has no column called {name:?}")]
    UnknownColumn {
        /// The name asked for.
        name: String,
        /// The analysis.
        analysis: String,
        /// The columns there are.
        columns: Vec<&'static str>,
    },
    /// The analysis does not accept an option, or not this value of it.
    #[error("{analysis} does not accept {option} {value:?}")]
    NotAccepted {
        /// The analysis.
        analysis: &'static str,
        /// The option: `group-by`, `compat`, `bucket`, `depth`, `top`.
        option: &'static str,
        /// What was asked for.
        value: String,
        /// What it accepts.
        accepted: Vec<&'static str>,
    },
    /// The run has no such rank.
    #[error("rank {rank} is not in this run")]
    UnknownRank {
        /// The rank asked for.
        rank: u32,
        /// The run.
        run: String,
        /// The ranks there are.
        ranks: Vec<u32>,
    },
    /// The run has none of a range of ranks.
    #[error("none of the ranks {first}-{last} is in this run")]
    UnknownRanks {
        /// The first rank asked for.
        first: u32,
        /// The last.
        last: u32,
        /// The run.
        run: String,
        /// The ranks there are.
        ranks: Vec<u32>,
    },
    /// A text names no ranks.
    #[error(transparent)]
    NotRanks(#[from] RanksError),
    /// The run has no such step, on the ranks asked for.
    #[error("step {step} is not in this run")]
    UnknownStep {
        /// The step asked for.
        step: i64,
        /// The run.
        run: String,
        /// The first and the last step there are.
        limits: Option<(i64, i64)>,
    },
    /// All events asked for do not fit into memory.
    #[error("all events of {} would take about {} of memory, more than the {} allowed", of_files(*files), in_bytes(*bytes), in_bytes(*max_bytes))]
    TooLarge {
        /// Number of files.
        files: usize,
        /// About how many bytes of memory they take.
        bytes: u64,
        /// How many they may take.
        max_bytes: u64,
    },
    /// The window of time asked for has its limits the wrong way round.
    #[error("the window ends before it begins: start_ns is {start_ns}, end_ns is {end_ns}")]
    WindowEndsFirst {
        /// Where it was to begin.
        start_ns: i64,
        /// Where it was to end.
        end_ns: i64,
    },
}

impl EngineError {
    /// Where it happened: an input or the name of a run, as a person typed or knows it.
    pub fn place(&self) -> Option<String> {
        match self {
            Self::NoInput
            | Self::UnknownAnalysis { .. }
            | Self::NotAccepted { .. }
            | Self::NotRanks(_)
            | Self::TooLarge { .. }
            | Self::WindowEndsFirst { .. } => None,
            Self::NotFound { path }
            | Self::NothingMatches { pattern: path }
            | Self::Import { path, .. }
            | Self::Elsewhere { path, .. } => Some(path.display().to_string()),
            Self::UnknownColumn { analysis, .. } => Some(format!("analysis {analysis}")),
            Self::UnknownRank { run, .. } | Self::UnknownRanks { run, .. } | Self::UnknownStep { run, .. } => {
                Some(run.clone())
            }
        }
    }

    /// How many GiB of memory are enough, where what was allowed is not. How to allow more is told where that is done.
    pub fn gib_needed(&self) -> Option<u64> {
        match self {
            Self::TooLarge { bytes, .. } => Some(bytes.div_ceil(1 << 30)),
            _ => None,
        }
    }

    /// What to do about it, in one line, for the command line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoInput => Some("give a run folder or a trace file".into()),
            Self::NotFound { .. } => {
                Some("check the path; a run is a folder, other profilers' traces are files".into())
            }
            Self::NothingMatches { .. } => Some("* stands for any text, ? for a character, ** for any folders".into()),
            Self::Import { hint, .. } => hint.clone(),
            Self::Elsewhere { hint, .. } => Some(hint.clone()),
            Self::UnknownAnalysis { nearest: Some(name), .. } => Some(format!("did you mean {name:?}?")),
            Self::UnknownAnalysis { nearest: None, .. } => Some("`stepscope analyze` lists them".into()),
            Self::NotAccepted { accepted, option, .. } => Some(match accepted.as_slice() {
                [] => format!("leave --{option} out: it has no meaning there"),
                accepted => format!("it accepts {}", accepted.join(", ")),
            }),
            Self::UnknownColumn { columns, .. } => Some(format!("its columns are {}", columns.join(", "))),
            Self::NotRanks(_) => None,
            Self::TooLarge { .. } => {
                self.gib_needed().map(|gib| format!("ask for fewer ranks, or allow more memory: --memory {gib}GiB"))
            }
            Self::UnknownRank { ranks, .. } | Self::UnknownRanks { ranks, .. } => {
                Some(format!("its ranks are {}", few(ranks)))
            }
            Self::UnknownStep { limits: Some((first, last)), .. } if first == last => {
                Some(format!("its only step is {first}"))
            }
            Self::UnknownStep { limits: Some((first, last)), .. } => {
                Some(format!("its steps reach from {first} to {last}"))
            }
            Self::WindowEndsFirst { .. } => {
                Some("give the earlier moment as start_ns and the later one as end_ns".into())
            }
            Self::UnknownStep { limits: None, .. } => Some("leave --step out: nothing in it marks steps".into()),
        }
    }
}

fn of_files(files: usize) -> String {
    if files == 1 { "one file".into() } else { format!("{files} files") }
}

fn in_bytes(bytes: u64) -> String {
    format_bytes(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// The first few of `ranks` in words.
fn few(ranks: &[u32]) -> String {
    const SHOWN: usize = 16;
    let mut words: Vec<String> = ranks.iter().take(SHOWN).map(u32::to_string).collect();
    if ranks.len() > SHOWN {
        words.push(format!("… {}", ranks[ranks.len() - 1]));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_says_how_much_it_is() {
        let error = |files| EngineError::TooLarge { files, bytes: 5 << 30, max_bytes: 1 << 29 };
        let says = "all events of 3 files would take about 5.00 GiB of memory, more than the 512 MiB allowed";
        assert_eq!(error(3).to_string(), says);
        assert!(error(1).to_string().starts_with("all events of one file would"));
        assert_eq!(error(3).hint().unwrap(), "ask for fewer ranks, or allow more memory: --memory 5GiB");
    }

    #[test]
    fn an_error_says_what_where_and_what_to_do() {
        let error = EngineError::UnknownRank { rank: 9, run: "train".into(), ranks: (0..40).collect() };
        assert_eq!(error.to_string(), "rank 9 is not in this run");
        assert_eq!(error.place().as_deref(), Some("train"));
        let hint = "its ranks are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, … 39";
        assert_eq!(error.hint().as_deref(), Some(hint));
    }
}
