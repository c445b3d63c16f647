//! Which store an address is of, and which object there.

use crate::chunks::read_range;
use crate::error::{Fault, StoreError};
use crate::listing::Listings;
use crate::runtime::{process, wait};
use crate::{Metadata, providers};
use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, ObjectStoreScheme};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use url::{Position, Url};

/// How addresses begin.
const SCHEMES: [&str; 10] = ["s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https"];

/// Whether `path` is an address in a store.
pub fn is_remote(path: &Path) -> bool {
    path.to_str().and_then(|text| text.split_once("://")).is_some_and(|(scheme, _)| SCHEMES.contains(&scheme))
}

/// A bucket, a container, or a web server.
pub(crate) struct Store {
    /// The beginning of the addresses of all that it holds: `s3://bucket`.
    pub(crate) base: String,
    pub(crate) objects: Box<dyn ObjectStore>,
    pub(crate) listings: Listings,
}

impl Store {
    pub(crate) fn told(&self, error: &object_store::Error) -> io::Error {
        StoreError::of(error, &self.base).into()
    }
}

/// An object of a store, or what the names of several begin with.
#[derive(Clone)]
pub(crate) struct Location {
    pub(crate) store: Arc<Store>,
    pub(crate) object: ObjectPath,
}

/// An address in its parts.
#[derive(PartialEq, Eq, Debug)]
struct Address {
    scheme: ObjectStoreScheme,
    base: String,
    object: ObjectPath,
}

impl Location {
    /// That of an address; `None` of what is on disk.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        let Some(text) = path.to_str().filter(|_| is_remote(path)) else { return Ok(None) };
        let Address { scheme, base, object } = Address::parse(text)?;
        let process = process()?;
        let mut stores = process.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.get(&base) {
            return Ok(Some(Self { store: store.clone(), object }));
        }
        let objects = providers::build(&scheme, &base)?;
        let store = Arc::new(Store { base: base.clone(), objects, listings: Listings::default() });
        stores.insert(base, store.clone());
        Ok(Some(Self { store, object }))
    }

    /// Whether the address is that of one object, which it says itself that one may read.
    pub(crate) fn is_signed(&self) -> bool {
        self.object.as_ref().is_empty() && Url::parse(&self.store.base).is_ok_and(|url| is_signed(&url))
    }

    /// What is there: an object, or a folder of objects.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        if let Some(known) = self.store.listings.known(&self.object) {
            return known.ok_or_else(|| self.not_found());
        }
        if self.is_signed() || !self.object.as_ref().is_empty() {
            match self.head() {
                Ok(meta) => return Ok(metadata_of(&meta)),
                Err(error) if error.kind() != io::ErrorKind::NotFound || self.is_signed() => return Err(error),
                Err(_) => {}
            }
        }
        let listing = match self.store.listings.listed(self) {
            // Most web servers list nothing.
            Err(_) if self.store.base.starts_with("http") => return Err(self.not_found()),
            listing => listing?,
        };
        listing.of(&self.object).ok_or_else(|| self.not_found())
    }

    /// What stands directly below this folder, by name.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let listing = self.store.listings.listed(self)?;
        let names = listing.names(&self.object);
        if names.is_empty() { Err(self.not_found()) } else { Ok(names) }
    }

    /// The object as the store describes it.
    pub(crate) fn object_meta(&self) -> io::Result<ObjectMeta> {
        match self.store.listings.object(&self.object) {
            Some(known) => known.ok_or_else(|| self.not_found()),
            None => self.head(),
        }
    }

    fn head(&self) -> io::Result<ObjectMeta> {
        if let Some(known) = self.store.listings.head(&self.object) {
            return Ok(known);
        }
        let Self { store, object } = self.clone();
        let meta = wait(async move {
            match store.objects.head(&object).await {
                // An address that is signed for reading is so for nothing else. And what refuses HEAD does not say why.
                Err(error) if store.base.contains('?') || is_refused(&error) => {
                    let options = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
                    store.objects.get_opts(&object, options).await.map(|result| result.meta)
                }
                result => result,
            }
            .map_err(|error| store.told(&error))
        })?;
        self.store.listings.keep_head(&self.object, &meta);
        Ok(meta)
    }

    /// All bytes of the object.
    pub(crate) fn bytes(&self) -> io::Result<Bytes> {
        if matches!(self.store.listings.object(&self.object), Some(None)) {
            return Err(self.not_found());
        }
        let Self { store, object } = self.clone();
        wait(async move {
            let read = async { store.objects.get(&object).await?.bytes().await }.await;
            read.map_err(|error| store.told(&error))
        })
    }

    /// A range of the object, which is still what is `known` of it.
    pub(crate) fn range(self, known: &Metadata, range: Range<u64>) -> io::Result<Bytes> {
        let (len, version) = (known.len, known.version.clone());
        wait(async move { read_range(&self, len, version.as_deref(), range).await.map_err(io::Error::from) })
    }

    fn not_found(&self) -> io::Error {
        StoreError::new(Fault::NotFound, &self.store.base, "").into()
    }
}

/// Whether a store does not want to answer who asks: S3 says 400 where credentials are over.
fn is_refused(error: &object_store::Error) -> bool {
    use object_store::Error;
    matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. })
        || error.to_string().contains("status code: 400")
}

/// What is known of an object.
pub(crate) fn metadata_of(meta: &ObjectMeta) -> Metadata {
    let version = meta.e_tag.clone().or_else(|| meta.version.clone());
    Metadata { is_folder: false, len: meta.size, modified: Some(meta.last_modified.into()), version }
}

impl Address {
    fn parse(text: &str) -> io::Result<Self> {
        let wrong = |detail: String| io::Error::from(StoreError::new(Fault::Address, text, detail));
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        if !scheme.starts_with("http") {
            // Names of objects are taken as they are, with `#`, `?` and `%`.
            let (bucket, object) = rest.split_once('/').unwrap_or((rest, ""));
            let base = format!("{scheme}://{bucket}");
            let url = Url::parse(&base).map_err(|error| wrong(error.to_string()))?;
            let (scheme, _) = ObjectStoreScheme::parse(&url).map_err(|error| wrong(error.to_string()))?;
            let object = ObjectPath::parse(object).map_err(|error| wrong(error.to_string()))?;
            return Ok(Self { scheme, base, object });
        }
        let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
        if is_signed(&url) {
            // Who has the address may read this object, and nothing else: neither the cloud's credentials nor its lists count. It
            // is asked for as it was signed: `+` is not `%2B` for all servers.
            let base = url[..Position::AfterQuery].to_string();
            return Ok(Self { scheme: ObjectStoreScheme::Http, base, object: ObjectPath::default() });
        }
        let (scheme, object) = ObjectStoreScheme::parse(&url).map_err(|error| wrong(error.to_string()))?;
        let query = url.query().filter(|query| !query.is_empty());
        // Without `=` it is a pattern.
        if scheme != ObjectStoreScheme::Http && query.is_some_and(|query| query.contains('=')) {
            return Err(wrong("what stands behind its `?` is no signature".into()));
        }
        // What of the path is no name of an object is the bucket.
        let segments = |path: &str| path.split('/').filter(|part| !part.is_empty()).count();
        let bucket = url.path().split('/').filter(|part| !part.is_empty());
        let bucket: Vec<&str> = bucket.take(segments(url.path()).saturating_sub(object.parts_count())).collect();
        let base = format!("{}/{}", &url[..Position::BeforePath], bucket.join("/"));
        let query = query.filter(|_| scheme == ObjectStoreScheme::Http).map(|query| format!("/?{query}"));
        let base = base.trim_end_matches('/').to_string() + &query.unwrap_or_default();
        Ok(Self { scheme, base, object })
    }
}

/// What addresses that S3, Azure and Google sign have behind their `?`: all of one line.
const SIGNATURES: [&[&str]; 5] = [
    &["X-Amz-Signature"],
    &["AWSAccessKeyId", "Signature"],
    &["sv", "sig"],
    &["X-Goog-Signature"],
    &["GoogleAccessId", "Signature"],
];

/// Whether a web address says by itself who may read.
fn is_signed(url: &Url) -> bool {
    let has = |name: &&str| url.query_pairs().any(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_empty());
    SIGNATURES.iter().any(|names| names.iter().all(has))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_paths() {
        let is = |text: &str| is_remote(Path::new(text));
        assert!(is("s3://b") && is("gs://b/k") && is("az://c/k") && is("https://host/t.json.gz"));
        assert!(!is("runs/a") && !is("s3:/b") && !is("ftp://host/t") && !is("-") && !is("/s3://b"));
    }

    #[test]
    fn an_address_is_a_store_and_an_object() {
        let parts = |text: &str| Address::parse(text).map(|found| (found.base, found.object.to_string())).unwrap();
        let is = |text: &str, base: &str, object: &str| assert_eq!(parts(text), (base.into(), object.into()), "{text}");
        is("s3://runs/a b/rank=0/x#1?%20.json", "s3://runs", "a b/rank=0/x#1?%20.json");
        is("s3://runs", "s3://runs", "");
        is("s3://runs/a/", "s3://runs", "a");
        is("abfss://c@acc.dfs.core.windows.net/a/b", "abfss://c@acc.dfs.core.windows.net", "a/b");
        is("https://acc.blob.core.windows.net/c/a/b", "https://acc.blob.core.windows.net/c", "a/b");
        is("https://s3.eu-west-1.amazonaws.com/runs/a", "https://s3.eu-west-1.amazonaws.com/runs", "a");
        is("https://runs.s3.eu-west-1.amazonaws.com/a", "https://runs.s3.eu-west-1.amazonaws.com", "a");
        is("http://h:80/a%20b/t.json", "http://h", "a b/t.json");
        is("http://h:81/t.json?key=1", "http://h:81/?key=1", "t.json");
        assert!(Address::parse("s3://runs/a//b").is_err());
    }

    #[test]
    fn a_signed_address_is_an_object_of_a_web_server_with_its_signature() {
        let is = |text: &str| {
            let (scheme, object) = (ObjectStoreScheme::Http, ObjectPath::default());
            assert_eq!(Address::parse(text).unwrap(), Address { scheme, base: text.into(), object });
        };
        let signed = "X-Amz-Credential=K%2F20261130%2Feu-west-1%2Fs3%2Faws4_request&X-Amz-Signature=0a1b";
        is(&format!("https://runs.s3.eu-west-1.amazonaws.com/a%20b/t%2B1.json.gz?{signed}"));
        is(&format!("https://s3.eu-west-1.amazonaws.com/runs/t+1.json?{signed}"));
        is("https://runs.s3.amazonaws.com/t.json?AWSAccessKeyId=K&Signature=a%2Bb%3D&Expires=1");
        is("https://acc.blob.core.windows.net/c/a/t.json?sv=2024-11-04&sr=b&sp=r&sig=a%2Fb%3D");
        is("https://storage.googleapis.com/runs/t.json?X-Goog-Expires=9&X-Goog-Signature=0a");
        is("https://storage.googleapis.com/runs/t.json?GoogleAccessId=a%40b&Expires=1&Signature=c");
    }

    #[test]
    fn what_is_no_signature_is_not_dropped() {
        let no = |text: &str| assert!(Address::parse(text).is_err(), "{text}");
        no("https://runs.s3.eu-west-1.amazonaws.com/a?versionId=1");
        no("https://acc.blob.core.windows.net/c/a?sv=2024-11-04");
        no("https://acc.blob.core.windows.net/c/a?sv=2024-11-04&sig=");
        let host = "https://runs.s3.eu-west-1.amazonaws.com";
        for pattern in ["a?", "rank?.json"] {
            assert_eq!(Address::parse(&format!("{host}/{pattern}")).unwrap().base, host);
        }
    }
}
