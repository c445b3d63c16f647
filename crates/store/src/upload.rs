//! Writing objects.

use crate::location::Location;
use crate::runtime::wait;
use bytes::Bytes;
use object_store::{ObjectStoreExt, PutPayload, WriteMultipart};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The length of the parts in which a file is sent, and how many are on their way at once.
const PART_BYTES: usize = 8 << 20;
const AT_ONCE: usize = 4;

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
        let sent = async {
            let upload = store.objects.put_multipart(&object).await.map_err(|error| store.told(&error))?;
            let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
            loop {
                let mut part = Vec::with_capacity(PART_BYTES);
                match (&mut file).take(PART_BYTES as u64).read_to_end(&mut part) {
                    Ok(0) => break,
                    Ok(_) => upload.put(part.into()),
                    Err(error) => {
                        drop(upload.abort().await);
                        return Err(error);
                    }
                }
                upload.wait_for_capacity(AT_ONCE).await.map_err(|error| store.told(&error))?;
            }
            upload.finish().await.map(drop).map_err(|error| store.told(&error))
        };
        let sent = sent.await;
        store.listings.forget(&object);
        sent
    })
}
