//! Makes two objects of known values with PyTorch's constructor, to learn where it puts them.

use super::debug_info::{InfoLayout, Reader, SPECIMEN_BYTES, Specimen, Values, getter, solve};
use crate::api::{library, symbol};
use crate::peek::Peek;
use crate::solve::Refusal;
use std::ffi::c_void;
use std::path::Path;

/// A short `std::string`: its characters are inside it.
#[repr(C)]
struct ShortText {
    text: *const u8,
    len: usize,
    characters: [u8; 16],
}

/// A `std::vector<int64_t>`.
#[repr(C)]
struct List {
    begin: *const i64,
    end: *const i64,
    capacity: *const i64,
}

/// The constructor of `torch::ParamCommsDebugInfo`. Strings, lists and the pair of names are passed by hidden reference.
type Construct = unsafe extern "C" fn(
    this: *mut u8,
    // `std::tuple` lays out its members backwards.
    description_and_name: *mut [ShortText; 2],
    rank: i32,
    collective: *mut ShortText,
    input_elements: i64,
    output_elements: i64,
    dtype: i8,
    input_splits: *mut List,
    output_splits: *mut List,
    first_rank: i32,
    rank_stride: i32,
    group_size: i32,
    // On the stack, where a constructor that does not know it does not look.
    is_async: bool,
);

/// Its name, with and without the last argument, which came after 2.11.
const CONSTRUCT: [&str; 2] = [
    concat!(
        "_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES7_EEiOS7_llN3c10",
        "10ScalarTypeESt6vectorIlSaIlEESE_iiib"
    ),
    concat!(
        "_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES7_EEiOS7_llN3c10",
        "10ScalarTypeESt6vectorIlSaIlEESE_iii"
    ),
];
const VTABLE: &str = "_ZTVN5torch19ParamCommsDebugInfoE";
const GET: &str = "_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE";
const KIND: &str = "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE";
/// The kind's number in releases in which kinds are numbers. The object's first word tells when that is wrong.
const KIND_NUMBER: usize = 4;
/// Bytes given to an object: more than it can have.
const OBJECT_BYTES: usize = 4096;

/// Finds out how PyTorch keeps what a collective announces, and describes such collectives from now on.
///
/// # Errors
/// When nothing is certain: collectives that are announced are then recorded without description.
pub fn probe_collectives(folder: &Path) -> Result<InfoLayout, Refusal> {
    let library = library(folder, "libtorch_cpu.so")?;
    // SAFETY: the mangled names fix the types.
    let (construct, is_newest, vtable, get) = unsafe {
        let [newest, older] = CONSTRUCT.map(|name| symbol::<Construct>(library, name));
        let is_newest = newest.is_ok();
        let construct = newest.or_else(|refusal| older.map_err(|_| refusal))?;
        (construct, is_newest, symbol::<usize>(library, VTABLE)?, getter(symbol::<*const c_void>(library, GET)?))
    };
    // SAFETY: where it is exported, it is one pointer.
    let kind = unsafe { symbol::<*const usize>(library, KIND).map_or(KIND_NUMBER, |kind| *kind) };
    let peek = Peek::new().map_err(|error| Refusal::CannotLook { reason: error.to_string() })?;
    let made_of = |values: Values| Values { is_async: values.is_async.filter(|_| is_newest), ..values };
    // SAFETY: the constructor's own type; all values live.
    let seen = unsafe { [first(), second()].map(|values| make(construct, made_of(values), &peek)) };
    // The first word of a table's address points behind its two head words.
    let vtable = vtable + 16;
    let first_word = |seen: &Specimen| usize::from_le_bytes(seen.bytes[..8].try_into().unwrap_or_default());
    if seen.iter().any(|seen| first_word(seen) != vtable) {
        return Err(Refusal::Ambiguous { field: "type of a collective's facts", candidates: vec![] });
    }
    let layout = solve(&seen)?;
    if !Reader::is_ready() {
        Reader { layout, get, kind, vtable }.make_ready();
    }
    Ok(layout)
}

fn first() -> Values {
    Values {
        texts: ["first group", "first purpose", "first work"],
        rank: 0x1357_9bd1,
        group_size: 61,
        first_rank: 0x0101_2345,
        rank_stride: 3,
        elements: [0x1234_5678_9abc, 0x2345_6789_abcd],
        dtype: 7,
        splits: [&[11, 12, 13], &[21, 22]],
        is_async: Some(true),
    }
}

fn second() -> Values {
    Values {
        texts: ["group two", "purpose two", "work two"],
        rank: 0x2468_ace1,
        group_size: 67,
        first_rank: 0x0202_3456,
        rank_stride: 5,
        elements: [0x3456_789a_bcde, 0x4567_89ab_cdef],
        dtype: 11,
        splits: [&[31, 32], &[41, 42, 43, 44]],
        is_async: Some(false),
    }
}

/// Makes an object and looks at it. It is never destroyed: its lists are not all of one allocator.
///
/// # Safety
/// `construct` is the constructor.
unsafe fn make(construct: Construct, values: Values, peek: &Peek) -> Specimen {
    let object: &'static mut [u64; OBJECT_BYTES / 8] = Box::leak(Box::new([0xa5a5_a5a5_a5a5_a5a5; OBJECT_BYTES / 8]));
    let object = object.as_mut_ptr().cast::<u8>();
    let [group, purpose, work] = values.texts;
    let mut names = [short(purpose), short(group)];
    let mut work = short(work);
    names.iter_mut().chain([&mut work]).for_each(point_at_itself);
    let mut splits = values.splits.map(list);
    let [input, output] = &mut splits;
    // SAFETY: the caller's promise; the object has more room than it needs.
    unsafe {
        construct(
            object,
            &mut names,
            values.rank,
            &mut work,
            values.elements[0],
            values.elements[1],
            values.dtype,
            input,
            output,
            values.first_rank,
            values.rank_stride,
            values.group_size,
            values.is_async.unwrap_or(false),
        );
    }
    // SAFETY: inside the leaked memory.
    let bytes = unsafe { std::slice::from_raw_parts(object, SPECIMEN_BYTES) }.to_vec();
    let lists = (0..SPECIMEN_BYTES - 24).step_by(8).filter_map(|at| Some((at, list_at(&bytes, at, peek)?)));
    Specimen { address: object as u64, lists: lists.collect(), bytes, values }
}

fn short(text: &str) -> ShortText {
    let mut characters = [0; 16];
    characters[..text.len()].copy_from_slice(text.as_bytes());
    ShortText { text: std::ptr::null(), len: text.len(), characters }
}

/// Only where it stays: a short text points into itself.
fn point_at_itself(text: &mut ShortText) {
    text.text = text.characters.as_ptr();
}

/// A list that may be taken over and is never freed.
fn list(values: &'static [i64]) -> List {
    let values: &'static [i64] = Box::leak(values.to_vec().into_boxed_slice());
    let range = values.as_ptr_range();
    List { begin: range.start, end: range.end, capacity: range.end }
}

/// The numbers of a list that may lie at `at`, when memory at its addresses can be read.
fn list_at(bytes: &[u8], at: usize, peek: &Peek) -> Option<Vec<i64>> {
    let word = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).unwrap_or_default();
    let (begin, end, capacity) = (word(at), word(at + 8), word(at + 16));
    let len = end.checked_sub(begin).filter(|len| (8..=1024).contains(len) && len % 8 == 0)? as usize;
    if capacity < end || begin % 8 != 0 {
        return None;
    }
    let mut values = vec![0; len];
    let copied = peek.copy(std::ptr::with_exposed_provenance(begin as usize), &mut values);
    let numbers = values.chunks_exact(8).map(|word| i64::from_le_bytes(word.try_into().unwrap_or_default()));
    (copied == len).then(|| numbers.collect())
}
