//! Lets launchers that pass only some variables to other nodes pass those of the recording, too.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What DeepSpeed reads without ours: in the home folder, and in this one.
const OF_USER: &str = ".deepspeed_env";
const DEEPSPEED_VARIABLE: &str = "DS_ENV_FILE";
const OPEN_MPI_VARIABLE: &str = "OMPI_MCA_mca_base_env_list";
const OPEN_MPI: [&str; 4] = ["mpirun", "mpiexec", "orterun", "prterun"];

/// Variables that name the `variables` of the recording to the launchers that need it, and a file that one of them names,
/// which has to live as long as the program.
pub(super) fn environment(
    command: &[OsString],
    variables: &[(&'static str, OsString)],
) -> (Vec<(&'static str, OsString)>, Option<NamedTempFile>) {
    let mut all = Vec::new();
    let file = deepspeed_file(variables);
    if let Some(file) = &file {
        all.push((DEEPSPEED_VARIABLE, file.path().as_os_str().to_os_string()));
    }
    let is_open_mpi =
        Path::new(&command[0]).file_name().is_some_and(|name| OPEN_MPI.iter().any(|known| *name == **known));
    // It refuses to be told in both ways.
    let names_variables = command.iter().any(|word| word == "-x");
    if is_open_mpi && !names_variables && std::env::var_os(OPEN_MPI_VARIABLE).is_none() {
        let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
        all.push((OPEN_MPI_VARIABLE, names.join(";").into()));
    }
    (all, file)
}

/// The file with the variables, behind what DeepSpeed would read otherwise; none where it cannot say them.
fn deepspeed_file(variables: &[(&'static str, OsString)]) -> Option<NamedTempFile> {
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
    let mut file = tempfile::Builder::new().prefix("stepscope-").suffix(".env").tempfile().ok()?;
    for own in places.filter_map(|folder| std::fs::read(folder.join(&own)).ok()) {
        // An empty line is none that DeepSpeed can read.
        for line in own.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            file.write_all(&[line, b"\n"].concat()).ok()?;
        }
    }
    for (name, value) in variables {
        writeln!(file, "{name}={}", value.display()).ok()?;
    }
    Some(file)
}
