//! The server: messages in and out, and the threads that the tools' work is done on.

use crate::failure::Failure;
use crate::runs::Runs;
use crate::tools;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, serve_server};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use stepscope_engine::{EngineError, OpenOptions};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// What is served, and how runs are opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The runs that were named; each is one run.
    pub runs: Vec<PathBuf>,
    /// Whether no other file may be opened than those and what is below them.
    pub only: bool,
    /// How runs are opened.
    pub open: OpenOptions,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A run that was named is not there.
    #[error(transparent)]
    Run(#[from] EngineError),
    /// The system gives no threads.
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
    /// The client does not speak the protocol.
    #[error("the client does not begin as the protocol says: {0}")]
    Client(String),
}

/// Serves standard input and output until the client closes the input.
///
/// # Errors
/// When a run is not there, or the client does not speak the protocol.
pub fn serve(options: Options) -> Result<(), ServeError> {
    let server = Server::of(options)?;
    let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("stepscope mcp").enable_all().build()?;
    let ended = runtime.block_on(async {
        match serve_server(server, rmcp::transport::stdio()).await {
            Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| ServeError::Client(error.to_string())),
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(ServeError::Client(error.to_string())),
        }
    });
    // What still works for nobody is not waited for.
    runtime.shutdown_background();
    ended
}

/// The tools of some runs.
struct Server {
    runs: Arc<Runs>,
    tools: Vec<Tool>,
    /// Turns for work: the rest waits, and is not begun when its client no longer wants it.
    turns: Arc<Semaphore>,
}

impl Server {
    fn of(options: Options) -> Result<Self, EngineError> {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        Ok(Self {
            runs: Arc::new(Runs::of(options)?),
            tools: tools::list(),
            turns: Arc::new(Semaphore::new((processors / 2).max(1))),
        })
    }

    /// What a tool answers; it is computed on a thread of its own, so that other messages are answered meanwhile.
    async fn answer(&self, request: CallToolRequestParams) -> Result<String, Failure> {
        let turn = self.turns.clone().acquire_owned().await.expect("it is never closed");
        let runs = self.runs.clone();
        let working = spawn_blocking(move || {
            let _turn = turn;
            tools::call(&runs, &request.name, request.arguments.unwrap_or_default())
        });
        working.await.unwrap_or_else(|error| {
            let failure = Failure::new("internal error: this call failed, the server continues");
            Err(failure.hint(format!("please report it with the call and what the server wrote: {error}")))
        })
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let server = Implementation::new("stepscope", env!("CARGO_PKG_VERSION"));
        let config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.with_server_info(server).with_instructions(self.runs.instructions())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answer = tokio::select! {
            answer = self.answer(request) => answer,
            // Nobody reads this answer.
            () = context.ct.cancelled() => Err(Failure::new("the call was cancelled")),
        };
        let result = match answer {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(failure) => CallToolResult::error(vec![ContentBlock::text(failure.to_json())]),
        };
        Ok(result.into())
    }
}
