//! Writing objects.

use crate::location::{Location, Store};
use crate::runtime::wait;
use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The length of the parts in which a file is sent, and how many are on their way at once.
const PART_BYTES: usize = 8 << 20;
const AT_ONCE: usize = 4;
/// For how long parts of a file that could not be sent whole are waited for, and then the store is asked to forget them.
const ABORTING: Duration = Duration::from_secs(10);

/// Writes `bytes` as the file at `path`, of which no half is ever seen in a store.
///
/// # Errors
/// When the disk or store refuses.
pub fn write(path: &Path, bytes: Vec<u8>) -> io::Result<()> {
    let Some(Location { store, object }) = Location::of(path)? else { return std::fs::write(path, bytes) };
    wait(async move {
        let result = store.objects.put(&object, PutPayload::from(Bytes::from(bytes))).await;
        store.listings.forget(&object);
        result.map(drop).map_err(|error| store.told(&error))
    })
}

/// Sends the file at `from` to the address `to`, in parts where it is long.
///
/// # Errors
/// When the file cannot be read, or the store refuses.
pub fn upload(from: &Path, to: &Path) -> io::Result<()> {
    let mut file = File::open(from)?;
    if file.metadata()?.len() <= PART_BYTES as u64 {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        return write(to, bytes);
    }
    let Some(Location { store, object }) = Location::of(to)? else { return std::fs::copy(from, to).map(drop) };
    wait(async move {
        let sent = send_in_parts(&store, &object, file).await;
        store.listings.forget(&object);
        sent
    })
}

/// Sends a file in parts. Where that fails, none of them stays at the store, where nobody would see it and somebody pay for it.
async fn send_in_parts(store: &Store, object: &ObjectPath, file: File) -> io::Result<()> {
    let told = |error| store.told(&error);
    let mut upload = store.objects.put_multipart(object).await.map_err(told)?;
    let mut parts = JoinSet::new();
    let mut sent = send_parts(store, &mut *upload, &mut parts, file).await;
    if sent.is_ok() {
        sent = upload.complete().await.map(drop).map_err(told);
    }
    if sent.is_err() {
        // Parts that are on their way would come after the store has forgotten the others. A store that is away does not hear of
        // it: the error is what it said first.
        let arrived = async { while parts.join_next().await.is_some() {} };
        drop(timeout(ABORTING, arrived).await);
        parts.shutdown().await;
        drop(timeout(ABORTING, upload.abort()).await);
    }
    sent
}

async fn send_parts(
    store: &Store,
    upload: &mut dyn MultipartUpload,
    parts: &mut JoinSet<object_store::Result<()>>,
    mut file: File,
) -> io::Result<()> {
    loop {
        let mut part = Vec::with_capacity(PART_BYTES);
        let is_end = (&mut file).take(PART_BYTES as u64).read_to_end(&mut part)? == 0;
        if !is_end {
            parts.spawn(upload.put_part(part.into()));
        }
        while parts.len() >= AT_ONCE || is_end && !parts.is_empty() {
            if let Some(sent) = parts.join_next().await {
                sent.map_err(io::Error::other)?.map_err(|error| store.told(&error))?;
            }
        }
        if is_end {
            return Ok(());
        }
    }
}
