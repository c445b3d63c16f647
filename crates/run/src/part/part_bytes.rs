//! The bytes of a part as the Parquet library reads them, on disk and in a store.

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::Path;
use stepscope_store::StoredFile;

/// A part that is open.
pub(super) struct PartBytes {
    file: StoredFile,
    len: u64,
}

pub(super) fn open(path: &Path) -> io::Result<PartBytes> {
    let file = stepscope_store::open(path)?;
    let len = file.len()?;
    Ok(PartBytes { file, len })
}

impl PartBytes {
    /// Another reader of the same file.
    pub(super) fn file(&self) -> io::Result<StoredFile> {
        self.file.try_clone()
    }
}

impl Length for PartBytes {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for PartBytes {
    type T = BufReader<StoredFile>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut file = self.file()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(BufReader::new(file))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let at = start + bytes.len() as u64;
            let left = length - bytes.len();
            if self.file.append_at(&mut bytes, left, at)? == 0 {
                return Err(ParquetError::EOF(format!("expected {length} bytes, found {}", bytes.len())));
            }
        }
        bytes.truncate(length);
        Ok(bytes.into())
    }
}
