//! Which line of a function an instruction is of: CPython's table of locations, as its `Objects/locations.md` describes it,
//! from 3.11 on.

/// For each stretch of instructions where it ends, in bytes, and its line, where it has one.
pub(super) struct Lines(Vec<(u32, Option<u32>)>);

const INSTRUCTION_BYTES: u32 = 2;
const NO_LOCATION: u8 = 15;
const LONG: u8 = 14;
const NO_COLUMNS: u8 = 13;
/// From here on the code says how many lines later a location is that lies on one line.
const ONE_LINE: u8 = 10;

impl Lines {
    /// From the table of a function that begins in `first_line`; what cannot be read ends it.
    pub(super) fn read(table: &[u8], first_line: i32) -> Self {
        let (mut lines, mut end, mut line) = (Vec::new(), 0_u32, i64::from(first_line));
        let mut bytes = table.iter().copied();
        while let Some(first) = bytes.next() {
            let (code, len) = (first >> 3 & 15, u32::from(first & 7) + 1);
            end += len * INSTRUCTION_BYTES;
            let delta = match code {
                NO_LOCATION => None,
                LONG | NO_COLUMNS => Some(signed(&mut bytes)),
                _ => Some(i64::from(code.saturating_sub(ONE_LINE))),
            };
            // What follows says columns: of the long form numbers, with the last line before them, else bytes.
            match code {
                NO_LOCATION | NO_COLUMNS => {}
                LONG => (0..3).for_each(|_| _ = unsigned(&mut bytes)),
                code if code < ONE_LINE => _ = bytes.next(),
                _ => _ = bytes.nth(1),
            }
            line = line.saturating_add(delta.unwrap_or(0));
            lines.push((end, delta.and_then(|_| u32::try_from(line).ok())));
        }
        Self(lines)
    }

    /// The line of the instruction at an offset in bytes.
    pub(super) fn at(&self, offset: u32) -> Option<u32> {
        let at = self.0.partition_point(|(end, _)| *end <= offset);
        self.0.get(at)?.1
    }
}

/// A number of six bits a byte, the lowest first; a further bit says that more follow.
fn unsigned(bytes: &mut impl Iterator<Item = u8>) -> u64 {
    let (mut value, mut shift) = (0_u64, 0);
    for byte in bytes {
        value |= u64::from(byte & 63).checked_shl(shift).unwrap_or(0);
        shift += 6;
        if byte & 64 == 0 {
            break;
        }
    }
    value
}

/// The same with the sign in the lowest bit.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> i64 {
    let value = unsigned(bytes);
    let size = (value >> 1) as i64;
    if value & 1 == 1 { -size } else { size }
}
