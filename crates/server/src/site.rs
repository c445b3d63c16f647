//! What all requests share.

use crate::editor::Editor;
use crate::pool::Pool;
use crate::runs::Runs;
use crate::token::Token;
use std::path::PathBuf;
use std::sync::Arc;

/// A server's state.
pub(crate) struct Site {
    pub(crate) runs: Arc<Runs>,
    pub(crate) pool: Pool,
    pub(crate) token: Token,
    /// In lower case.
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) allows_frames: bool,
    /// Folders below which source files may be shown, without links in their names.
    pub(crate) source_roots: Vec<PathBuf>,
    pub(crate) editor: Option<Editor>,
}
