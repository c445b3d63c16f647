//! What `stepscope mcp` serves: runs and their results as tools of the Model Context Protocol, over standard input and
//! output. It computes no number: those are the engine's.
//!
//! ```text
//! client ─▶ serve ─▶ tools ─▶ runs        which run, opened once
//!                      ├────▶ verdict     a run in 2 KB
//!                      ├────▶ explain     one answer in full
//!                      ├────▶ pages       rows of any analysis, with how many there are
//!                      ├────▶ sql         rows of any question
//!                      └────▶ comparison  two runs
//! ```
//!
//! Every answer is one line of JSON, and every failure of a tool says what, where and what to do.

mod comparison;
mod cut;
mod doubts;
mod explain;
mod failure;
mod pages;
mod runs;
mod schema;
mod serve;
mod slowest;
mod sql;
#[cfg(test)]
mod tests;
mod tools;
mod verdict;

pub use serve::{Options, ServeError, serve};
