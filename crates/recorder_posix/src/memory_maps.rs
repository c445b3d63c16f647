//! What is mapped into the process, as the system says it: `/proc/self/maps`.

/// Memory that is mapped in one piece.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct MappedRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) is_writable: bool,
    pub(crate) is_executable: bool,
    /// Where in the file, and which one; empty for memory without a name.
    pub(crate) offset: u64,
    pub(crate) path: Vec<u8>,
}

/// All of it; `None` where the system does not tell.
pub(crate) fn all() -> Option<Vec<MappedRange>> {
    let maps = std::fs::read("/proc/self/maps").ok()?;
    Some(maps.split(|byte| *byte == b'\n').filter_map(range_of).collect())
}

/// What a line says.
fn range_of(line: &[u8]) -> Option<MappedRange> {
    let mut rest = line;
    let mut next = || {
        let from = rest.iter().position(|byte| *byte != b' ')?;
        let len = rest[from..].iter().position(|byte| *byte == b' ').unwrap_or(rest.len() - from);
        let field = &rest[from..from + len];
        rest = &rest[from + len..];
        std::str::from_utf8(field).ok()
    };
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = next()?.split_once('-')?;
    let (permissions, offset, _, _) = (next()?, next()?, next()?, next()?);
    let path = rest.iter().position(|byte| *byte != b' ').map_or(b"".as_slice(), |from| &rest[from..]);
    Some(MappedRange {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        is_writable: permissions.as_bytes().get(1) == Some(&b'w'),
        is_executable: permissions.as_bytes().get(2) == Some(&b'x'),
        offset: hexadecimal(offset)?,
        path: with_new_lines(path),
    })
}

/// A path as it is: its new lines are written `\012`.
fn with_new_lines(path: &[u8]) -> Vec<u8> {
    let (mut parts, mut rest) = (Vec::with_capacity(path.len()), path);
    while let Some(at) = rest.windows(4).position(|window| window == b"\\012") {
        parts.extend_from_slice(&rest[..at]);
        parts.push(b'\n');
        rest = &rest[at + 4..];
    }
    parts.extend_from_slice(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let range = |is_writable, offset, path: &[u8]| {
            let (start, end, is_executable) = (0x7f1_2000, 0x7f1_5000, false);
            Some(MappedRange { start, end, is_writable, is_executable, offset, path: path.to_vec() })
        };
        let line = b"7f12000-7f15000 r--p 00002000 fe:00 1234       /data/a b\\012c (deleted)";
        assert_eq!(range_of(line), range(false, 0x2000, b"/data/a b\nc (deleted)"));
        assert_eq!(range_of(b"7f12000-7f15000 rw-p 00000000 00:00 0 "), range(true, 0, b""));
        assert_eq!(range_of(b"nothing"), None);
        let here = range_of as *const () as u64;
        let all = all().unwrap();
        let of_code = all.iter().find(|range| (range.start..range.end).contains(&here)).unwrap();
        assert!(of_code.is_executable && !of_code.is_writable && !of_code.path.is_empty());
    }
}
