//! Connections between a client and workers, and between workers: with a token, and with TLS where they leave the machine.

use crate::arguments::SecurityArguments;
use crate::error::QueryError;
use async_trait::async_trait;
use datafusion::common::{DataFusionError, exec_datafusion_err};
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{ChannelResolver, WorkerChannel};
use http::HeaderValue;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;
use tonic::transport::{Certificate, Channel, ClientTlsConfig};
use tonic::{Request, Status};
use tower::util::MapRequest;
use url::{Host, Url};

/// The variable that may have the token.
const TOKEN: &str = "STEPSCOPE_CLUSTER_TOKEN";
/// Fewer letters can be guessed.
const TOKEN_LETTERS: usize = 16;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A worker whose machine is gone says nothing: it is asked this often whether it is there.
pub(super) const ALIVE_EVERY: Duration = Duration::from_secs(10);
/// And has this long to answer: one that computes on all of its threads comes to it late.
pub(super) const ALIVE_WITHIN: Duration = Duration::from_secs(120);
/// The runs of a query are told in a header, with their folders.
pub(super) const HEADER_BYTES: u32 = 16 << 20;

/// What a worker is told with each request.
#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    /// That of the file that is named, else of the environment.
    ///
    /// # Errors
    /// When there is none, or a weak one.
    pub(super) fn of(file: Option<&Path>) -> Result<Self, QueryError> {
        let hint = format!("write one with: head -c 32 /dev/urandom | base64 > token, or set {TOKEN}");
        let text = match file {
            Some(file) => read(file, "token")?,
            None => std::env::var(TOKEN).unwrap_or_default(),
        };
        let token = text.trim();
        if token.is_empty() {
            return Err(QueryError::new("workers need a token: --token-file FILE").hint(hint));
        }
        if token.len() < TOKEN_LETTERS || !token.bytes().all(|letter| letter.is_ascii_graphic()) {
            let what = format!("the token must have {TOKEN_LETTERS} letters or more, without spaces");
            return Err(QueryError::new(what).hint(hint));
        }
        Ok(Self(token.to_string()))
    }

    fn header(&self) -> HeaderValue {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.0)).expect("its letters are those of a header");
        value.set_sensitive(true);
        value
    }

    /// Lets requests through that have it.
    pub(super) fn check(&self) -> impl FnMut(Request<()>) -> Result<Request<()>, Status> + Clone + use<> {
        let expected = self.header();
        move |request| {
            let told = request.metadata().get("authorization").map(|told| told.as_encoded_bytes());
            let is_right = told.is_some_and(|told| told.ct_eq(expected.as_bytes()).into());
            if is_right { Ok(request) } else { Err(Status::unauthenticated("this is not the token of the worker")) }
        }
    }
}

/// How workers are reached.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) token: Token,
    /// The certificate of who vouches for workers, as PEM.
    authority: Option<String>,
    channels: Arc<Mutex<HashMap<Url, BoxCloneSyncChannel>>>,
}

impl Connection {
    /// # Errors
    /// When a file cannot be read, or there is no token.
    pub(super) fn of(arguments: &SecurityArguments) -> Result<Self, QueryError> {
        let authority = arguments.tls_authority.as_deref().map(|file| read(file, "certificate")).transpose()?;
        Ok(Self { token: Token::of(arguments.token_file.as_deref())?, authority, channels: Arc::default() })
    }

    /// The address of a worker that is called `HOST:PORT`.
    ///
    /// # Errors
    /// When it is none, or would be reached without TLS on another machine.
    pub(super) fn url(&self, name: &str) -> Result<Url, QueryError> {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        let url = Url::parse(&format!("{scheme}://{name}")).ok();
        let url = url.filter(|url| url.port_or_known_default().is_some() && url.path() == "/" && url.username() == "");
        let Some(url) = url.filter(|_| name.contains(':')) else {
            return Err(QueryError::new(format!("no address of a worker: {name}")).hint("write HOST:PORT"));
        };
        if self.authority.is_none() && !is_loopback(&url) {
            let what = format!("{name} is on another machine, and is reached with TLS alone");
            return Err(QueryError::new(what).hint("give the certificate that workers are checked by: --tls-authority"));
        }
        Ok(url)
    }

    /// A channel to the worker at `url`; it connects, and connects again, when it is used.
    pub(super) fn channel(&self, url: &Url) -> Result<BoxCloneSyncChannel, DataFusionError> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(url) {
            return Ok(channel.clone());
        }
        let wrong = |error: tonic::transport::Error| exec_datafusion_err!("no address of a worker: {url}: {error}");
        let mut endpoint = Channel::from_shared(url.to_string())
            .map_err(|error| exec_datafusion_err!("no address of a worker: {url}: {error}"))?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(ALIVE_EVERY)
            .keep_alive_timeout(ALIVE_WITHIN)
            .http2_max_header_list_size(HEADER_BYTES)
            .tcp_nodelay(true);
        if let Some(authority) = &self.authority {
            let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority));
            endpoint = endpoint.tls_config(tls).map_err(wrong)?;
        }
        let header = self.token.header();
        let told = move |mut request: http::Request<tonic::body::Body>| {
            request.headers_mut().insert(http::header::AUTHORIZATION, header.clone());
            request
        };
        let channel = BoxCloneSyncChannel::new(MapRequest::new(endpoint.connect_lazy(), told));
        channels.insert(url.clone(), channel.clone());
        Ok(channel)
    }
}

#[async_trait]
impl ChannelResolver for Connection {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>, DataFusionError> {
        self.channel(url).map(create_worker_client)
    }
}

/// Whether it is of this machine alone.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|host| host.is_loopback()),
        Some(Host::Ipv4(host)) => host.is_loopback(),
        Some(Host::Ipv6(host)) => host.is_loopback(),
        None => false,
    }
}

/// The text of a file, `what` it has.
pub(super) fn read(file: &Path, what: &str) -> Result<String, QueryError> {
    let failed = |error| QueryError::new(format!("cannot read the {what}: {error}")).at(file.display().to_string());
    std::fs::read_to_string(file).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(authority: Option<&str>) -> Connection {
        let token = Token("0123456789abcdef".to_string());
        Connection { token, authority: authority.map(String::from), channels: Arc::default() }
    }

    #[test]
    fn workers_of_other_machines_are_reached_with_tls_alone() {
        let (plain, secured) = (connection(None), connection(Some("a certificate")));
        assert_eq!(plain.url("127.0.0.1:7700").unwrap().as_str(), "http://127.0.0.1:7700/");
        assert_eq!(plain.url("[::1]:7700").unwrap().as_str(), "http://[::1]:7700/");
        assert_eq!(secured.url("node7:7700").unwrap().as_str(), "https://node7:7700/");
        let refused = plain.url("node7:7700").unwrap_err();
        assert!(refused.what.contains("TLS") && refused.hint.unwrap().contains("--tls-authority"));
        for nothing in ["node7", "a b:1", "user@node7:1", "node7:1/path", ":7700"] {
            assert!(secured.url(nothing).is_err(), "{nothing}");
        }
    }

    #[test]
    fn a_request_without_the_token_is_refused() {
        let mut check = connection(None).token.check();
        let with = |value: &str| {
            let mut request = Request::new(());
            request.metadata_mut().insert("authorization", value.parse().unwrap());
            request
        };
        assert!(check(with("Bearer 0123456789abcdef")).is_ok());
        for other in ["Bearer 0123456789abcdeg", "0123456789abcdef", "Bearer ", ""] {
            assert_eq!(check(with(other)).unwrap_err().code(), tonic::Code::Unauthenticated, "{other}");
        }
        assert!(check(Request::new(())).is_err());
    }
}
