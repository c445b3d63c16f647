//! What a person names as input, as text: a file, or a stream that is decompressed on the way; both are read on all
//! processors.

use crate::ImportError;
use crate::progress::{Counted, Progress};
use crate::stream::SharedStream;
use crate::window::{BLOCK_BYTES, Blocks};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use stepscope_store::StoredFile;

/// Packed within packed (a `.json.gz` in a `.zip`) may go this deep.
const MAX_LAYERS: u32 = 4;
/// The first bytes of packed data.
const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
const ZIP: &[u8] = b"PK\x03\x04";

/// A text and where it comes from.
pub(crate) struct Input<'a> {
    /// Its bytes, in order.
    pub(crate) blocks: Box<dyn Blocks + 'a>,
    /// Its bytes for several readers, unless it is in memory.
    pub(crate) shared: Option<SharedText>,
    /// How it is packed, for messages: `gzip`.
    pub(crate) packing: Option<&'static str>,
}

/// Opens the file at `path`; `-` is standard input. What is read is counted in `progress`.
pub(crate) fn open(path: &Path, progress: &Progress) -> Result<Input<'static>, ImportError> {
    let failed = |source| ImportError::Read { path: path.into(), source };
    if path.as_os_str() == "-" {
        return unpacked(Box::new(io::stdin()), path, 0);
    }
    let mut file = stepscope_store::open(path).map_err(failed)?;
    let mut head = [0; 4];
    let len = read_head(&mut file, &mut head).map_err(failed)?;
    let is_regular = file.is_regular();
    if is_regular {
        progress.add_total(file.len().map_err(failed)?);
    }
    if is_regular && !is_packed(&head[..len]) {
        let file = SharedFile::new(file, progress).map_err(failed)?;
        return Ok(Input { blocks: Box::new(file.from(0)), shared: Some(SharedText::File(file)), packing: None });
    }
    if is_regular && head.starts_with(ZIP) {
        return from_zip(file, path, progress);
    }
    let rest = Counted { source: file, progress: progress.clone() };
    unpacked(Box::new(io::Cursor::new(head[..len].to_vec()).chain(rest)), path, 0)
}

/// The text that `bytes` hold, decompressed.
pub(crate) fn in_memory<'a>(bytes: &'a [u8], path: &Path) -> Result<Input<'a>, ImportError> {
    if is_packed(bytes) {
        let input = unpacked(Box::new(io::Cursor::new(bytes.to_vec())), path, 0)?;
        return Ok(input);
    }
    Ok(Input { blocks: Box::new(bytes), shared: None, packing: None })
}

fn is_packed(head: &[u8]) -> bool {
    [GZIP, ZSTD, ZIP].iter().any(|magic| head.starts_with(magic))
}

/// Fills `head` as far as the data reach.
fn read_head(source: &mut impl Read, head: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < head.len() {
        match source.read(&mut head[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// The text of a stream, whatever it is packed with.
fn unpacked(mut source: Box<dyn Read + Send>, path: &Path, layers: u32) -> Result<Input<'static>, ImportError> {
    let failed = |source| ImportError::Read { path: path.into(), source };
    let mut head = [0; 4];
    let len = match read_head(&mut source, &mut head) {
        Err(error) if layers > 0 => return Err(damaged(path, &error)),
        result => result.map_err(failed)?,
    };
    let whole = io::Cursor::new(head[..len].to_vec()).chain(source);
    let head = &head[..len];
    if layers < MAX_LAYERS && head.starts_with(GZIP) {
        let source = flate2::read::MultiGzDecoder::new(io::BufReader::with_capacity(BLOCK_BYTES, whole));
        let input = unpacked(Box::new(source), path, layers + 1)?;
        return Ok(Input { packing: Some("gzip"), ..input });
    }
    if layers < MAX_LAYERS && head.starts_with(ZSTD) {
        let source = zstd::stream::read::Decoder::new(whole).map_err(failed)?;
        let input = unpacked(Box::new(source), path, layers + 1)?;
        return Ok(Input { packing: Some("zstd"), ..input });
    }
    if head.starts_with(ZIP) {
        let (found, hint) = ("a zip archive in a stream", "unpack it into a file of its own");
        return Err(ImportError::UnknownFormat { path: path.into(), found, hint });
    }
    let mut whole = whole;
    let stream = SharedStream::of(move |writer| writer.read_all(&mut whole));
    Ok(Input { blocks: Box::new(stream.alone_from(0)), shared: Some(SharedText::Stream(stream)), packing: None })
}

fn damaged(path: &Path, error: &io::Error) -> ImportError {
    ImportError::Damaged { path: path.into(), message: error.to_string() }
}

/// The largest file of an archive, the one that a trace would be.
fn from_zip(file: StoredFile, path: &Path, progress: &Progress) -> Result<Input<'static>, ImportError> {
    let broken = |error: zip::result::ZipError| ImportError::Damaged { path: path.into(), message: error.to_string() };
    let mut archive = zip::ZipArchive::new(file).map_err(broken)?;
    let mut largest = None;
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(broken)?;
        if entry.is_file() && largest.is_none_or(|(size, _)| entry.size() > size) {
            largest = Some((entry.size(), index));
        }
    }
    let Some((len, index)) = largest else { return Err(ImportError::Empty { path: path.into() }) };
    // An entry borrows its archive, so both live in a thread of their own.
    let stream = SharedStream::of(move |writer| match archive.by_index(index) {
        Ok(mut entry) => writer.read_all(&mut entry),
        Err(error) => Err(io::Error::other(error)),
    });
    // Counted in decompressed bytes: the archive reads its file as it likes.
    progress.set_total(len);
    let source = Counted { source: stream.alone_from(0).into_read(), progress: progress.clone() };
    let input = unpacked(Box::new(source), path, 1)?;
    Ok(Input { packing: Some("zip"), ..input })
}

/// A text that several threads read at different places.
#[derive(Clone)]
pub(crate) enum SharedText {
    /// A file whose bytes are the text itself.
    File(SharedFile),
    /// A stream, decompressed on the way.
    Stream(SharedStream),
}

impl SharedText {
    /// Its length, when it is known before it was read.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Self::File(file) => Some(file.len()),
            Self::Stream(_) => None,
        }
    }

    /// Where it ends, as far as it was read.
    pub(crate) fn end(&self) -> u64 {
        match self {
            Self::File(file) => file.len(),
            Self::Stream(stream) => stream.end(),
        }
    }

    /// Its bytes from `at` on.
    pub(crate) fn from(&self, at: u64) -> Box<dyn Blocks> {
        match self {
            Self::File(file) => Box::new(file.from(at)),
            Self::Stream(stream) => Box::new(stream.from(at)),
        }
    }

    /// Its bytes from `at` on, for the only reader.
    pub(crate) fn alone_from(&self, at: u64) -> Box<dyn Blocks> {
        match self {
            Self::File(file) => Box::new(file.from(at)),
            Self::Stream(stream) => Box::new(stream.alone_from(at)),
        }
    }

    /// Takes back bytes that were read alone, up to where reading stopped, and that begin at `position`.
    pub(crate) fn remember(&self, position: u64, bytes: &[u8]) {
        if let Self::Stream(stream) = self {
            stream.remember(position, bytes.to_vec());
        }
    }

    /// What is before `position` will not be asked for any more.
    pub(crate) fn forget_before(&self, position: u64) {
        if let Self::Stream(stream) = self {
            stream.forget_before(position);
        }
    }
}

/// A file that several threads read at different places. It is read, not mapped: a mapped file that shrinks would end
/// the process.
#[derive(Clone)]
pub(crate) struct SharedFile {
    file: Arc<StoredFile>,
    len: u64,
    progress: Progress,
    /// Tests: reading from here on fails.
    #[cfg(test)]
    pub(crate) broken_from: u64,
}

impl SharedFile {
    pub(crate) fn new(file: StoredFile, progress: &Progress) -> io::Result<Self> {
        let len = file.len()?;
        let progress = progress.clone();
        Ok(Self {
            file: Arc::new(file),
            len,
            progress,
            #[cfg(test)]
            broken_from: u64::MAX,
        })
    }

    /// Its length when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    #[cfg(not(test))]
    fn append_at(&self, bytes: &mut Vec<u8>, wanted: usize, at: u64) -> io::Result<usize> {
        self.file.append_at(bytes, wanted, at)
    }

    #[cfg(test)]
    fn append_at(&self, bytes: &mut Vec<u8>, wanted: usize, at: u64) -> io::Result<usize> {
        let left = self.broken_from.checked_sub(at).filter(|left| *left > 0);
        let left = left.ok_or_else(|| io::Error::from_raw_os_error(5))?;
        let before = bytes.len();
        let read = self.file.append_at(bytes, wanted, at)?.min(usize::try_from(left).unwrap_or(usize::MAX));
        bytes.truncate(before + read);
        Ok(read)
    }

    /// Its bytes from `at` on.
    pub(crate) fn from(&self, at: u64) -> FilePart {
        FilePart { file: self.clone(), at }
    }
}

/// The bytes of a file from a place on.
pub(crate) struct FilePart {
    file: SharedFile,
    at: u64,
}

impl Blocks for FilePart {
    fn append(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<usize> {
        let mut len = 0;
        while len < wanted {
            match self.file.append_at(bytes, wanted - len, self.at) {
                Ok(0) => break,
                Ok(read) => {
                    len += read;
                    self.at += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.file.progress.add_done(len as u64);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_shrinks_while_it_is_read_ends_early() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.json");
        std::fs::write(&path, [b'x'; 5_000]).expect("written");
        let file =
            SharedFile::new(stepscope_store::open(&path).expect("opened"), &Progress::default()).expect("a length");
        std::fs::File::options().write(true).open(&path).and_then(|file| file.set_len(3_000)).expect("shrunk");
        let mut bytes = Vec::new();
        assert_eq!(file.from(1_000).append(&mut bytes, 4_000).expect("read"), 2_000);
        assert_eq!(file.from(4_000).append(&mut bytes, 4_000).expect("read"), 0);
    }
}
