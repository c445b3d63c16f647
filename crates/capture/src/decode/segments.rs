//! Where the segments of a capture are read from.

use crate::layout::HEADER_BYTES;
use std::io::Result;

/// The segments of a capture.
#[derive(Debug)]
pub(crate) enum Segments {
    /// All bytes of the file, as they were at one moment.
    InMemory(Vec<u8>),
    /// The file, which is read a piece at a time.
    #[cfg(unix)]
    OnDisk(std::fs::File),
    /// What is first read as the first bytes are, and then as the second ones.
    #[cfg(test)]
    Growing(std::sync::Mutex<Vec<u8>>, Vec<u8>),
}

impl Segments {
    /// The `len` bytes from byte `at` behind the header on, or as many as there are; in `buffer` where they are not in
    /// memory.
    pub(super) fn read<'a>(&'a self, at: usize, len: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        match self {
            Self::InMemory(bytes) => {
                let rest = bytes.get(HEADER_BYTES.saturating_add(at)..).unwrap_or_default();
                Ok(&rest[..len.min(rest.len())])
            }
            #[cfg(test)]
            Self::Growing(early, whole) => {
                let early = std::mem::replace(&mut *early.lock().expect("one thread reads"), whole.clone());
                *buffer = early.get(HEADER_BYTES + at..).unwrap_or_default().to_vec();
                buffer.truncate(len);
                Ok(buffer)
            }
            #[cfg(unix)]
            Self::OnDisk(file) => {
                buffer.resize(len, 0);
                let filled = read_until_full(file, (HEADER_BYTES + at) as u64, buffer)?;
                Ok(&buffer[..filled])
            }
        }
    }
}

/// Fills `bytes` from byte `at` of `file` on; how many there are.
#[cfg(unix)]
fn read_until_full(file: &std::fs::File, at: u64, bytes: &mut [u8]) -> Result<usize> {
    use std::os::unix::fs::FileExt;

    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
