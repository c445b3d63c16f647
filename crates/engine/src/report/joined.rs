//! What a run was put together from, in one line.

use serde::Serialize;
use stepscope_trace::{ClockSource, Joined, Trace};

/// How several files became one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct JoinedFiles {
    /// The same in one line.
    pub says: String,
    /// Number of files.
    pub files: u32,
    /// Number of ranks.
    pub ranks: usize,
    /// Files that say their rank.
    pub ranks_stated: u32,
    /// Files whose rank their names say.
    pub ranks_named: u32,
    /// Files that have the rank of a file about the same process.
    pub ranks_of_processes: u32,
    /// Files of which the rank is not known.
    pub ranks_unknown: u32,
    /// Ranks of the job without a file, ascending.
    pub missing_ranks: Vec<u32>,
    /// What put the clocks together: `stated`, `collectives`, `begun_together`.
    pub clocks: &'static str,
}

/// How the files of `trace` became one; none when it is of one file.
pub(super) fn joined_files(trace: &Trace) -> Option<JoinedFiles> {
    let joined = trace.joined.as_ref()?;
    let ranks = trace.ranks().len();
    let Joined { ranks_stated, ranks_named, ranks_of_processes, ranks_unknown, .. } = *joined;
    Some(JoinedFiles {
        says: sentence(joined, ranks),
        files: joined.files(),
        ranks,
        ranks_stated,
        ranks_named,
        ranks_of_processes,
        ranks_unknown,
        missing_ranks: joined.missing_ranks.clone(),
        clocks: joined.clocks.as_str(),
    })
}

fn sentence(joined: &Joined, ranks: usize) -> String {
    let from = [
        ("from the files", joined.ranks_stated),
        ("from names", joined.ranks_named),
        ("from files about the same process", joined.ranks_of_processes),
        ("not known", joined.ranks_unknown),
    ];
    let from = from.iter().filter(|(_, files)| *files > 0).map(|(what, files)| format!("{what} ({files})"));
    let clocks = match joined.clocks {
        ClockSource::Stated => "as the files state them",
        ClockSource::Collectives => "by collectives",
        ClockSource::BegunTogether => "unknown, all begin together",
    };
    let missing = match joined.missing_ranks.as_slice() {
        [] => String::new(),
        missing => format!("; missing: {}", ranges(missing)),
    };
    let ranks = if ranks == 1 { "1 rank".into() } else { format!("{ranks} ranks") };
    let from = from.collect::<Vec<_>>().join(", ");
    format!("{ranks} from {} files: rank {from}; clocks: {clocks}{missing}", joined.files())
}

/// Ranks, ascending, as `0-3, 7`; the first few ranges of many.
fn ranges(ranks: &[u32]) -> String {
    const SHOWN: usize = 6;
    let follows = |a: &u32, b: &u32| a.checked_add(1) == Some(*b);
    let parts: Vec<&[u32]> = ranks.chunk_by(follows).collect();
    let text = |part: &&[u32]| match part {
        [rank] => rank.to_string(),
        part => format!("{}-{}", part[0], part[part.len() - 1]),
    };
    let mut words: Vec<String> = parts.iter().take(SHOWN).map(text).collect();
    let more: usize = parts.iter().skip(SHOWN).map(|part| part.len()).sum();
    words.extend((more > 0).then(|| format!("… {more} more")));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::drawn::drawn;

    #[test]
    fn a_line_says_what_was_joined_and_how() {
        let mut trace = drawn("rank 0 cpu 1 aa\nrank 2 cpu 1 aa");
        assert_eq!(joined_files(&trace), None);
        let joined = Joined { ranks_stated: 2, missing_ranks: vec![1, 3, 4, 5], ..Joined::default() };
        trace.joined = Some(joined);
        let says = |trace: &Trace| joined_files(trace).unwrap().says;
        let expected =
            "2 ranks from 2 files: rank from the files (2); clocks: as the files state them; missing: 1, 3-5";
        assert_eq!(says(&trace), expected);
        trace.joined = Some(Joined {
            ranks_named: 3,
            ranks_of_processes: 2,
            ranks_unknown: 1,
            clocks: ClockSource::Collectives,
            ..Joined::default()
        });
        let expected = "2 ranks from 6 files: rank from names (3), from files about the same process (2), not known (1); \
                        clocks: by collectives";
        assert_eq!(says(&trace), expected);
        assert_eq!(ranges(&[0, 2, 4, 6, 8, 10, 12, 13, 15]), "0, 2, 4, 6, 8, 10, … 3 more");
    }
}
