//! Where the program is that runs SQL. It is a program of its own, so that only who needs SQL has to install it.

use crate::OpenOptions;
use serde::Deserialize;
use std::env::{self, consts::EXE_SUFFIX};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the program, whatever else is there.
const VARIABLE: &str = "STEPSCOPE_SQL";

/// The program `stepscope-sql`: what the environment variable `STEPSCOPE_SQL` names, else the one beside this program,
/// else the one on `PATH`.
pub fn find_sql() -> Option<PathBuf> {
    let named = env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    named.or_else(|| found("stepscope-sql", folders()))
}

/// The program `stepscope` itself, which another one can call. Where Python runs it, it is the one beside Python.
pub fn find_stepscope() -> Option<PathBuf> {
    found("stepscope", folders())
}

/// The beginning of a call of `stepscope-sql`: how it runs analyses of runs that are opened in this way. `None` where it is
/// not installed.
pub fn sql_command(options: &OpenOptions) -> Option<Command> {
    let mut command = Command::new(find_sql()?);
    if let Some(stepscope) = find_stepscope() {
        command.arg("--stepscope").arg(stepscope);
    }
    command.args(options.spelled().into_iter().map(|argument| format!("--opened-with={argument}")));
    Some(command)
}

/// What `stepscope-sql` says is wrong, as JSON: what, where in a query or which file, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct SqlComplaint {
    /// One line in lower case.
    pub what: String,
    /// `line 1, column 8`, or a file.
    #[serde(rename = "where")]
    pub location: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl SqlComplaint {
    /// That at the end of an answer as JSON: rows may have come before. `None` where all is well.
    pub fn of(answer: &[u8]) -> Option<Self> {
        const BEGIN: &[u8] = b"{\"error\":";
        #[derive(Deserialize)]
        struct Said {
            error: SqlComplaint,
        }
        let at = answer.windows(BEGIN.len()).rposition(|window| window == BEGIN)?;
        Some(serde_json::from_slice::<Said>(&answer[at..]).ok()?.error)
    }
}

/// Where programs are looked for, the best place first.
fn folders() -> impl Iterator<Item = PathBuf> {
    let itself = env::current_exe().ok();
    // A Python in an environment is a link to one elsewhere; its other programs are beside the link.
    let called = env::args_os().next().map(PathBuf::from).filter(|path| path.is_absolute());
    let beside = [itself, called].into_iter().flatten().filter_map(|path| path.parent().map(Path::to_path_buf));
    beside.chain(env::var_os("PATH").iter().flat_map(env::split_paths).collect::<Vec<_>>())
}

fn found(name: &str, folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    folders.map(|folder| folder.join(format!("{name}{EXE_SUFFIX}"))).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_folder_that_has_the_program_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let folders = ["a", "b", "c"].map(|name| folder.path().join(name));
        let looked_for = || found("stepscope-sql", folders.iter().cloned());
        folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        assert_eq!(looked_for(), None);
        for at in [2, 1] {
            let program = folders[at].join(format!("stepscope-sql{EXE_SUFFIX}"));
            std::fs::write(&program, "").unwrap();
            assert_eq!(looked_for(), Some(program));
        }
        // A folder of that name is no program.
        std::fs::create_dir(folders[0].join(format!("stepscope-sql{EXE_SUFFIX}"))).unwrap();
        assert_eq!(looked_for().unwrap().parent(), Some(folders[1].as_path()));
    }
}
