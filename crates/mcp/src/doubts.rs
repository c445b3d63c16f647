//! What is doubtful about a result, in few words.

use serde::Serialize;
use stepscope_engine::FindingRow;

/// How many findings there are, and the grave ones by name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub(crate) struct Doubts {
    severe: usize,
    suspect: usize,
    info: usize,
    /// The codes of severe and suspect ones, with how many times each applies; the most severe first, at most
    /// [`Doubts::NAMED`].
    named: Vec<String>,
}

impl Doubts {
    const NAMED: usize = 4;

    /// What `findings`, the most severe first, say.
    pub(crate) fn of(findings: &[FindingRow]) -> Self {
        let count = |severity: &str| findings.iter().filter(|row| row.severity == severity).count();
        let grave = findings.iter().filter(|row| row.severity != "info").take(Self::NAMED);
        Self {
            severe: count("severe"),
            suspect: count("suspect"),
            info: count("info"),
            named: grave.map(|row| format!("{} × {}", row.count, row.code)).collect(),
        }
    }
}
