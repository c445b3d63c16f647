//! Lets launchers that pass only some variables to other nodes pass those of the recording, too.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What DeepSpeed reads without ours: in the home folder, and in this one.
const OF_USER: &str = ".deepspeed_env";
const DEEPSPEED_VARIABLE: &str = "DS_ENV_FILE";
const OPEN_MPI_VARIABLE: &str = "OMPI_MCA_mca_base_env_list";
const NOT_REACHED: &str = "processes of other nodes are not recorded";
const OPEN_MPI: [&str; 4] = ["mpirun", "mpiexec", "orterun", "prterun"];

/// What takes a recording to other nodes.
pub(super) struct OtherNodes {
    /// Names the variables of the recording to the launchers that need it.
    pub(super) environment: Vec<(&'static str, OsString)>,
    /// Why processes of other nodes will not be recorded, and what to do.
    pub(super) warning: Option<String>,
    /// A file that the environment names: it is there as long as this is.
    _file: Option<NamedTempFile>,
}

/// Has the launcher in `command` pass the `variables` of the recording on.
pub(super) fn reach(command: &[OsString], variables: &[(&'static str, OsString)]) -> OtherNodes {
    let (mut environment, mut warning, mut file) = (Vec::new(), None, None);
    match variables.iter().find(|(_, value)| !is_plain(value)) {
        None => file = deepspeed_file(variables),
        Some((name, _)) if is_deepspeed(command) => {
            warning = Some(format!(
                "{NOT_REACHED}: DeepSpeed's launcher cannot pass on {name}, \
                 in whose value there is a space or a quotation mark; name another folder with `-o`"
            ));
        }
        Some(_) => {}
    }
    if let Some(file) = &file {
        environment.push((DEEPSPEED_VARIABLE, file.path().as_os_str().to_os_string()));
    }
    if is_open_mpi(command) {
        let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
        // It refuses to be told in both ways.
        let names_variables = command.iter().any(|word| word == "-x");
        let own = std::env::var_os(OPEN_MPI_VARIABLE);
        if own.is_none() && !names_variables {
            environment.push((OPEN_MPI_VARIABLE, names.join(";").into()));
        }
        // An empty one says nothing.
        let needed: Vec<&str> =
            variables.iter().filter(|(_, value)| !value.is_empty()).map(|(name, _)| *name).collect();
        if names_variables && !needed.iter().all(|name| is_named(name, command, None)) {
            let added = needed.iter().map(|name| format!("-x {name}")).collect::<Vec<_>>().join(" ");
            warning = Some(format!("{NOT_REACHED}: `mpirun` passes on what `-x` names; add `{added}`"));
        } else if own.is_some() && !needed.iter().all(|name| is_named(name, command, own.as_deref())) {
            warning = Some(format!("{NOT_REACHED}: add `;{}` to {OPEN_MPI_VARIABLE}", needed.join(";")));
        }
    }
    OtherNodes { environment, warning, _file: file }
}

/// Whether `mpirun` is told to pass this variable on, by an option or by the environment.
fn is_named(name: &str, command: &[OsString], own: Option<&OsStr>) -> bool {
    let is_name = |said: &str| said.split('=').next() == Some(name);
    let by_option = command.windows(2).any(|pair| pair[0] == "-x" && pair[1].to_str().is_some_and(is_name));
    by_option || own.and_then(OsStr::to_str).is_some_and(|list| list.split(';').any(is_name))
}

fn is_open_mpi(command: &[OsString]) -> bool {
    Path::new(&command[0]).file_name().is_some_and(|name| OPEN_MPI.iter().any(|known| *name == **known))
}

/// Whether DeepSpeed's launcher is what is started, also as a script of a Python that is named before it.
fn is_deepspeed(command: &[OsString]) -> bool {
    command.iter().take(2).any(|word| Path::new(word).file_name().is_some_and(|name| name == "deepspeed"))
}

/// Whether the shell of another node reads this as it stands: DeepSpeed writes no quotation marks around it.
fn is_plain(value: &OsStr) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte);
    value.to_str().is_some_and(|value| value.bytes().all(is_plain))
}

/// The file with the variables, behind what DeepSpeed would read otherwise; none where it cannot be written.
fn deepspeed_file(variables: &[(&'static str, OsString)]) -> Option<NamedTempFile> {
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
