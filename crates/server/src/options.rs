//! What is served, to whom, and how.

use crate::editor::Editor;
use crate::token;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use stepscope_engine::{self as engine, OpenOptions};

/// What `serve` is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Runs, trace files, and folders that hold several of them.
    pub inputs: Vec<PathBuf>,
    /// How the files of an input become one run.
    pub open: OpenOptions,
    /// Where to listen; port 0 is any that is free.
    pub address: SocketAddr,
    /// The token that requests must know; a random one without.
    pub token: Option<String>,
    /// Where the token of a port that was named is kept for the next server there; `None` is nowhere.
    pub state_folder: Option<PathBuf>,
    /// Names of hosts, beside this machine's own, under which requests may come in: that of a proxy.
    pub allowed_hosts: Vec<String>,
    /// Whether pages of others may show these in a frame, as notebooks do.
    pub allows_frames: bool,
    /// Folders below which source files may be shown; `None` is the working directory.
    pub source_roots: Option<Vec<PathBuf>>,
    /// What opens a source line in an editor.
    pub editor: Option<Editor>,
    /// The program that runs SQL; without it there are no queries.
    pub sql_program: Option<PathBuf>,
    /// The program `stepscope`, which queries call for analyses.
    pub stepscope_program: Option<PathBuf>,
    /// How often inputs are looked at for what is new; `None` is never.
    pub watch_every: Option<Duration>,
    /// The shortest time between two readings of a run that is still being recorded. It is longer where reading takes
    /// long.
    pub reread_after: Duration,
}

impl Options {
    /// Serves `inputs` on this machine alone, on any free port.
    pub fn new(inputs: Vec<PathBuf>) -> Self {
        Self {
            inputs,
            open: OpenOptions::default(),
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            token: None,
            state_folder: token::state_folder(),
            allowed_hosts: Vec::new(),
            allows_frames: false,
            source_roots: None,
            editor: None,
            sql_program: engine::find_sql(),
            stepscope_program: engine::find_stepscope(),
            watch_every: Some(Duration::from_secs(1)),
            reread_after: Duration::from_secs(2),
        }
    }
}
