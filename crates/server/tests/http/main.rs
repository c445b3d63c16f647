//! The server on a real socket.

mod load;
mod queries;
mod results;
mod runs;
mod security;
mod served;
#[cfg(unix)]
mod sql;
mod timeline;
mod too_large;
