//! The Python environment of tests, demo and benches: made once, in the checkout, and used again while what it should
//! hold stays the same.

use crate::checkout::root;
use crate::child;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const REQUIREMENTS: &str = "python/requirements-dev.txt";
const FRAMEWORKS: &str = "python/requirements-frameworks.txt";
const SERVERS: &str = "python/requirements-servers.txt";
/// Names the Python of the environment with inference servers to tests and benches.
pub(crate) const SERVERS_PYTHON: &str = "STEPSCOPE_SERVERS_PYTHON";
const WHEELS: &str = "target/python";

/// Pythons that PyTorch has packages for at the pinned version come first; 3.9 gets an older one.
const INTERPRETERS: &[&str] = &["python3", "python3.13", "python3.12", "python3.11", "python3.10", "python3.14"];
const WELL_SERVED: std::ops::RangeInclusive<u32> = 310..=314;
const OLDEST: u32 = 309;

/// A virtual environment that holds everything in a list of requirements.
pub(crate) struct PythonEnv {
    folder: PathBuf,
    requirements: &'static str,
}

impl PythonEnv {
    /// Makes the environment, or finds the one made earlier: `STEPSCOPE_VENV`, by default `.venv` in the checkout.
    pub(crate) fn ready() -> Result<Self, String> {
        let folder = std::env::var_os("STEPSCOPE_VENV").map_or_else(|| root().join(".venv"), PathBuf::from);
        Self { folder, requirements: REQUIREMENTS }.made(|_| Ok(()))
    }

    /// One beside it with frameworks that use PyTorch, which finds everything else in the first one.
    pub(crate) fn with_frameworks() -> Result<Self, String> {
        Self::beside(&[Self::ready()?], "frameworks", FRAMEWORKS)
    }

    /// One beside both with inference servers, which finds everything else in them.
    pub(crate) fn with_servers() -> Result<Self, String> {
        Self::beside(&[Self::ready()?, Self::with_frameworks()?], "servers", SERVERS)
    }

    /// One beside the first of `bases`, with what a list has of its own.
    fn beside(bases: &[Self], name: &str, requirements: &'static str) -> Result<Self, String> {
        let mut folder = bases[0].folder.clone().into_os_string();
        folder.push(format!("-{name}"));
        Self { folder: folder.into(), requirements }.made(|environment| {
            let packages: Result<Vec<_>, _> = bases.iter().rev().map(Self::packages).collect();
            let lines: String = packages?.iter().map(|packages| format!("{}\n", packages.display())).collect();
            let link = environment.packages()?.join("stepscope-base.pth");
            std::fs::write(&link, lines).map_err(|error| format!("cannot write {}: {error}", link.display()))
        })
    }

    /// Where its packages lie.
    fn packages(&self) -> Result<PathBuf, String> {
        let script = "import sysconfig; print(sysconfig.get_path('purelib'))";
        let printed = child::read(self.command("python").args(["-c", script]));
        let path = printed.and_then(|printed| String::from_utf8(printed).ok());
        path.map(|path| path.trim().into()).ok_or_else(|| format!("{} does not run", self.folder.display()))
    }

    fn made(self, prepare: impl FnOnce(&Self) -> Result<(), String>) -> Result<Self, String> {
        let requirements = self.requirements;
        let wanted = std::fs::read_to_string(root().join(requirements))
            .map_err(|error| format!("cannot read {requirements}: {error}"))?;
        if std::fs::read_to_string(self.stamp()).is_ok_and(|installed| installed == wanted) {
            return Ok(self);
        }
        self.make()?;
        prepare(&self)?;
        self.install_requirements()?;
        std::fs::write(self.stamp(), wanted).map_err(|error| format!("cannot write the stamp: {error}"))?;
        Ok(self)
    }

    /// Where `program` of the environment lies.
    pub(crate) fn program(&self, program: &str) -> PathBuf {
        self.folder.join("bin").join(program)
    }

    /// `program` of the environment, to be run in the checkout.
    pub(crate) fn command(&self, program: &str) -> Command {
        let programs = self.folder.join("bin");
        let mut command = Command::new(self.program(program));
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(programs).chain(std::env::split_paths(&inherited));
        command.current_dir(root()).env("VIRTUAL_ENV", &self.folder).env_remove("PYTHONHOME").env_remove("PYTHONPATH");
        // Without its bytecode, PyTorch would be compiled anew at each of the tests' many starts.
        command.env_remove("PYTHONDONTWRITEBYTECODE");
        command.env("PATH", std::env::join_paths(path).expect("the checkout's path has no colon"));
        command
    }

    /// Builds the wheel from the checkout, once, with these arguments for cargo, and installs it.
    pub(crate) fn install_stepscope(&self, arguments: &[String]) -> Result<(), String> {
        static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
        BUILT.get_or_init(|| self.build_wheel(arguments)).clone()?;
        let install = ["install", "--no-index", "--no-deps", "--force-reinstall", "--find-links", WHEELS, "stepscope"];
        child::run(self.pip().args(install))
    }

    fn build_wheel(&self, arguments: &[String]) -> Result<(), String> {
        // A wheel of another version, left from earlier, would be as good a match.
        let _ = std::fs::remove_dir_all(root().join(WHEELS));
        let build = ["wheel", "--verbose", "--no-build-isolation", "--no-deps", "--wheel-dir", WHEELS, "."];
        let arguments = format!("--config-settings=build-args={}", arguments.join(" "));
        child::run(self.pip().args(build).arg(arguments))
    }

    fn pip(&self) -> Command {
        let mut command = self.command("python");
        command.args(["-m", "pip", "--disable-pip-version-check"]);
        command
    }

    /// Where it is written down what was installed.
    fn stamp(&self) -> PathBuf {
        self.folder.join("stepscope-requirements.txt")
    }

    fn make(&self) -> Result<(), String> {
        if self.folder.join("bin/python").exists() { Ok(()) } else { make(&self.folder) }
    }

    fn install_requirements(&self) -> Result<(), String> {
        println!("\nInstalling what {} lists; the first time, PyTorch is a download of a few GB.", self.requirements);
        let install = ["install", "--no-compile", "--progress-bar=off", "--requirement", self.requirements];
        // What the servers' packages ask for does not fit the PyTorch that is tested: that list is whole.
        let alone = if self.requirements == SERVERS { &["--no-deps"][..] } else { &[] };
        child::run(self.pip().args(install).args(alone))
            .map_err(|error| format!("{error}\nhint: is there a network, and room for 6 GB on the disk?"))
    }
}

/// Makes an empty environment.
pub(crate) fn make(folder: &Path) -> Result<(), String> {
    let interpreter = find_interpreter()?;
    child::run(Command::new(&interpreter).args(["-m", "venv"]).arg(folder)).map_err(|error| {
        // Half an environment would be taken for a whole one next time. What cannot be removed is seen then.
        let _ = std::fs::remove_dir_all(folder);
        format!("{error}\nhint: on Debian and Ubuntu, `apt install python3-venv`")
    })
}

/// A Python to make the environment with: `PYTHON` when that is set, else the first good one in `PATH`.
fn find_interpreter() -> Result<PathBuf, String> {
    if let Some(chosen) = std::env::var_os("PYTHON") {
        let chosen = PathBuf::from(chosen);
        return match version(&chosen) {
            Some(version) if version >= OLDEST => Ok(chosen),
            Some(_) => Err(format!("Python 3.9 or newer is needed, PYTHON is older: {}", chosen.display())),
            None => Err(format!("PYTHON does not run: {}", chosen.display())),
        };
    }
    let found: Vec<(PathBuf, u32)> = INTERPRETERS
        .iter()
        .map(PathBuf::from)
        .filter_map(|name| version(&name).map(|version| (name, version)))
        .collect();
    let well_served = found.iter().find(|(_, version)| WELL_SERVED.contains(version));
    let usable = || found.iter().find(|(_, version)| *version >= OLDEST);
    let best = well_served.or_else(usable).map(|(name, _)| name.clone());
    best.ok_or_else(|| "no Python 3.9 or newer in PATH\nhint: install one, or name it: PYTHON=/path/to/python3".into())
}

/// The interpreter's version, 3.11 as 311; `None` when it does not run.
fn version(interpreter: &Path) -> Option<u32> {
    let script = "import sys; print(sys.version_info[0] * 100 + sys.version_info[1])";
    let printed = child::read(Command::new(interpreter).args(["-c", script]))?;
    String::from_utf8(printed).ok()?.trim().parse().ok()
}
