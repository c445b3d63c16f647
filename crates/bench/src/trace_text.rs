//! A trace's text, read without any model: decompressed, in pieces, its rows counted.

use flate2::read::MultiGzDecoder;
use memchr::memmem;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::path::Path;

const PIECE_BYTES: usize = 1 << 20;

/// How much text a file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TextSize {
    /// Decompressed bytes.
    pub(crate) bytes: u64,
    /// Rows of `traceEvents`: each has one `"ph"`.
    pub(crate) events: u64,
}

/// Opens a file as its text, decompressing it when it is gzipped.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    unpacked(File::open(path)?)
}

/// Counts bytes and rows.
pub(crate) fn size_of(path: &Path) -> io::Result<TextSize> {
    count(open(path)?)
}

/// Hands over the text piece by piece.
pub(crate) fn each_piece(mut text: impl Read, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match text.read(&mut piece)? {
            0 => return Ok(()),
            count => take(&piece[..count]),
        }
    }
}

/// Where the rows of `traceEvents` are, or those of the list that the text is.
pub(crate) fn rows(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let key = memmem::find(text, b"\"traceEvents\"").unwrap_or(0);
    let mut at = memchr::memchr(b'[', &text[key..]).map_or(text.len(), |list| key + list + 1);
    std::iter::from_fn(move || {
        let begin = at + memchr::memchr2(b'{', b']', &text[at..])?;
        at = object_end(text, begin)?;
        Some(begin..at)
    })
}

/// Where the object ends that begins at `begin`; `None` when it does not end, or none begins there.
pub(crate) fn object_end(text: &[u8], begin: usize) -> Option<usize> {
    let (mut at, mut depth) = (begin, 0_usize);
    loop {
        match text.get(at)? {
            b'"' => at = string_end(text, at)?,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The place of the quote that ends the string that begins at `begin`.
pub(crate) fn string_end(text: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

fn unpacked(mut file: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut magic = Vec::new();
    file.by_ref().take(2).read_to_end(&mut magic)?;
    let is_gzip = magic == [0x1f, 0x8b];
    let whole = Cursor::new(magic).chain(file);
    Ok(if is_gzip { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}

fn count(text: impl Read) -> io::Result<TextSize> {
    const MARK: &[u8] = b"\"ph\"";
    let mut size = TextSize::default();
    let mut kept = Vec::new();
    each_piece(text, |piece| {
        size.bytes += piece.len() as u64;
        // A mark may lie across two pieces.
        kept.extend_from_slice(piece);
        size.events += kept.windows(MARK.len()).filter(|window| *window == MARK).count() as u64;
        kept.drain(..kept.len().saturating_sub(MARK.len() - 1));
    })?;
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn packed_and_plain_text_have_the_same_size() {
        let row = "{\"ph\": \"X\", \"name\": \"aten::add\"},\n";
        let text = format!("[{}{{\"ph\": \"M\"}}]", row.repeat(100_000));
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        let packed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).expect("memory takes all");
        let expected = TextSize { bytes: text.len() as u64, events: 100_001 };
        for bytes in [text.into_bytes(), packed] {
            assert_eq!(unpacked(Cursor::new(bytes)).and_then(count).expect("text"), expected);
        }
    }
}
