//! What single bytes mean: where strings and bare words end, and which words are missing numbers.

/// Plain numbers and what stands between them.
pub(super) static IN_NUMBERS: [bool; 256] = {
    let mut is_in = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        is_in[byte] = matches!(byte as u8, b'0'..=b'9' | b',' | b' ' | b'.');
        byte += 1;
    }
    is_in
};

/// The bytes that end a bare word.
pub(super) static ENDS_BARE: [bool; 256] = {
    let mut ends = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        ends[byte] = matches!(byte as u8, b',' | b']' | b'}' | b':' | b'"' | b'{' | b'[' | 0..=b' ');
        byte += 1;
    }
    ends
};

/// The first `"` or `\` from `from` on.
#[inline(always)]
pub(crate) fn find_quote_or_backslash(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    for _ in 0..4 {
        let Some(word) = bytes.get(at..at + 8) else { break };
        let found = marks(u64::from_le_bytes(word.try_into().unwrap_or_default()));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr::memchr2(b'"', b'\\', bytes.get(at..)?).map(|offset| at + offset)
}

/// The high bit of each byte that is `"` or `\`; above the first of them also of others.
#[inline(always)]
pub(crate) fn marks(word: u64) -> u64 {
    const LOW: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    let zeros = |word: u64| word.wrapping_sub(LOW) & !word & HIGH;
    zeros(word ^ (LOW * b'"' as u64)) | zeros(word ^ (LOW * b'\\' as u64))
}

pub(super) fn is_missing_number(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word);
    ["nan", "n/a", "inf", "infinity", "none", "undefined"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}
