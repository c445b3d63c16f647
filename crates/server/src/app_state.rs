//! What all requests share.

use crate::cache::Cache;
use crate::comparison::Comparison;
use crate::editor::Editor;
use crate::pool::Pool;
use crate::runs::Runs;
use crate::sql_process::SqlPrograms;
use crate::token::Token;
use crate::waiting_queries::WaitingQueries;
use std::path::PathBuf;
use std::sync::Arc;
use stepscope_engine::Envelope;

/// Bytes of comparisons that are kept.
pub(crate) const MAX_COMPARISON_BYTES: usize = 128 << 20;

/// A server's state.
pub(crate) struct AppState {
    pub(crate) runs: Arc<Runs>,
    pub(crate) pool: Pool,
    /// Runs side by side: a page asks for each several times, ordered and cut differently.
    pub(crate) comparisons: Cache<Comparison, Envelope>,
    pub(crate) token: Token,
    /// In lower case.
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) allows_frames: bool,
    /// Folders below which source files may be shown, without links in their names.
    pub(crate) source_roots: Vec<PathBuf>,
    pub(crate) editor: Option<Editor>,
    pub(crate) sql: SqlPrograms,
    pub(crate) waiting_queries: Arc<WaitingQueries>,
}
