//! Unpacking gzip, as far as it goes: a file that was cut or damaged gives what stands before.

use flate2::bufread::MultiGzDecoder;
use std::io::Read;

/// What could be unpacked, and what stopped it.
pub(crate) struct Unpacked {
    pub(crate) bytes: Vec<u8>,
    /// What the decoder said where it stopped before the end.
    pub(crate) trouble: Option<String>,
}

/// True when `bytes` begin as gzip data do.
pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Unpacks all members of gzip data.
pub(crate) fn unpack(packed: &[u8]) -> Unpacked {
    let mut bytes = Vec::with_capacity(packed.len().saturating_mul(4));
    let trouble = MultiGzDecoder::new(packed).read_to_end(&mut bytes).err().map(|error| error.to_string());
    Unpacked { bytes, trouble }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn members_are_joined() {
        let unpacked = unpack(&[packed("[1,"), packed("2]")].concat());
        assert_eq!(unpacked.bytes, b"[1,2]");
        assert_eq!(unpacked.trouble, None);
    }

    #[test]
    fn a_cut_file_gives_what_stands_before_the_cut() {
        let text = (0..10_000).map(|i| i.to_string()).collect::<String>();
        let whole = packed(&text);
        let unpacked = unpack(&whole[..whole.len() / 2]);
        assert!(text.as_bytes().starts_with(&unpacked.bytes) && !unpacked.bytes.is_empty());
        assert!(unpacked.trouble.is_some());
    }
}
