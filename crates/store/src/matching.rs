//! Patterns such as `s3://bucket/run/rank*.json.gz`.

use crate::location::Location;
use glob::{MatchOptions, Pattern};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// `*` stays within a name.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: false };

/// The files and folders of a store that `pattern` matches, by name; `None` when it is no address. What is signed is no pattern.
///
/// # Errors
/// When the pattern is none, or the store refuses.
pub fn matching(pattern: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    let Some(text) = pattern.to_str() else { return Ok(None) };
    if Location::of(pattern)?.is_some_and(|location| location.is_signed()) {
        return Ok(Some(vec![pattern.into()]));
    }
    // What stands before the first wildcard is a folder to list.
    let literal = &text[..text.find(['*', '?', '[']).unwrap_or(text.len())];
    let Some((folder, _)) = literal.rsplit_once('/') else { return Ok(None) };
    let Some(location) = Location::of(Path::new(folder))? else { return Ok(None) };
    let wrong = |error: glob::PatternError| io::Error::new(io::ErrorKind::InvalidInput, error);
    let inner = Pattern::new(text[folder.len()..].trim_start_matches('/')).map_err(wrong)?;
    let listing = location.store.listings.listed(&location)?;
    let parent = location.object.as_ref();
    let below = listing.paths().filter_map(|path| path.strip_prefix(parent)?.trim_start_matches('/').into());
    Ok(Some(matches(&inner, below).iter().map(|name| Path::new(folder).join(name)).collect()))
}

/// Which of `paths`, or of the folders that they are in, match.
fn matches<'a>(pattern: &Pattern, paths: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let parts = paths.flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..at]).chain(std::iter::once(path)));
    parts.filter(|part| pattern.matches_with(part, OPTIONS)).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_match() {
        let paths = ["run1/rank=0/a.parquet", "run1/run.json", "run2/run.json", "t1.json.gz", "t2.json"];
        let found = |pattern: &str| -> Vec<String> {
            matches(&Pattern::new(pattern).unwrap(), paths.into_iter()).into_iter().collect()
        };
        assert_eq!(found("run*"), ["run1", "run2"]);
        assert_eq!(found("t[0-9].json*"), ["t1.json.gz", "t2.json"]);
        assert_eq!(found("*/run.json"), ["run1/run.json", "run2/run.json"]);
        assert_eq!(found("run1/**/*.parquet"), ["run1/rank=0/a.parquet"]);
        assert!(found("x*").is_empty());
    }
}
