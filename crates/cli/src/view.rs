//! `stepscope view`: runs in the browser.

use crate::Ending;
use crate::failure::Failure;
use crate::opening::{JoinArguments, MemoryArgument};
use crate::output::print;
use crate::plural::plural;
use clap::Args;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use stepscope_engine::check_is_there;
use stepscope_server::{Editor, Options, Running, ServeError, serve};

/// Look at runs and traces in the browser
///
/// Serves pages on this machine until Ctrl-C; only who has the printed address can open them. Nothing is changed and
/// nothing leaves the machine. What is still being recorded, and what appears in a folder, is followed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  stepscope view stepscope-runs/20260101-120000-train
  stepscope view trace.json.gz
  stepscope view traces/                             rank0.json, rank1.json …: the ranks of a job are one run
  stepscope view before/ after/                      two runs, to compare
  stepscope view stepscope-runs/                     every run in a folder
  stepscope view run --no-browser --port 8000        on a host that you reach by ssh -L 8000:localhost:8000")]
pub(crate) struct ViewArguments {
    /// Run folders, trace files, or folders that hold several
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    #[command(flatten)]
    joined: JoinArguments,
    #[command(flatten)]
    memory: MemoryArgument,
    /// Listen on this port; 0 is any that is free
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Listen on this address of the machine: others than 127.0.0.1 can be reached from outside
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// Print the address and open no browser
    #[arg(long)]
    no_browser: bool,
    /// Answer also under this name, as of a proxy
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Let other pages show this one in a frame, as notebooks do
    #[arg(long)]
    allow_frame: bool,
    /// Show source files below this folder too, not only below the working directory
    #[arg(long, value_name = "FOLDER")]
    source: Vec<PathBuf>,
    /// What opens source lines: vscode, cursor, idea, or an address with {file} and {line}
    #[arg(long, value_name = "EDITOR", default_value = "vscode")]
    editor: Editor,
}

/// Carries `stepscope view` out.
pub(crate) fn view(arguments: ViewArguments) -> Ending {
    arguments.runs.iter().try_for_each(|path| check_is_there(path))?;
    let opens_browser = !arguments.no_browser && has_browser();
    let runs = arguments.runs.len();
    let ending = signals()?;
    let running = serve(options(arguments)?)?;
    // The address alone goes to standard output, where a program finds it.
    print(&format!("{}\n", running.url))?;
    eprintln!("stepscope: serving {} · Ctrl-C ends it", plural(runs as u64, "input"));
    if opens_browser && let Err(error) = open::that_detached(&running.url) {
        eprintln!("stepscope: no browser could be opened ({error}): open the address yourself");
    }
    ending.wait(running);
    Ok(0)
}

fn options(arguments: ViewArguments) -> Result<Options, Failure> {
    if let Some(missing) = arguments.source.iter().find(|folder| !folder.is_dir()) {
        return Err(Failure::new("there is no such folder").at(missing.display()).hint("--source names a folder"));
    }
    let working = std::env::current_dir().into_iter();
    Ok(Options {
        address: SocketAddr::new(arguments.host, arguments.port),
        allowed_hosts: arguments.allow_host,
        allows_frames: arguments.allow_frame,
        source_roots: Some(working.chain(arguments.source).collect()),
        editor: Some(arguments.editor),
        open: arguments.memory.with(arguments.joined.options()),
        ..Options::new(arguments.runs)
    })
}

/// Whether there is a screen to open a browser on, or somebody who opens it elsewhere.
fn has_browser() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(target_os = "linux") || ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"].into_iter().any(is_set)
}

/// Waits for the wish to end.
#[cfg(unix)]
struct Signals(signal_hook::iterator::Signals);

#[cfg(unix)]
fn signals() -> Result<Signals, Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM]);
    signals.map(Signals).map_err(|error| Failure::new(format!("cannot wait for Ctrl-C: {error}")))
}

#[cfg(unix)]
impl Signals {
    fn wait(mut self, running: Running) {
        let _ = self.0.forever().next();
        running.stop();
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
fn signals() -> Result<Signals, Failure> {
    Ok(Signals)
}

#[cfg(not(unix))]
impl Signals {
    fn wait(self, _running: Running) {
        loop {
            std::thread::park();
        }
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        let failure = match &error {
            ServeError::Listen { address, source } => {
                let words = source.to_string();
                let words = words.split(" (os error").next().unwrap_or_default().to_lowercase();
                Self::new(format!("cannot listen: {words}")).at(address)
            }
            ServeError::Start { .. } => Self::new(error.to_string()),
        };
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
