//! Lets launchers that pass only some variables to other nodes pass those of the recording, too.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file in the run folder that DeepSpeed's launcher reads.
const FILE: &str = "environment";
/// What DeepSpeed reads without ours: in the home folder, and in this one.
const OF_USER: &str = ".deepspeed_env";
const DEEPSPEED_VARIABLE: &str = "DS_ENV_FILE";
const OPEN_MPI_VARIABLE: &str = "OMPI_MCA_mca_base_env_list";
const OPEN_MPI: [&str; 4] = ["mpirun", "mpiexec", "orterun", "prterun"];

/// Variables that name the `variables` of the recording to the launchers that need it.
pub(super) fn environment(
    run: &Path,
    command: &[OsString],
    variables: &[(&'static str, OsString)],
) -> Vec<(&'static str, OsString)> {
    let mut all = Vec::new();
    if let Some(file) = deepspeed_file(run, variables) {
        all.push((DEEPSPEED_VARIABLE, file.into_os_string()));
    }
    let is_open_mpi =
        Path::new(&command[0]).file_name().is_some_and(|name| OPEN_MPI.iter().any(|known| *name == **known));
    // It refuses to be told in both ways.
    let names_variables = command.iter().any(|word| word == "-x");
    if is_open_mpi && !names_variables && std::env::var_os(OPEN_MPI_VARIABLE).is_none() {
        let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
        all.push((OPEN_MPI_VARIABLE, names.join(";").into()));
    }
    all
}

/// The file with the variables, behind what DeepSpeed would read otherwise; none where it cannot say them.
fn deepspeed_file(run: &Path, variables: &[(&'static str, OsString)]) -> Option<PathBuf> {
    // The other node's shell reads them without quotation marks.
    let is_plain = |value: &OsStr| {
        value.to_str().is_some_and(|value| {
            value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte))
        })
    };
    if !variables.iter().all(|(_, value)| is_plain(value)) {
        return None;
    }
    let own = match std::env::var_os(DEEPSPEED_VARIABLE) {
        Some(name) => name,
        None => OF_USER.into(),
    };
    let home = std::env::home_dir();
    let places = home.iter().map(PathBuf::as_path).chain([Path::new(".")]);
    let mut text: Vec<u8> = Vec::new();
    for own in places.filter_map(|folder| std::fs::read(folder.join(&own)).ok()) {
        // An empty line is none that DeepSpeed can read.
        for line in own.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
    }
    for (name, value) in variables {
        writeln!(text, "{name}={}", value.display()).ok()?;
    }
    let path = std::path::absolute(run.join(FILE)).ok()?;
    std::fs::write(&path, text).ok()?;
    Some(path)
}
