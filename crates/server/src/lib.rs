//! What `stepscope view` serves: runs and their results over HTTP, as `docs/http-api.md` says, and the pages that show
//! them. It computes no number: those are the engine's.
//!
//! Runs are read in the background; requests work on what was read last and never wait for a reading, nor a quick one
//! for a long one. Nothing that a request says changes anything.

mod app_state;
mod assets;
mod cache;
mod comparison;
mod discover;
mod editor;
mod failure;
mod guard;
mod loaded_run;
mod options;
mod packing;
mod pool;
mod query;
mod routes;
mod run;
mod run_tables;
mod runs;
mod serve;
mod shown;
mod source_files;
mod sql_process;
mod table_page;
mod token;
mod waiting_queries;

pub use editor::Editor;
pub use options::Options;
pub use serve::{Running, ServeError, serve};
