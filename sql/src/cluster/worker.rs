//! A process that answers its part of queries: `stepscope-sql worker`.

use super::analysis::{AnalysisCodec, AnalysisProgram};
use super::connection::{ALIVE_EVERY, ALIVE_WITHIN, Connection, HEADER_BYTES, read};
use super::runs::RunsOfQuery;
use super::workers::version;
use crate::arguments::WorkerArguments;
use crate::error::QueryError;
use crate::functions;
use crate::session::runtime_env;
use datafusion::execution::SessionState;
use datafusion_distributed::{DistributedExt, Worker, WorkerQueryContext};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::net::{TcpListener, lookup_host};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};

/// Serves until it is ended.
///
/// # Errors
/// When it may not, or cannot, listen.
pub(crate) async fn serve(arguments: &WorkerArguments) -> Result<(), QueryError> {
    let connection = Connection::of(&arguments.security)?;
    let identity = match (&arguments.tls_certificate, &arguments.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(Identity::from_pem(read(certificate, "certificate")?, read(key, "key")?))
        }
        _ => None,
    };
    let at = address(&arguments.listen).await?;
    if identity.is_none() && arguments.security.tls_authority.is_some() {
        let error = QueryError::new("a worker that speaks TLS shows a certificate");
        return Err(error.hint("give --tls-certificate and --tls-key, too"));
    }
    if identity.is_none() && !at.ip().is_loopback() {
        let error = QueryError::new("other machines are answered with TLS alone").at(arguments.listen.clone());
        return Err(error.hint("give --tls-certificate, --tls-key and --tls-authority, or listen at 127.0.0.1"));
    }
    let cannot_listen =
        |error: std::io::Error| QueryError::new(format!("cannot listen: {error}")).at(arguments.listen.clone());
    let listener = TcpListener::bind(at).await.map_err(cannot_listen)?;
    let at = listener.local_addr().map_err(cannot_listen)?;
    let cannot_serve = |error: tonic::transport::Error| QueryError::new(format!("cannot serve: {error}"));
    let mut server = Server::builder()
        .http2_keepalive_interval(Some(ALIVE_EVERY))
        .http2_keepalive_timeout(Some(ALIVE_WITHIN))
        .http2_max_header_list_size(HEADER_BYTES);
    if let Some(identity) = identity {
        let what = |error| QueryError::new(format!("the certificate or its key cannot be used: {error}"));
        server = server.tls_config(ServerTlsConfig::new().identity(identity)).map_err(what)?;
    }
    let token = connection.token.clone();
    let sessions = Sessions { connection, stepscope: arguments.stepscope.clone() };
    let worker = Worker::from_session_builder(move |query| {
        let sessions = sessions.clone();
        async move { sessions.of(query) }
    });
    let worker = worker.with_runtime_env(runtime_env(arguments.memory)?).with_version(version());
    let service = InterceptedService::new(worker.into_worker_server(), token.check());
    println!("listening at {at}");
    // Where nobody reads what it says, it serves nevertheless.
    let _ = std::io::stdout().flush();
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    tokio::select! {
        served = server.add_service(service).serve_with_incoming(incoming) => served.map_err(cannot_serve),
        // What it works at, and the analyses that it runs, end with it.
        () = told_to_end() => Ok(()),
    }
}

/// Waits for Ctrl-C, or for what ends services.
async fn told_to_end() {
    #[cfg(unix)]
    if let Ok(mut terminated) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return,
            _ = terminated.recv() => return,
        }
    }
    // Without signals it serves until it is killed.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Makes what a part of a query runs in.
#[derive(Clone)]
struct Sessions {
    connection: Connection,
    stepscope: PathBuf,
}

impl Sessions {
    fn of(&self, query: WorkerQueryContext) -> Result<SessionState, datafusion::common::DataFusionError> {
        let builder = query.builder.with_distributed_option_extension_from_headers::<RunsOfQuery>(&query.headers)?;
        let builder = builder
            .with_distributed_channel_resolver(self.connection.clone())
            .with_distributed_user_codec(AnalysisCodec);
        let mut state = AnalysisProgram::known_to(builder, &self.stepscope).build();
        let told = state.config_options().extensions.get::<RunsOfQuery>().map(RunsOfQuery::runs);
        functions::register(&mut state, &told.unwrap_or_default())?;
        Ok(state)
    }
}

async fn address(listen: &str) -> Result<SocketAddr, QueryError> {
    let wrong = || QueryError::new(format!("no address to listen at: {listen}")).hint("write HOST:PORT");
    let mut found = lookup_host(listen).await.map_err(|_| wrong())?;
    found.next().ok_or_else(wrong)
}
