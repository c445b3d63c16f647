//! What a person types for inputs, as paths.

use crate::EngineError;
use crate::open::cannot_read;
use std::path::{Path, PathBuf};

/// The paths that `inputs` name: `@FILE` names those on the lines of FILE, without empty lines and those that begin with
/// `#`; a pattern with `*`, `?` or `[` the files and folders that it matches, by name. What exists under its own name is
/// no pattern.
pub(crate) fn expanded<P: AsRef<Path>>(inputs: &[P]) -> Result<Vec<PathBuf>, EngineError> {
    let mut paths = Vec::new();
    for input in inputs.iter().map(AsRef::as_ref) {
        match list_of(input) {
            Some(list) => {
                for line in lines_of(list)? {
                    add_matching(&line, &mut paths)?;
                }
            }
            None => add_matching(input, &mut paths)?,
        }
    }
    Ok(paths)
}

/// The files that `inputs` name, each a run of its own: those of a folder of traces one by one, a run folder as it is.
///
/// # Errors
/// [`EngineError::NoInput`], or a pattern or a list that names nothing.
pub fn separate<P: AsRef<Path>>(inputs: &[P]) -> Result<Vec<PathBuf>, EngineError> {
    let of_input = |path: PathBuf| match stepscope_import::files_of_folder(&path) {
        files if files.is_empty() => vec![path],
        files => files,
    };
    let files: Vec<PathBuf> = expanded(inputs)?.into_iter().flat_map(of_input).collect();
    if files.is_empty() { Err(EngineError::NoInput) } else { Ok(files) }
}

/// The file that `@FILE` names.
fn list_of(input: &Path) -> Option<&Path> {
    input.to_str()?.strip_prefix('@').map(Path::new).filter(|_| !stepscope_store::exists(input))
}

fn lines_of(list: &Path) -> Result<Vec<PathBuf>, EngineError> {
    let text = stepscope_store::read_to_string(list).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => EngineError::NotFound { path: list.into() },
        kind => {
            let hint = Some("a list of inputs has a path on each line".to_string());
            EngineError::Import { what: format!("cannot read the list: {kind}"), path: list.into(), hint }
        }
    })?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(PathBuf::from).collect())
}

fn add_matching(input: &Path, paths: &mut Vec<PathBuf>) -> Result<(), EngineError> {
    // An address of the disk is a path.
    let input = input.to_str().and_then(|text| text.strip_prefix("file://")).map_or(input, Path::new);
    let Some(pattern) = input.to_str().filter(|text| text.contains(['*', '?', '[']) && !stepscope_store::exists(input))
    else {
        paths.push(input.into());
        return Ok(());
    };
    let before = paths.len();
    match (stepscope_store::matching(input).map_err(|error| cannot_read(&error, input))?, glob::glob(pattern)) {
        (Some(found), _) => paths.extend(found),
        (None, Ok(found)) => paths.extend(found.flatten()),
        (None, Err(_)) => paths.push(input.into()),
    }
    if paths.len() == before { Err(EngineError::NothingMatches { pattern: input.into() }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_lists_become_paths() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["rank2.json", "rank10.json", "a[1].json", "notes.txt"] {
            std::fs::write(path(name), "").unwrap();
        }
        let list = format!("# ranks\n{}\n\n  {}\n", path("rank10.json").display(), path("r*2.json").display());
        std::fs::write(path("list"), list).unwrap();
        let names = |input: PathBuf| {
            let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            expanded(&[input]).map(|paths| paths.iter().map(name).collect::<Vec<_>>())
        };
        assert_eq!(names(path("rank*.json")).unwrap(), ["rank10.json", "rank2.json"]);
        assert_eq!(names(path("a[1].json")).unwrap(), ["a[1].json"]);
        assert_eq!(names(format!("@{}", path("list").display()).into()).unwrap(), ["rank10.json", "rank2.json"]);
        assert_eq!(names(path("x*")), Err(EngineError::NothingMatches { pattern: path("x*") }));
        let gone = path("gone");
        assert_eq!(names(format!("@{}", gone.display()).into()), Err(EngineError::NotFound { path: gone }));
        assert_eq!(names("-".into()).unwrap(), ["-"]);
    }
}
