//! Where a thread of PyTorch keeps what holds its innermost object. Looked at in place, two loads tell that the object
//! is still ours; asking PyTorch takes a call, for every op.

use std::ffi::{c_int, c_void};
use std::mem::size_of;

/// The address of a word in the thread-local memory of PyTorch's library, at the same offset in each thread's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SlotAddress {
    module: usize,
    offset: usize,
}

/// The arguments of `__tls_get_addr`, as the System V ABI has them for x86-64.
#[repr(C)]
struct TlsIndex {
    module: usize,
    offset: usize,
}

unsafe extern "C" {
    /// The calling thread's copy of a place in thread-local memory.
    fn __tls_get_addr(index: *const TlsIndex) -> *mut c_void;
}

impl SlotAddress {
    /// Where it is in the calling thread.
    pub(super) fn in_this_thread(self) -> *const Holder {
        let index = TlsIndex { module: self.module, offset: self.offset };
        // SAFETY: a module that stays loaded, and an offset within its memory.
        unsafe { __tls_get_addr(&raw const index) }.cast_const().cast()
    }
}

/// What points to the holder of an object, whose first word is the object's address; null without one.
pub(super) type Holder = *const *const c_void;

/// Addresses that may be the one: those that had the right word whenever it was looked.
pub(super) struct Candidates {
    module: usize,
    memory: *const usize,
    offsets: Vec<usize>,
}

impl Candidates {
    /// All words of the calling thread's memory of the library that `function` is of; `None` when it has none.
    pub(super) fn of_library(function: *const c_void) -> Option<Self> {
        let mut found = Found { function: function as usize, module: 0, memory: std::ptr::null(), bytes: 0 };
        // SAFETY: the callback takes what it is given here, which lives during the call.
        unsafe { libc::dl_iterate_phdr(Some(look_at), (&raw mut found).cast()) };
        let Found { module, memory, bytes, .. } = found;
        let offsets = (0..bytes / size_of::<usize>()).map(|word| word * size_of::<usize>()).collect();
        (module != 0 && !memory.is_null()).then_some(Self { module, memory, offsets })
    }

    /// Keeps those that have `word` now.
    pub(super) fn keep(&mut self, word: usize) {
        // SAFETY: within this thread's memory of the library; words that are not set yet are zero.
        self.offsets.retain(|offset| unsafe { self.memory.byte_add(*offset).read_volatile() } == word);
    }

    /// The only one that is left.
    pub(super) fn only(self) -> Option<SlotAddress> {
        let [offset] = self.offsets[..] else { return None };
        Some(SlotAddress { module: self.module, offset })
    }
}

struct Found {
    function: usize,
    module: usize,
    memory: *const usize,
    bytes: usize,
}

unsafe extern "C" fn look_at(library: *mut libc::dl_phdr_info, size: usize, found: *mut c_void) -> c_int {
    // SAFETY: the system's description of a library, of at least `size` bytes, and the caller's own.
    let (library, found) = unsafe { (&*library, &mut *found.cast::<Found>()) };
    if size < size_of::<libc::dl_phdr_info>() || library.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the library has `dlpi_phnum` of them.
    let segments = unsafe { std::slice::from_raw_parts(library.dlpi_phdr, usize::from(library.dlpi_phnum)) };
    let holds = |segment: &&libc::Elf64_Phdr| {
        let begin = library.dlpi_addr.wrapping_add(segment.p_vaddr) as usize;
        segment.p_type == libc::PT_LOAD && (begin..begin + segment.p_memsz as usize).contains(&found.function)
    };
    if !segments.iter().any(|segment| holds(&segment)) {
        return 0;
    }
    if let Some(memory) = segments.iter().find(|segment| segment.p_type == libc::PT_TLS) {
        found.module = library.dlpi_tls_modid;
        found.memory = library.dlpi_tls_data.cast_const().cast();
        found.bytes = memory.p_memsz as usize;
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static HERE: Cell<usize> = const { Cell::new(7) };
    }

    /// As somebody else's code would, whose writes nobody can leave out.
    fn set(word: usize) {
        // SAFETY: this thread's own.
        HERE.with(|here| unsafe { here.as_ptr().write_volatile(word) });
    }

    fn of_this_program() -> Candidates {
        set(7);
        Candidates::of_library(of_this_program as *const () as *const c_void).expect("it has thread-local memory")
    }

    #[test]
    fn the_only_word_that_changed_as_expected_is_the_place_in_every_thread() {
        let mut candidates = of_this_program();
        for word in [0x1234_5678_9abc, 0, 0x1234_5678_9abd] {
            set(word);
            candidates.keep(word);
        }
        let slot_address = candidates.only().expect("no other word changes so");
        assert!(HERE.with(|here| std::ptr::eq(here.as_ptr().cast(), slot_address.in_this_thread())));
        let other = std::thread::spawn(move || {
            HERE.with(|here| std::ptr::eq(here.as_ptr().cast(), slot_address.in_this_thread()))
        });
        assert!(other.join().unwrap());
    }

    #[test]
    fn none_and_several_are_no_place() {
        let mut none = of_this_program();
        none.keep(0x1234_5678_9abe);
        assert_eq!(none.only(), None);
        assert_eq!(of_this_program().only(), None);
        assert!(Candidates::of_library(std::ptr::null()).is_none());
    }
}
