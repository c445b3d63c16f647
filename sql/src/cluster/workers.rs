//! Which workers answer, and whether they are those that answered before.

use super::connection::Connection;
use crate::error::QueryError;
use datafusion::common::{DataFusionError, exec_datafusion_err};
use datafusion_distributed::{GetWorkerInfoRequest, WorkerResolver, grpc::create_worker_client};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use url::Url;

/// How long a worker may take to say that it is there.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// The workers that answer, each with what tells its processes apart.
pub(super) type Answering = BTreeMap<Url, String>;

/// Which answer, and why the others do not.
pub(super) struct Found {
    pub(super) answering: Answering,
    gone: Vec<(Url, String)>,
}

/// All that are named.
pub(super) struct Workers {
    named: Vec<Url>,
    connection: Connection,
    answering: Mutex<Answering>,
    /// Whether they were looked for and not asked anything since.
    is_fresh: AtomicBool,
}

/// What a worker that was asked for says.
enum Said {
    /// It is there; what tells its process from another one.
    Here(String),
    /// Why it does not answer.
    Gone(String),
}

impl Workers {
    /// # Errors
    /// When a name is no address.
    pub(super) fn named(names: &[String], connection: &Connection) -> Result<Self, QueryError> {
        let mut named = names.iter().map(|name| connection.url(name)).collect::<Result<Vec<_>, _>>()?;
        named.sort();
        named.dedup();
        Ok(Self {
            named,
            connection: connection.clone(),
            answering: Mutex::default(),
            is_fresh: AtomicBool::new(false),
        })
    }

    /// Those that answered when they were last looked for.
    pub(super) fn answering(&self) -> Answering {
        self.answering.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks for all, and says which do not answer any more, or never did. They are left out until they answer.
    ///
    /// # Errors
    /// As [`Workers::found`].
    pub(super) async fn look(&self) -> Result<Answering, QueryError> {
        let before = self.answering();
        let Found { answering, gone } = self.found().await?;
        for (url, why) in gone {
            // Once, when it is found out.
            if before.is_empty() || before.contains_key(&url) {
                eprintln!("warning: worker {} does not answer, and is left out: {why}", address(&url));
            }
        }
        self.is_fresh.store(true, Ordering::Relaxed);
        Ok(answering)
    }

    /// The same before each question, the first of which needs no look.
    pub(super) async fn look_again(&self) -> Result<Answering, QueryError> {
        if self.is_fresh.swap(false, Ordering::Relaxed) {
            return Ok(self.answering());
        }
        let answering = self.look().await?;
        self.is_fresh.store(false, Ordering::Relaxed);
        Ok(answering)
    }

    /// Looks for all.
    ///
    /// # Errors
    /// When one is of another version or has another token, or none answers.
    pub(super) async fn found(&self) -> Result<Found, QueryError> {
        let said = join_all(self.named.iter().map(|url| self.ask(url))).await;
        let mut found = Answering::new();
        let mut gone = Vec::new();
        for (url, said) in self.named.iter().zip(said) {
            match said? {
                Said::Here(process) => drop(found.insert(url.clone(), process)),
                Said::Gone(why) => gone.push((url.clone(), why)),
            }
        }
        self.answering.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&found);
        if found.is_empty() {
            let all = self.named.iter().map(address).collect::<Vec<_>>().join(", ");
            let why = gone.first().map_or("", |(_, why)| why.as_str());
            let error = QueryError::new(format!("no worker answers: {why}")).at(all);
            let is_other_protocol = ["InvalidContentType", "frame", "HTTP"].iter().any(|word| why.contains(word));
            return Err(error.hint(match is_other_protocol {
                true => "one side speaks TLS and the other does not: see --tls-authority",
                false => "start them with stepscope-sql worker --listen HOST:PORT",
            }));
        }
        Ok(Found { answering: found, gone })
    }

    async fn ask(&self, url: &Url) -> Result<Said, QueryError> {
        let mut client = create_worker_client(self.connection.channel(url)?);
        let asked = tokio::time::timeout(LOOK_TIMEOUT, client.get_worker_info(GetWorkerInfoRequest {})).await;
        let info = match asked {
            Err(_) => return Ok(Said::Gone(format!("no answer in {} s", LOOK_TIMEOUT.as_secs()))),
            Ok(Err(error)) => {
                return match status(&error) {
                    Some(status) if status.code() == tonic::Code::Unauthenticated => {
                        Err(QueryError::new("the worker has another token").at(address(url)))
                    }
                    Some(status) => Ok(Said::Gone(cause(status))),
                    None => Ok(Said::Gone(error.message().into_owned())),
                };
            }
            Ok(Ok(info)) => info,
        };
        let (version, process) = info.version.split_once(' ').unwrap_or((info.version.as_str(), ""));
        if version != env!("CARGO_PKG_VERSION") {
            let what = format!("the worker is stepscope-sql {version}, this is {}", env!("CARGO_PKG_VERSION"));
            return Err(QueryError::new(what).at(address(url)).hint("install the same version everywhere"));
        }
        Ok(Said::Here(process.to_string()))
    }
}

/// What a worker says of itself: its version, and what no other process says.
pub(super) fn version() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{} {}-{}", env!("CARGO_PKG_VERSION"), std::process::id(), now.as_nanos())
}

/// `HOST:PORT`.
pub(super) fn address(url: &Url) -> String {
    url.as_str().split_once("://").map_or(url.as_str(), |(_, address)| address).trim_end_matches('/').to_string()
}

/// What the network, or the other side, said.
fn status(error: &DataFusionError) -> Option<&tonic::Status> {
    match error {
        DataFusionError::External(error) => error.downcast_ref(),
        DataFusionError::Context(_, inner) => status(inner),
        DataFusionError::Shared(inner) => status(inner),
        _ => None,
    }
}

/// The innermost cause: the outer ones say that there was an error.
fn cause(status: &tonic::Status) -> String {
    let mut innermost: &dyn std::error::Error = status;
    while let Some(inner) = innermost.source() {
        innermost = inner;
    }
    if std::ptr::eq(innermost as *const dyn std::error::Error as *const (), status as *const _ as *const ()) {
        return status.message().to_string();
    }
    innermost.to_string()
}

/// Those that answer, for the engine.
pub(super) struct Resolver(pub(super) Arc<Workers>);

impl WorkerResolver for Resolver {
    fn get_urls(&self) -> Result<Vec<Url>, DataFusionError> {
        let urls: Vec<Url> = self.0.answering().into_keys().collect();
        if urls.is_empty() { Err(exec_datafusion_err!("no worker answers")) } else { Ok(urls) }
    }
}
