//! Files as the engine reads them, wherever they lie: in ranges, and each as it was when its table was opened.

use crate::error::{HINT_FOLLOWS, STORE};
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::object_store::ObjectStoreUrl;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    OBJECT_STORE_COALESCE_DEFAULT, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    coalesce_ranges,
};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use stepscope_store::{Metadata, StoreError};

/// How paths of this disk begin, as the engine knows them.
const DISK: &str = "file:";

/// What the engine calls the store of all files.
pub(crate) fn url() -> ObjectStoreUrl {
    ObjectStoreUrl::parse("stepscope://files").expect("it is an address")
}

/// The file at `path` as the engine knows it: its address, its length, and its version in a store, since workers are told
/// nothing else.
///
/// # Errors
/// When it is not there, or its store refuses.
pub(crate) fn known(path: &Path) -> Result<ObjectMeta> {
    let failed = |error: std::io::Error| exec_datafusion_err!("cannot read {}: {error}", path.display());
    let whole = stepscope_store::canonicalize(path).map_err(failed)?;
    let metadata = stepscope_store::metadata(&whole).map_err(failed)?;
    let address = match whole.to_str() {
        Some(text) if stepscope_store::is_remote(&whole) => text.replacen("://", ":/", 1),
        Some(text) if cfg!(windows) => format!("{DISK}/{}", text.trim_start_matches(r"\\?\").replace('\\', "/")),
        Some(text) => format!("{DISK}{text}"),
        None => return Err(failed(std::io::Error::other("its name is not in UTF-8"))),
    };
    let version = metadata.version.unwrap_or_default().replace('"', "");
    let location = ObjectPath::parse(format!("{address}@{}.{version}", metadata.len));
    Ok(ObjectMeta {
        location: location.map_err(|error| failed(std::io::Error::other(error)))?,
        last_modified: metadata.modified.unwrap_or(SystemTime::UNIX_EPOCH).into(),
        size: metadata.len,
        e_tag: None,
        version: None,
    })
}

/// Where a file is, and what is known of it.
fn found(location: &ObjectPath) -> Option<(PathBuf, Metadata)> {
    let (address, known) = location.as_ref().rsplit_once('@')?;
    let (len, version) = known.split_once('.')?;
    let (scheme, rest) = address.split_once(":/")?;
    let path: PathBuf = match scheme {
        "file" if cfg!(windows) => rest.into(),
        "file" => format!("/{rest}").into(),
        _ => format!("{scheme}://{rest}").into(),
    };
    let version = match version.strip_prefix("W/") {
        Some(weak) => format!("W/\"{weak}\""),
        None => format!("\"{version}\""),
    };
    let version = stepscope_store::is_remote(&path).then_some(version).filter(|version| version != "\"\"");
    Some((path, Metadata { is_folder: false, len: len.parse().ok()?, modified: None, version }))
}

/// All files, by what [`known`] calls them.
#[derive(Debug)]
pub(crate) struct Files;

impl Files {
    async fn read(location: &ObjectPath, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>, Error> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Generic { store: STORE, source };
        let (path, known) = found(location).ok_or_else(|| no_file(location))?;
        let read = tokio::task::spawn_blocking(move || {
            let each = ranges.into_iter().map(|range| stepscope_store::read_range(&path, &known, range));
            let read: std::io::Result<Vec<Bytes>> = each.collect();
            read.map_err(|error| {
                let hint = StoreError::in_error(&error).and_then(StoreError::hint);
                let hint = hint.map(|hint| format!("{HINT_FOLLOWS}{hint}")).unwrap_or_default();
                format!("cannot read {}: {error}{hint}", path.display())
            })
        });
        read.await.map_err(|error| failed(error.into()))?.map_err(|error| failed(error.into()))
    }
}

fn no_file(location: &ObjectPath) -> Error {
    Error::NotFound { path: location.to_string(), source: "this names no file of a table".into() }
}

fn only_reads(operation: &str) -> Error {
    Error::NotImplemented { operation: operation.into(), implementer: "tables, which are only read".into() }
}

impl fmt::Display for Files {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("files")
    }
}

#[async_trait]
impl ObjectStore for Files {
    async fn get_opts(&self, location: &ObjectPath, options: GetOptions) -> Result<GetResult, Error> {
        let (_, Metadata { len, .. }) = found(location).ok_or_else(|| no_file(location))?;
        let range = match options.range {
            None => 0..len,
            Some(GetRange::Bounded(range)) => range.start.min(len)..range.end.min(len),
            Some(GetRange::Offset(start)) => start.min(len)..len,
            Some(GetRange::Suffix(wanted)) => len.saturating_sub(wanted)..len,
        };
        let bytes = if options.head { Vec::new() } else { Self::read(location, vec![range.clone()]).await? };
        let payload = GetResultPayload::Stream(stream::iter(bytes.into_iter().map(Ok)).boxed());
        let meta = ObjectMeta {
            location: location.clone(),
            last_modified: SystemTime::UNIX_EPOCH.into(),
            size: len,
            e_tag: None,
            version: None,
        };
        Ok(GetResult { payload, meta, range, attributes: Default::default() })
    }

    async fn get_ranges(&self, location: &ObjectPath, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, Error> {
        if location.as_ref().starts_with(DISK) {
            return Self::read(location, ranges.to_vec()).await;
        }
        // A request costs more than bytes that nobody needs.
        let of_range = |range| async { Ok(Self::read(location, vec![range]).await?.remove(0)) };
        coalesce_ranges(ranges, of_range, OBJECT_STORE_COALESCE_DEFAULT).await
    }

    async fn put_opts(&self, _: &ObjectPath, _: PutPayload, _: PutOptions) -> Result<PutResult, Error> {
        Err(only_reads("writing"))
    }

    async fn put_multipart_opts(
        &self,
        _: &ObjectPath,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>, Error> {
        Err(only_reads("writing"))
    }

    fn delete_stream(
        &self,
        _: BoxStream<'static, Result<ObjectPath, Error>>,
    ) -> BoxStream<'static, Result<ObjectPath, Error>> {
        stream::iter([Err(only_reads("removing"))]).boxed()
    }

    fn list(&self, _: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta, Error>> {
        stream::iter([Err(only_reads("listing"))]).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&ObjectPath>) -> Result<ListResult, Error> {
        Err(only_reads("listing"))
    }

    async fn copy_opts(&self, _: &ObjectPath, _: &ObjectPath, _: CopyOptions) -> Result<(), Error> {
        Err(only_reads("copying"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_again_by_what_the_engine_calls_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a b@1.x é%20#?.parquet");
        std::fs::write(&file, "0123456789").unwrap();
        let meta = known(&file).unwrap();
        let (path, metadata) = found(&meta.location).unwrap();
        assert_eq!((path, metadata.len, metadata.version), (file.canonicalize().unwrap(), 10, None));
        let of = |location: &str| {
            let (path, metadata) = found(&ObjectPath::parse(location).unwrap()).unwrap();
            (path.display().to_string(), metadata.len, metadata.version.unwrap_or_default())
        };
        assert_eq!(of("s3:/b/a@b/x@7.9f-2"), ("s3://b/a@b/x".into(), 7, "\"9f-2\"".into()));
        assert_eq!(of("https:/h/c/x@7.W/9f"), ("https://h/c/x".into(), 7, "W/\"9f\"".into()));
        assert_eq!(of("gs:/b/x@7."), ("gs://b/x".into(), 7, String::new()));
        assert!(found(&ObjectPath::parse("tmp/x").unwrap()).is_none());
    }

    #[tokio::test]
    async fn ranges_are_read_and_a_file_that_was_changed_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        std::fs::write(&file, "0123456789").unwrap();
        let location = known(&file).unwrap().location;
        assert_eq!(Files.get_ranges(&location, &[1..3, 8..10]).await.unwrap(), ["12", "89"]);
        let tail = GetOptions { range: Some(GetRange::Suffix(4)), ..GetOptions::default() };
        assert_eq!(Files.get_opts(&location, tail).await.unwrap().bytes().await.unwrap(), "6789");
        std::fs::write(&file, "01234").unwrap();
        let error = Files.get_ranges(&location, &[1..3, 4..5]).await.unwrap_err().to_string();
        assert!(error.contains("was written while it was read") && error.contains(file.to_str().unwrap()), "{error}");
    }
}
