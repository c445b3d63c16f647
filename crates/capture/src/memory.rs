//! Allocations and frees, as records say them.
//!
//! A device is a 16-bit number as PyTorch lays it out: its type in the lower byte (0 is the host, 1 CUDA …), its index
//! in the upper one, 255 where the type has only one.

use crate::layout::Tag;

/// Bits of an address that [`Tag::Memory`] has room for.
const ADDRESS_BITS: u32 = 48;
/// The index of a device that needs none.
const NO_INDEX: u8 = u8::MAX;

/// Memory was allocated or freed, or could not be allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryEvent {
    /// Ordinal of the thread that asked.
    pub thread: u32,
    /// When, ns.
    pub time_ns: i64,
    /// Its address; `None` where there is none: the allocation failed.
    pub address: Option<u64>,
    /// Bytes allocated, negative for a free; of a failed allocation what was asked for.
    pub bytes: i64,
    /// Bytes allocated on that device after it, as the allocator counts.
    pub allocated_bytes: Option<i64>,
    /// Bytes that the allocator holds from the device after it.
    pub reserved_bytes: Option<i64>,
    /// PyTorch's number of the kind of device; 0 is the host.
    pub device_type: u8,
    /// Which device of its kind.
    pub device_index: Option<u8>,
}

impl MemoryEvent {
    /// True when the allocation failed.
    pub fn is_out_of_memory(&self) -> bool {
        self.address.is_none()
    }

    /// What a record says whose words after the first are `word`; `None` for records of other kinds.
    pub(crate) fn of_record(tag: Tag, thread: u32, time_ns: i64, word: impl Fn(usize) -> u64) -> Option<Self> {
        let low = |word: u64| word & ((1 << ADDRESS_BITS) - 1);
        let (address, rest, reserved, device) = match tag {
            Tag::Memory => (Some(low(word(0))), 1, 0, word(0) >> ADDRESS_BITS),
            Tag::MemoryReserved => (Some(word(0)), 1, word(3), word(4)),
            Tag::OutOfMemory => (None, 0, word(2), word(3)),
            _ => return None,
        };
        Some(Self {
            thread,
            time_ns,
            address,
            bytes: word(rest) as i64,
            allocated_bytes: i64::try_from(word(rest + 1)).ok(),
            reserved_bytes: i64::try_from(reserved).ok(),
            device_type: device as u8,
            device_index: Some((device >> 8) as u8).filter(|index| *index != NO_INDEX),
        })
    }
}

/// Words of the longest record that [`record`] gives, its first one included.
pub const LONGEST: usize = 6;

/// The words after the first one of an allocation's or a free's record, by its tag.
pub enum Record {
    /// [`Tag::Memory`].
    Memory([u64; 3]),
    /// [`Tag::MemoryReserved`].
    MemoryReserved([u64; 5]),
}

/// How an allocation or a free is written.
#[inline(always)]
pub fn record(address: u64, bytes: i64, allocated: u64, reserved: u64, device: u16) -> Record {
    if reserved == 0 && address >> ADDRESS_BITS == 0 {
        Record::Memory([address | u64::from(device) << ADDRESS_BITS, bytes as u64, allocated])
    } else {
        Record::MemoryReserved([address, bytes as u64, allocated, reserved, u64::from(device)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: u16 = 0xff00;

    fn read(record: Record) -> Option<MemoryEvent> {
        match record {
            Record::Memory(words) => MemoryEvent::of_record(Tag::Memory, 3, 7, |index| words[index]),
            Record::MemoryReserved(words) => MemoryEvent::of_record(Tag::MemoryReserved, 3, 7, |index| words[index]),
        }
    }

    #[test]
    fn records_say_what_was_put_in() {
        let cases = [
            (0x7fff_1234_5678, 512, 4_096, 0, HOST),
            (0x7fff_1234_5678, -512, 0, 0, HOST),
            (1 << 50, 512, 4_096, 0, HOST),
            (0x7fff_1234_5678, i64::MIN, i64::MAX as u64, 1 << 30, 0x0301),
        ];
        for (address, bytes, allocated, reserved, device) in cases {
            let expected = MemoryEvent {
                thread: 3,
                time_ns: 7,
                address: Some(address),
                bytes,
                allocated_bytes: Some(allocated as i64),
                reserved_bytes: Some(reserved as i64),
                device_type: device as u8,
                device_index: (device != HOST).then_some(3),
            };
            assert_eq!(read(record(address, bytes, allocated, reserved, device)), Some(expected));
        }
    }

    #[test]
    fn a_total_that_cannot_be_is_not_known() {
        let event = read(record(1, 2, u64::MAX, 0, HOST)).expect("a record of memory");
        assert_eq!(event.allocated_bytes, None);
    }
}
