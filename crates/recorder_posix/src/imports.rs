//! The import tables of a process that runs already: where loaded objects call a function of the C library, they are made
//! to call ours, until that is undone.
//!
//! ```text
//! libtorch.so   read@got ──▶ libc read      becomes     read@got ──▶ our read ──▶ libc read
//! ```
//!
//! An entry is one word, which is stored at once: a thread that calls meanwhile calls the one or the other. Entries that
//! lead to another library than the C library, as another tool's, are left as they are. Objects that are loaded later are
//! found when [`Imports::bind_new`] is called; the loader is not told to wait.
//!
//! The loader lists an object before it has filled its tables, and protects pages of it only then. Were they protected
//! meanwhile, it would fault. So they are left alone until the system says that they are protected.

use crate::libraries;
use crate::memory_maps;
use crate::real::{behind, find_all};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function of the C library, and the one that stands for it.
pub(crate) struct Hook {
    name: &'static CStr,
    ours: *const c_void,
}

// SAFETY: functions are never moved.
unsafe impl Sync for Hook {}

impl Hook {
    pub(crate) const fn new(name: &'static CStr, ours: *const c_void) -> Self {
        Self { name, ours }
    }
}

/// The address of our function, and that of the C library's.
type Pair = (usize, usize);

/// What was found in the objects that are loaded.
pub(crate) struct Imports {
    pairs: HashMap<&'static [u8], Pair>,
    /// Functions that nothing that is loaded has, and whether something may have them by now.
    missing: Vec<&'static Hook>,
    is_to_search: bool,
    /// By where they are loaded.
    objects: HashMap<usize, Object>,
    is_bound: bool,
    /// How often objects had been loaded when they were looked at last, and how often they were looked at since.
    loads: Option<u64>,
    looks: u32,
    /// Something was still being loaded then.
    is_loading: bool,
}

/// The entries of an object that matter.
struct Object {
    /// Another object may be loaded where one was.
    name: Vec<u8>,
    /// Where its table of tables lies.
    dynamic: usize,
    /// All of it, and the pages that cannot be written once it is loaded.
    range: Range<usize>,
    protected: Range<usize>,
    /// Whether those pages are protected by now; `None`: it may still be loading.
    is_protected: Option<bool>,
    entries: Vec<(usize, Pair)>,
}

const PAGE: usize = 4096;
/// What is still being loaded after this number of looks is next looked at when something else is loaded: another tool may
/// have left its pages writable.
const MOST_LOOKS: u32 = 500;

impl Imports {
    pub(crate) fn new(hooks: impl Iterator<Item = &'static Hook>) -> Self {
        let (pairs, objects) = (HashMap::new(), HashMap::new());
        let missing = hooks.collect();
        let mut imports = Self {
            pairs,
            missing,
            is_to_search: false,
            objects,
            is_bound: false,
            loads: None,
            looks: 0,
            is_loading: false,
        };
        imports.search();
        imports
    }

    /// Finds what our functions stand for; false where there is nothing new.
    fn search(&mut self) -> bool {
        let before = self.pairs.len();
        self.missing.retain(|hook| {
            let (ours, theirs) = (hook.ours as usize, behind(hook.name) as usize);
            let is_found = theirs != 0 && theirs != ours;
            if is_found {
                self.pairs.insert(hook.name.to_bytes(), (ours, theirs));
            }
            !is_found
        });
        self.pairs.len() > before
    }

    /// Has all objects that are loaded call our functions.
    pub(crate) fn bind_all(&mut self) {
        self.is_bound = true;
        self.bind_known();
        if std::mem::take(&mut self.is_to_search) && self.search() {
            find_all();
            // They may call these, too.
            self.objects.clear();
            self.bind_known();
            self.is_to_search = false;
        }
    }

    fn bind_known(&mut self) {
        self.each_object(|object, (ours, theirs), found| {
            // One that was never called leads into its own object, which then looks the function up.
            (found == theirs || object.range.contains(&found)).then_some(ours)
        });
    }

    /// Whether objects call our functions, also those that are loaded later.
    pub(crate) fn is_bound(&self) -> bool {
        self.is_bound
    }

    /// Objects that are loaded later are left alone.
    pub(crate) fn bind_no_more(&mut self) {
        self.is_bound = false;
    }

    /// As [`Imports::bind_all`], where something was loaded since. It is done once more then, since the loader may just have
    /// been looking up a function that was called for the first time. Whether it is to be done again.
    pub(crate) fn bind_new(&mut self) -> bool {
        let loads = loads();
        if self.loads != Some(loads) {
            (self.loads, self.looks) = (Some(loads), 0);
        }
        if self.looks < if self.is_loading { MOST_LOOKS } else { 2 } {
            self.looks += 1;
            self.bind_all();
            return true;
        }
        false
    }

    /// Has them call the C library again. What was found is kept for the next time.
    pub(crate) fn unbind_all(&mut self) {
        self.loads = None;
        self.each_object(|_, (ours, theirs), found| (found == ours).then_some(theirs));
    }

    /// Stores what `change` says in each entry, which it is told what it leads to.
    fn each_object(&mut self, change: fn(&Object, Pair, usize) -> Option<usize>) {
        self.is_loading = false;
        let mut visit = Visit { imports: self, change, is_before_ours: true, writable: None };
        // SAFETY: the callback takes what it is given here.
        unsafe { libc::dl_iterate_phdr(Some(visit_object), (&raw mut visit).cast()) };
    }
}

/// How often an object has been loaded into the process.
fn loads() -> u64 {
    unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, loads: *mut c_void) -> c_int {
        // SAFETY: as `loads` passes it, and the loader tells it.
        unsafe { *loads.cast() = (*info).dlpi_adds };
        1
    }
    let mut loads = 0_u64;
    // SAFETY: the callback takes what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut loads).cast()) };
    loads
}

struct Visit<'a> {
    imports: &'a mut Imports,
    change: fn(&Object, Pair, usize) -> Option<usize>,
    /// What is listed before this library had been loaded when this one was.
    is_before_ours: bool,
    /// What can be written, once that was asked for.
    writable: Option<Option<Vec<Range<usize>>>>,
}

impl Visit<'_> {
    /// Whether pages of an object are protected; `None` where that may still come.
    fn is_protected(&mut self, pages: &Range<usize>) -> Option<bool> {
        let writable = self.writable.get_or_insert_with(writable).as_ref()?;
        let is_protected = !writable.iter().any(|range| range.start < pages.end && pages.start < range.end);
        (is_protected || self.is_before_ours).then_some(is_protected)
    }
}

/// The memory of this process that can be written; `None` where the system does not tell.
fn writable() -> Option<Vec<Range<usize>>> {
    let writable = memory_maps::all()?.into_iter().filter(|range| range.is_writable);
    Some(writable.map(|range| range.start as usize..range.end as usize).collect())
}

unsafe extern "C" fn visit_object(info: *mut libc::dl_phdr_info, _: usize, visit: *mut c_void) -> c_int {
    // SAFETY: as `each_object` passes it, and the loader tells it.
    let (visit, info) = unsafe { (&mut *visit.cast::<Visit<'_>>(), &*info) };
    let base = info.dlpi_addr as usize;
    let Some(dynamic) = segment(info, libc::PT_DYNAMIC).map(|segment| segment.start) else { return 0 };
    let is_known =
        |known: &Object| known.dynamic == dynamic && known.range == range_of(info) && known.name == name_of(info);
    // SAFETY: the loader holds its lock: the object stays.
    let read = |pairs| unsafe { Object::of(info, dynamic, pairs) };
    let known = visit.imports.objects.remove(&base).filter(is_known);
    let is_new = known.is_none();
    let mut object = known.unwrap_or_else(|| read(&visit.imports.pairs));
    visit.is_before_ours &= !object.range.contains(&(visit_object as *const () as usize));
    if object.is_protected.is_none() && !object.entries.is_empty() {
        object.is_protected = visit.is_protected(&object.protected);
        visit.imports.is_loading |= object.is_protected.is_none();
    }
    object.store(visit.change);
    visit.imports.is_to_search |= is_new && libraries::is_one(&object.name);
    visit.imports.objects.insert(base, object);
    0
}

/// The first segment of a kind, where it lies in memory.
fn segment(info: &libc::dl_phdr_info, kind: u32) -> Option<Range<usize>> {
    let mut segments = segments(info).filter(|header| header.p_type == kind);
    segments.next().map(|header| addresses(info, header))
}

fn segments(info: &libc::dl_phdr_info) -> impl Iterator<Item = &libc::Elf64_Phdr> {
    let count = if info.dlpi_phdr.is_null() { 0 } else { usize::from(info.dlpi_phnum) };
    // SAFETY: the loader has as many.
    (0..count).map(|at| unsafe { &*info.dlpi_phdr.add(at) })
}

fn addresses(info: &libc::dl_phdr_info, header: &libc::Elf64_Phdr) -> Range<usize> {
    let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
    start..start.saturating_add(header.p_memsz as usize)
}

impl Object {
    /// # Safety
    /// The object stays loaded meanwhile.
    unsafe fn of(info: &libc::dl_phdr_info, dynamic: usize, pairs: &HashMap<&'static [u8], Pair>) -> Self {
        let range = range_of(info);
        // The loader protects whole pages.
        let protected = segment(info, libc::PT_GNU_RELRO).unwrap_or(0..0);
        let protected = protected.start & !(PAGE - 1)..protected.end & !(PAGE - 1);
        let (name, entries) = (name_of(info).to_vec(), Vec::new());
        let mut object = Self { name, dynamic, range, protected, is_protected: None, entries };
        if !is_of_system(&object.name) && !pairs.is_empty() {
            // SAFETY: the caller's promise.
            object.entries = unsafe { find_entries(info.dlpi_addr as usize, dynamic, &object.range, pairs) };
        }
        object
    }

    /// The entries that `change` has lead elsewhere, and where to.
    fn changes(
        &self,
        change: fn(&Self, Pair, usize) -> Option<usize>,
    ) -> impl Iterator<Item = (usize, &AtomicUsize, usize)> {
        // SAFETY: an entry of an object that is loaded, and stays; the loader, too, stores whole words in it.
        let word = |entry: usize| unsafe { &*(entry as *const AtomicUsize) };
        let words = self.entries.iter().map(move |(entry, pair)| (*entry, *pair, word(*entry)));
        words.filter_map(move |(entry, pair, word)| {
            Some((entry, word, change(self, pair, word.load(Ordering::Acquire))?))
        })
    }

    /// Stores what `change` says in each entry, but for those on pages that may still be protected.
    fn store(&self, change: fn(&Self, Pair, usize) -> Option<usize>) {
        let pages = &self.protected;
        let protect = |protection: c_int| {
            // SAFETY: whole pages of the object, which are made as they were. Past the C library, whose functions may be
            // ours.
            unsafe { libc::syscall(libc::SYS_mprotect, pages.start, pages.len(), protection) == 0 }
        };
        let is_protected = self.is_protected == Some(true) && self.changes(change).any(|(at, ..)| pages.contains(&at));
        let is_open =
            if is_protected { protect(libc::PROT_READ | libc::PROT_WRITE) } else { self.is_protected == Some(false) };
        for (entry, word, new) in self.changes(change) {
            if is_open || !pages.contains(&entry) {
                word.store(new, Ordering::Release);
            }
        }
        if is_protected && is_open {
            protect(libc::PROT_READ);
        }
    }
}

/// Where an object is loaded.
pub(crate) fn range_of(info: &libc::dl_phdr_info) -> Range<usize> {
    let loaded = segments(info).filter(|header| header.p_type == libc::PT_LOAD);
    let ranges = loaded.map(|header| addresses(info, header));
    ranges.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end)).unwrap_or(0..0)
}

/// The path of an object; empty for the program itself.
pub(crate) fn name_of(info: &libc::dl_phdr_info) -> &[u8] {
    // SAFETY: null or terminated.
    if info.dlpi_name.is_null() { b"" } else { unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes() }
}

/// Whether an object is the loader itself, or what the system maps into each process.
pub(crate) fn is_of_system(name: &[u8]) -> bool {
    let file = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    file.starts_with(b"ld-linux") || file.starts_with(b"linux-vdso")
}

/// Numbers of the table of tables.
const SYMBOLS: i64 = 6;
const NAMES: i64 = 5;
const CALLS: i64 = 23;
const CALLS_BYTES: i64 = 2;
const OTHERS: i64 = 7;
const OTHERS_BYTES: i64 = 8;
/// How many of the others, which come first, have no name.
const NAMELESS: i64 = 0x6fff_fff9;

/// Kinds of entries: the address of a function that is called or otherwise used.
const GLOBAL_DATA: u64 = 6;
const JUMP_SLOT: u64 = 7;

#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// The entries of the functions in `pairs`.
///
/// # Safety
/// As of [`Object::of`].
unsafe fn find_entries(
    base: usize,
    dynamic: usize,
    range: &Range<usize>,
    pairs: &HashMap<&'static [u8], Pair>,
) -> Vec<(usize, Pair)> {
    let mut table = HashMap::new();
    let mut at = dynamic as *const [i64; 2];
    loop {
        // SAFETY: the table ends with a zero.
        let [number, value] = unsafe { *at };
        if number == 0 {
            break;
        }
        table.insert(number, value as usize);
        // SAFETY: as above.
        at = unsafe { at.add(1) };
    }
    let number = |name: i64| table.get(&name).copied().unwrap_or(0);
    // The loader makes them addresses, but not in each object.
    let address = |name: i64| table.get(&name).map(|value| if *value < base { base + value } else { *value });
    let (Some(symbols), Some(names)) = (address(SYMBOLS), address(NAMES)) else { return Vec::new() };
    let lists = [(CALLS, CALLS_BYTES, 0), (OTHERS, OTHERS_BYTES, number(NAMELESS))];
    let mut entries = Vec::new();
    for (list, bytes, skipped) in lists {
        let Some(list) = address(list).map(|list| list as *const Relocation) else { continue };
        for at in skipped..number(bytes) / size_of::<Relocation>() {
            // SAFETY: the table says how many there are.
            let relocation = unsafe { &*list.add(at) };
            if !matches!(relocation.info & u64::from(u32::MAX), GLOBAL_DATA | JUMP_SLOT) {
                continue;
            }
            let symbol = symbols as *const libc::Elf64_Sym;
            // SAFETY: the loader reads the same symbol and its name.
            let name = unsafe {
                let symbol = &*symbol.add((relocation.info >> 32) as usize);
                CStr::from_ptr((names + symbol.st_name as usize) as *const c_char)
            };
            let entry = base.wrapping_add(relocation.offset as usize);
            let pair = pairs.get(name.to_bytes()).filter(|_| range.contains(&entry) && entry.is_multiple_of(8));
            entries.extend(pair.map(|pair| (entry, *pair)));
        }
    }
    entries
}
