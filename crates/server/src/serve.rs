//! Starting and ending a server.

use crate::app_state::{AppState, MAX_COMPARISON_BYTES};
use crate::cache::Cache;
use crate::options::Options;
use crate::pool::Pool;
use crate::routes;
use crate::runs::Runs;
use crate::sql_process::SqlPrograms;
use crate::token::Token;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Threads that answer; work that takes time has threads of its own.
const THREADS: usize = 2;
/// How long an end waits for work under way.
const PATIENCE: Duration = Duration::from_millis(200);

/// Why a server could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nothing can listen there.
    #[error("cannot listen: {source}: {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system has no threads or random bytes to give.
    #[error("cannot start: {source}")]
    Start {
        /// What the system said.
        source: io::Error,
    },
}

impl ServeError {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                Some("another program listens there: name another port, or none for any that is free")
            }
            Self::Listen { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("ports below 1024 are the system's: name a higher one")
            }
            _ => None,
        }
    }
}

/// A server at work. It ends when this is dropped.
pub struct Running {
    /// The address to open, with the token.
    pub url: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// What requests must know.
    pub token: String,
    pool: Pool,
    runtime: Option<Runtime>,
}

impl Running {
    /// How many analyses, reports and other work that may take long were begun so far.
    pub fn long_work_begun(&self) -> u64 {
        self.pool.long_started()
    }

    /// Ends it; who is still connected is cut off.
    pub fn stop(self) {
        drop(self);
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token is a secret.
        out.debug_struct("Running").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(PATIENCE);
        }
    }
}

/// Serves what `options` name, on threads of its own. Runs are read meanwhile.
///
/// # Errors
/// [`ServeError`].
pub fn serve(options: Options) -> Result<Running, ServeError> {
    let start = |source: io::Error| ServeError::Start { source };
    let listen = |source| ServeError::Listen { address: options.address, source };
    let listener = TcpListener::bind(options.address).map_err(listen)?;
    listener.set_nonblocking(true).map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    // A port that nobody named is another the next time.
    let state_folder = options.state_folder.filter(|_| options.address.port() != 0);
    let token = match (options.token, state_folder) {
        (Some(token), _) => Ok(Token::given(token)),
        (None, Some(folder)) => Token::load_or_create(&folder, address.port()),
        (None, None) => Token::random(),
    };
    let token = token.map_err(|error| start(io::Error::other(error.to_string())))?;
    let roots = options.source_roots.unwrap_or_else(|| std::env::current_dir().into_iter().collect());
    let sql = SqlPrograms {
        sql: options.sql_program,
        stepscope: options.stepscope_program,
        opened_with: options.open.spelled(),
        memory: options.open.max_memory,
    };
    let state = Arc::new(AppState {
        runs: Runs::start(options.inputs, options.open, options.watch_every, options.reread_after).map_err(start)?,
        pool: Pool::new(),
        comparisons: Cache::new(MAX_COMPARISON_BYTES),
        token,
        allowed_hosts: options.allowed_hosts.iter().map(|host| host.to_lowercase()).collect(),
        allows_frames: options.allows_frames,
        source_roots: roots.iter().filter_map(|root| root.canonicalize().ok()).collect(),
        editor: options.editor,
        sql,
        waiting_queries: Arc::default(),
    });
    let (token, pool) = (state.token.as_str().to_string(), state.pool.clone());
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(THREADS).thread_name("stepscope http").enable_io().enable_time().build();
    let runtime = runtime.map_err(start)?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener).map_err(listen)?
    };
    let router = routes::router(state);
    runtime.spawn(async move {
        // It ends with the runtime.
        let _ = axum::serve(listener, router).await;
    });
    let url = format!(
        "http://{}/?token={}",
        shown(address),
        form_urlencoded::byte_serialize(token.as_bytes()).collect::<String>()
    );
    Ok(Running { url, address, token, pool, runtime: Some(runtime) })
}

/// An address that a browser can open: one that means every host becomes this one.
fn shown(address: SocketAddr) -> String {
    if address.ip().is_unspecified() { format!("127.0.0.1:{}", address.port()) } else { address.to_string() }
}
