//! Why a store does not give what is asked of it.

use object_store::client::{HttpError, HttpErrorKind};
use std::error::Error;
use std::io::{self, ErrorKind};

/// What is wrong, as far as somebody can do something about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The address is none.
    Address,
    /// Nothing says who asks.
    NoCredentials,
    /// The store does not know who asks, or their credentials are over.
    Rejected,
    /// Who asks may not do this.
    Denied,
    /// There is no such bucket or container.
    NoBucket,
    /// There is no such object.
    NotFound,
    /// The store wants fewer requests.
    Throttled,
    /// No server answers.
    Unreachable,
    /// An answer ended before its end, again and again.
    Cut,
    /// The object was written while it was read.
    Changed,
    /// Anything else.
    Other,
}

/// Parts of the addresses at which the clouds give keys to machines, containers and web identities.
const GIVES_KEYS: [&str; 7] = [
    "/latest/api/token",
    "/meta-data/iam/security-credentials",
    "//169.254.170.",
    "AssumeRoleWithWebIdentity",
    "/computeMetadata/",
    "/metadata/identity/",
    "/oauth2/",
];

/// What a store said, as [`io::Error`]s have it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct StoreError {
    /// What is wrong.
    pub fault: Fault,
    /// What was asked: `s3://bucket`.
    store: String,
    /// Whether the address says by itself who may.
    is_signed: bool,
    /// The store's own words, on one line.
    detail: String,
}

impl StoreError {
    pub(crate) fn new(fault: Fault, store: &str, detail: impl Into<String>) -> Self {
        // What an address is signed with is a secret, and long.
        let (store, is_signed) = match store.split_once('?') {
            Some((address, _)) => (address.match_indices('/').nth(2).map_or(address, |(at, _)| &address[..at]), true),
            None => (store, false),
        };
        Self { fault, store: store.into(), is_signed, detail: detail.into() }
    }

    pub(crate) fn of(error: &object_store::Error, store: &str) -> Self {
        let text = error.to_string();
        if GIVES_KEYS.iter().any(|part| text.contains(part)) {
            let detail = format!("the service that gives them to this machine answers: {}", in_short(&text));
            return Self::new(Fault::NoCredentials, store, detail);
        }
        Self::new(fault_of(error), store, in_short(&text))
    }

    /// What was said of `error`, when it is what a store said.
    pub fn in_error(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    fn sentence(&self) -> String {
        let Self { fault, store, detail, .. } = self;
        match fault {
            Fault::Address => format!("this is no address of an object: {detail}"),
            Fault::NoCredentials if detail.is_empty() => format!("there are no credentials for {store}"),
            Fault::NoCredentials => format!("there are no credentials for {store}: {detail}"),
            Fault::Rejected => format!("{store} does not accept the credentials"),
            Fault::Denied => format!("{store} denies access"),
            Fault::NoBucket => format!("there is no bucket or container {store}"),
            Fault::NotFound => "there is no such object".into(),
            Fault::Throttled => format!("{store} answers that it gets too many requests"),
            Fault::Unreachable => format!("{store} cannot be reached: {detail}"),
            Fault::Cut => format!("the connection to {store} broke again and again: {detail}"),
            Fault::Changed => "the object was written while it was read".into(),
            Fault::Other => format!("{store} answers: {detail}"),
        }
    }

    /// What a person can do.
    pub fn hint(&self) -> Option<&'static str> {
        let is = |scheme: &str| self.store.starts_with(scheme);
        let has = |part: &str| self.store.contains(part);
        Some(match self.fault {
            Fault::Rejected | Fault::Denied if self.is_signed => {
                "ask for a new signed address: a signature is for one object, and for some time"
            }
            Fault::NoCredentials | Fault::Rejected
                if is("s3") || has(".amazonaws.com") || has(".cloudflarestorage.com") =>
            {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile that has them with AWS_PROFILE, or set \
                 AWS_SKIP_SIGNATURE=true where anybody may read"
            }
            Fault::NoCredentials | Fault::Rejected if is("gs") => {
                "run `gcloud auth application-default login`, name a key with GOOGLE_APPLICATION_CREDENTIALS, or set \
                 GOOGLE_SKIP_SIGNATURE=true where anybody may read"
            }
            Fault::Rejected
                if is("http") && ![".windows.net", ".microsoft.com", ".cloudflarestorage.com"].into_iter().any(has) =>
            {
                "check the address: nothing else says who asks"
            }
            Fault::NoCredentials | Fault::Rejected => {
                "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or AZURE_STORAGE_SAS_TOKEN, or \
                 AZURE_SKIP_SIGNATURE=true where anybody may read"
            }
            Fault::Denied => "ask for the right to list and read it, and to write where something is written",
            Fault::NoBucket => "check its name, its region, and the endpoint",
            Fault::NotFound => "check the address; a run is a folder, other profilers' traces are files",
            Fault::Throttled => {
                "try again later; STEPSCOPE_STORE_RETRY_S says for how many seconds requests are repeated"
            }
            Fault::Unreachable => "check the network, the endpoint and the proxy",
            Fault::Cut => "check the network; STEPSCOPE_STORE_RETRY_S says for how many seconds requests are repeated",
            Fault::Changed => "open it again when nobody writes it",
            Fault::Address => "an address is one such as s3://BUCKET/KEY",
            Fault::Other => return None,
        })
    }
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        let kind = match error.fault {
            Fault::NotFound | Fault::NoBucket => ErrorKind::NotFound,
            Fault::NoCredentials | Fault::Rejected | Fault::Denied => ErrorKind::PermissionDenied,
            Fault::Address => ErrorKind::InvalidInput,
            Fault::Cut => ErrorKind::UnexpectedEof,
            Fault::Unreachable => ErrorKind::NotConnected,
            Fault::Throttled | Fault::Changed | Fault::Other => ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

fn fault_of(error: &object_store::Error) -> Fault {
    use object_store::Error;
    let text = error.to_string();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"]) {
        return Fault::NoBucket;
    }
    if says(&["Missing AccessKeyId", "Missing SecretAccessKey", "Account must be specified"]) {
        return Fault::NoCredentials;
    }
    if says(&["ExpiredToken", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthenticationFailed"]) {
        return Fault::Rejected;
    }
    let is_busy = says(&["SlowDown", "ServerBusy", "ateLimitExceeded", "status code: 429", "status code: 503"]);
    match error {
        // Google also says this with the status of what is denied.
        Error::PermissionDenied { .. } | Error::Generic { .. } if is_busy => Fault::Throttled,
        Error::NotFound { .. } => Fault::NotFound,
        Error::Precondition { .. } => Fault::Changed,
        Error::PermissionDenied { .. } => Fault::Denied,
        Error::Unauthenticated { .. } => Fault::Rejected,
        Error::InvalidPath { .. } => Fault::Address,
        // What is refused of a listing has no kind of its own.
        _ if says(&["status code: 403"]) => Fault::Denied,
        _ if says(&["status code: 401"]) => Fault::Rejected,
        _ => match http_kind(error) {
            Some(HttpErrorKind::Connect) => Fault::Unreachable,
            Some(
                HttpErrorKind::Request | HttpErrorKind::Timeout | HttpErrorKind::Interrupted | HttpErrorKind::Decode,
            ) => Fault::Cut,
            _ => Fault::Other,
        },
    }
}

/// What the connection says, where it is at fault.
fn http_kind(error: &object_store::Error) -> Option<HttpErrorKind> {
    let causes = std::iter::successors(error.source(), |cause: &&(dyn Error + 'static)| (*cause).source());
    causes.filter_map(|cause| cause.downcast_ref::<HttpError>()).map(HttpError::kind).next()
}

/// One line, without what is the same in all of them.
fn in_short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = line.rsplit_once(" - ").map_or(line.as_str(), |(_, told)| told);
    told.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_what_is_wrong_and_what_to_do() {
        let error: io::Error = StoreError::new(Fault::NoCredentials, "s3://runs", "").into();
        assert_eq!(
            (error.to_string().as_str(), error.kind()),
            ("there are no credentials for s3://runs", ErrorKind::PermissionDenied)
        );
        assert!(
            StoreError::in_error(&error).and_then(StoreError::hint).is_some_and(|hint| hint.contains("AWS_PROFILE"))
        );
        assert_eq!(StoreError::in_error(&ErrorKind::NotFound.into()), None);
    }

    #[test]
    fn what_an_address_is_signed_with_is_not_repeated() {
        let base = "https://runs.s3.amazonaws.com/t.json?X-Amz-Signature=0a1b";
        for (fault, said) in [(Fault::Denied, "denies access"), (Fault::Rejected, "does not accept the credentials")] {
            let error = StoreError::new(fault, base, "");
            assert_eq!(error.to_string(), format!("https://runs.s3.amazonaws.com {said}"));
            assert!(error.hint().is_some_and(|hint| hint.contains("a new signed address")));
        }
    }

    #[test]
    fn what_a_store_says_is_on_one_line() {
        let source = "Error performing GET http://h/b/k in 3ms, after 2 retries - Server returned\n 500: oops".into();
        let error = object_store::Error::Generic { store: "S3", source };
        let told = StoreError::of(&error, "s3://b");
        assert_eq!(told.to_string(), "s3://b answers: Server returned 500: oops");
        let source = "status 503 Service Unavailable: SlowDown".into();
        assert_eq!(
            StoreError::of(&object_store::Error::Generic { store: "S3", source }, "s3://b").fault,
            Fault::Throttled
        );
        let source = "status code: 403 Forbidden: <Code>userRateLimitExceeded</Code>".into();
        let error = object_store::Error::PermissionDenied { path: "k".into(), source };
        assert_eq!(StoreError::of(&error, "gs://b").fault, Fault::Throttled);
        let source = "Error performing GET http://h/b/429 in 429ms - status code: 500 Internal Server Error".into();
        let error = object_store::Error::Generic { store: "S3", source };
        assert_eq!(StoreError::of(&error, "s3://b").fault, Fault::Other);
        let source = "Server returned non-2xx status code: 403 Forbidden: AccessDenied".into();
        let error = object_store::Error::Generic { store: "S3", source };
        assert_eq!(StoreError::of(&error, "s3://b").fault, Fault::Denied);
        let source = "<Code>NoSuchBucket</Code>".into();
        let error = object_store::Error::NotFound { path: "k".into(), source };
        assert_eq!(StoreError::of(&error, "s3://b").fault, Fault::NoBucket);
    }
}
