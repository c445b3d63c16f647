//! Names become small numbers: looked up in a cache of the thread, else in the table of the process.

use std::collections::HashMap;
use std::ffi::c_char;
use stepscope_capture::layout::BeginWord;

/// Names beyond this many are written in full where they are used, so that a job that puts numbers into its labels
/// cannot fill memory.
const MAX_NAMES: usize = 1 << 16;
/// Nor do long ones: beyond this many bytes in all, names are written in full, too.
const MAX_TABLE_BYTES: usize = 16 << 20;
/// Longest name that is kept whole.
pub(crate) const MAX_NAME_BYTES: usize = 4096;
const SLOTS: usize = 512;
const _: () = assert!(MAX_NAMES <= BeginWord::NAMES as usize);

/// A name as a hook finds it.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    address: *const u8,
    len: Option<usize>,
    /// Zero-terminated; null for none.
    overload: *const c_char,
}

impl Name {
    /// A zero-terminated name whose address stands for it.
    ///
    /// # Safety
    /// `text` is a zero-terminated string that lives during the call it is passed to.
    #[inline(always)]
    pub unsafe fn stable(text: *const c_char) -> Self {
        Self { address: text.cast(), len: None, overload: std::ptr::null() }
    }

    /// A zero-terminated name that may be anywhere the next time.
    ///
    /// # Safety
    /// `text` is a zero-terminated string that lives during the call it is passed to.
    #[inline(always)]
    pub unsafe fn temporary(text: *const c_char) -> Self {
        // SAFETY: the caller's promise.
        Self { address: text.cast(), len: Some(unsafe { libc::strlen(text) }), overload: std::ptr::null() }
    }

    /// A name given as text.
    pub fn text(text: &str) -> Self {
        Self { address: text.as_ptr(), len: Some(text.len()), overload: std::ptr::null() }
    }

    /// The same name of an overload: names that differ in it alone have ids of their own. A thread's cache remembers those
    /// of stable names, whose addresses tell them apart; others would be looked up by their text alone.
    ///
    /// # Safety
    /// `overload` is a zero-terminated string that lives during the call that the name is passed to.
    #[inline(always)]
    pub unsafe fn with_overload(self, overload: *const c_char) -> Self {
        Self { overload, ..self }
    }

    /// Whether a cache can tell it from others.
    pub(crate) fn is_cached(self) -> bool {
        self.len.is_none() || self.overload.is_null()
    }

    /// Its bytes.
    ///
    /// # Safety
    /// The text it was made of still lives.
    pub(crate) unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: the makers' promises.
        unsafe {
            let len = self.len.unwrap_or_else(|| libc::strlen(self.address.cast()));
            std::slice::from_raw_parts(self.address, len)
        }
    }

    /// The bytes of its overload; empty for none.
    ///
    /// # Safety
    /// The text it was made of still lives.
    pub(crate) unsafe fn overload_bytes<'a>(self) -> &'a [u8] {
        if self.overload.is_null() {
            return &[];
        }
        // SAFETY: the promise of `with_overload`.
        unsafe { std::ffi::CStr::from_ptr(self.overload) }.to_bytes()
    }
}

/// All that is needed to find a stable name, in one line of the processor's cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Slot {
    /// The address of a stable name, or the hash of a temporary one.
    key: u64,
    text: *const u8,
    /// The first bytes of the text, and zeros.
    head: u128,
    len: u32,
    id: u32,
}

const EMPTY: Slot = Slot { key: 0, text: std::ptr::null(), head: 0, len: 0, id: 0 };
/// Bytes of a stable name that are compared.
const HEAD_BYTES: usize = size_of::<u128>();

/// One thread's cache. Two slots a key, so that two names that meet do not evict each other for ever.
pub(crate) struct NameCache {
    slots: Box<[Slot; SLOTS]>,
}

impl NameCache {
    pub(crate) fn new() -> Self {
        Self { slots: Box::new([EMPTY; SLOTS]) }
    }

    /// Forgets everything: ids belong to one capture.
    pub(crate) fn clear(&mut self) {
        self.slots.fill(EMPTY);
    }

    /// The id of `name`, when it is cached.
    ///
    /// # Safety
    /// The text `name` was made of lives.
    #[inline(always)]
    pub(crate) unsafe fn find(&self, name: Name) -> Option<u32> {
        let key = key_of(name);
        let first = slot_of(key);
        for at in [first, first ^ 1] {
            let slot = &self.slots[at];
            // SAFETY: the text of a slot that is set lives for ever; the name lives by the caller's promise.
            if slot.key == key && !slot.text.is_null() && unsafe { is_same(slot, name) } {
                return Some(slot.id);
            }
        }
        None
    }

    /// Remembers that `name` has `id`; `text` is the table's own copy.
    pub(crate) fn insert(&mut self, name: Name, text: &'static [u8], id: u32) {
        let key = key_of(name);
        let first = slot_of(key);
        self.slots[first ^ 1] = self.slots[first];
        let mut head = [0; HEAD_BYTES];
        let len = text.len().min(HEAD_BYTES);
        head[..len].copy_from_slice(&text[..len]);
        let head = u128::from_le_bytes(head);
        self.slots[first] = Slot { key, text: text.as_ptr(), head, len: text.len() as u32, id };
    }
}

#[inline(always)]
fn key_of(name: Name) -> u64 {
    match name.len {
        None => name.address as u64,
        // SAFETY: a name with a length was made of that many readable bytes.
        Some(len) => hash(unsafe { std::slice::from_raw_parts(name.address, len) }),
    }
}

#[inline(always)]
fn slot_of(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.ilog2())) as usize
}

#[inline(always)]
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64 | 1 << 63;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        hash = (hash.rotate_left(5) ^ u64::from_le_bytes(chunk.try_into().unwrap_or_default()))
            .wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    for byte in chunks.remainder() {
        hash = (hash.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    hash
}

/// Compares the texts: all of a temporary name, the head of a stable one (an op that was registered anew at
/// the address of an old one is noticed).
#[inline(always)]
unsafe fn is_same(slot: &Slot, name: Name) -> bool {
    // SAFETY: the slot's text is `len` bytes; the name has `len` readable bytes, or a page boundary is not crossed by
    // reading its head.
    unsafe {
        match name.len {
            Some(len) => len == slot.len as usize && libc::memcmp(name.address.cast(), slot.text.cast(), len) == 0,
            None => {
                name.address as usize & 4095 > 4096 - HEAD_BYTES
                    || has_head(name.address, slot.head, slot.len as usize + 1)
            }
        }
    }
}

/// Compares the first `len` bytes with those of `head`, at most as many as that has, which are readable.
#[inline(always)]
unsafe fn has_head(text: *const u8, head: u128, len: usize) -> bool {
    // SAFETY: the caller's promise.
    let found = u128::from_le(unsafe { text.cast::<u128>().read_unaligned() });
    (found ^ head).trailing_zeros() as usize >= 8 * len.min(HEAD_BYTES)
}

/// The names of one capture.
#[derive(Default)]
pub(crate) struct NameTable {
    ids: HashMap<NameAndOverload, (&'static [u8], u32)>,
    bytes: usize,
}

/// Two texts, never freed.
type NameAndOverload = (&'static [u8], &'static [u8]);

/// What the table knows of a name.
pub(crate) enum Interned {
    /// It had an id already.
    Known(&'static [u8], u32),
    /// It has a new id, and must be written to the capture before anybody uses it.
    New(&'static [u8], u32),
    /// The table is full.
    Full,
}

impl NameTable {
    /// The id of `text` with that overload. The table's copies are never freed: other threads' caches point at them.
    pub(crate) fn intern(&mut self, text: &[u8], overload: &[u8]) -> Interned {
        if let Some((text, id)) = self.find(text, overload) {
            return Interned::Known(text, id);
        }
        if self.ids.len() >= MAX_NAMES || self.bytes + text.len() > MAX_TABLE_BYTES {
            return Interned::Full;
        }
        let id = self.ids.len() as u32;
        self.bytes += text.len() + overload.len();
        let copy = leaked_copy(text);
        let overload = if overload.is_empty() { &[] } else { leaked_copy(overload) };
        self.ids.insert((copy, overload), (copy, id));
        Interned::New(copy, id)
    }

    fn find(&self, text: &[u8], overload: &[u8]) -> Option<(&'static [u8], u32)> {
        self.ids.get(&(text, overload)).copied()
    }
}

/// A copy that is never freed.
fn leaked_copy(text: &[u8]) -> &'static [u8] {
    Box::leak(Box::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    fn find(cache: &NameCache, name: Name) -> Option<u32> {
        // SAFETY: the tests' texts live.
        unsafe { cache.find(name) }
    }

    #[test]
    fn temporary_names_are_found_wherever_they_stand() {
        let (mut table, mut cache) = (NameTable::default(), NameCache::new());
        let Interned::New(text, id) = table.intern(b"AddmmBackward0", b"") else { panic!("the name is new") };
        cache.insert(Name::text("AddmmBackward0"), text, id);
        assert_eq!(find(&cache, Name::text(&String::from("AddmmBackward0"))), Some(id));
        assert_eq!(find(&cache, Name::text("AddmmBackward1")), None);
        assert!(matches!(table.intern(b"AddmmBackward0", b""), Interned::Known(_, known) if known == id));
    }

    #[test]
    fn an_address_that_holds_another_op_is_noticed() {
        let (mut table, mut cache) = (NameTable::default(), NameCache::new());
        let mut place = *b"aten::mm\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        // SAFETY: `place` is zero-terminated and lives.
        let name = unsafe { Name::stable(place.as_ptr().cast()) };
        let Interned::New(text, id) = table.intern(b"aten::mm", b"") else { panic!("the name is new") };
        cache.insert(name, text, id);
        assert_eq!(find(&cache, name), Some(id));
        place[..9].copy_from_slice(b"aten::mul");
        assert_eq!(find(&cache, std::hint::black_box(name)), None);
        assert_eq!(CString::new("aten::mul").unwrap().as_bytes(), &place[..9]);
    }

    #[test]
    fn the_table_is_bounded() {
        let mut table = NameTable::default();
        (0..MAX_NAMES)
            .for_each(|i| assert!(matches!(table.intern(format!("n{i}").as_bytes(), b""), Interned::New(..))));
        assert!(matches!(table.intern(b"one too many", b""), Interned::Full));
        assert!(matches!(table.intern(b"n7", b""), Interned::Known(_, 7)));
        let mut table = NameTable::default();
        let long = vec![b'x'; MAX_TABLE_BYTES / 2];
        assert!(matches!(table.intern(&long, b""), Interned::New(_, 0)));
        assert!(matches!(table.intern(&long[2..], b""), Interned::New(_, 1)));
        assert!(matches!(table.intern(b"one too many", b""), Interned::Full));
        assert!(matches!(table.intern(&long, b""), Interned::Known(_, 0)));
    }

    #[test]
    fn overloads_of_a_name_have_ids_of_their_own() {
        let mut table = NameTable::default();
        let ids = [b"".as_slice(), b"Tensor", b"Scalar", b"Tensor"].map(|overload| {
            match table.intern(b"aten::add", overload) {
                Interned::New(_, id) | Interned::Known(_, id) => Some(id),
                Interned::Full => None,
            }
        });
        assert_eq!(ids, [Some(0), Some(1), Some(2), Some(1)]);
    }
}
