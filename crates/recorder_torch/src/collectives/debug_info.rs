//! The object `torch::ParamCommsDebugInfo` that PyTorch keeps for the thread while a collective is announced.
//!
//! Where its fields lie is found from two objects that PyTorch's own constructor makes of known values.

use super::{element_type, list};
use crate::solve::Refusal;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};
use stepscope_recorder::collectives::describe as describe_pairs;

/// Where the fields of the object lie, in bytes from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InfoLayout {
    /// The group's name, a string.
    pub group: usize,
    /// What the group is for, a string.
    pub group_description: usize,
    /// The rank in the group, or that of the other side, i32.
    pub rank: usize,
    /// Ranks in the group, i32.
    pub group_size: usize,
    /// The collective's name, a string.
    pub name: usize,
    /// Elements that go in, i64.
    pub input_elements: usize,
    /// Elements that come out, i64.
    pub output_elements: usize,
    /// The element type, u8.
    pub dtype: usize,
    /// How the input is split, a list of i64.
    pub input_split_sizes: usize,
    /// How the output is split, a list of i64.
    pub output_split_sizes: usize,
    /// The group's ranks, a list of i64.
    pub group_ranks: usize,
    /// Whether the caller goes on before it is done, bool; 2.11 and earlier do not say.
    pub is_async: Option<usize>,
    /// Its number in the group, i64; releases before 2.11 or so have none.
    pub sequence_number: Option<usize>,
}

/// Bytes of an object that are looked at.
pub(super) const SPECIMEN_BYTES: usize = 512;

/// What an object was made of.
pub(super) struct Values {
    pub(super) texts: [&'static str; 3],
    pub(super) rank: i32,
    pub(super) group_size: i32,
    pub(super) first_rank: i32,
    pub(super) rank_stride: i32,
    pub(super) elements: [i64; 2],
    pub(super) dtype: i8,
    pub(super) splits: [&'static [i64]; 2],
    /// `None`: the constructor does not know it.
    pub(super) is_async: Option<bool>,
}

/// An object that was made of known values, as it lies in memory.
pub(super) struct Specimen {
    pub(super) values: Values,
    /// Its address.
    pub(super) address: u64,
    pub(super) bytes: Vec<u8>,
    /// What the lists hold that begin at an offset.
    pub(super) lists: Vec<(usize, Vec<i64>)>,
}

impl Specimen {
    fn word(&self, at: usize) -> u64 {
        self.bytes.get(at..at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
    }

    fn int(&self, at: usize) -> i32 {
        self.bytes.get(at..at + 4).map_or(0, |word| i32::from_le_bytes(word.try_into().unwrap_or_default()))
    }

    /// True when a short string lies at `at`: its characters are inside the object.
    fn is_text(&self, at: usize, text: &str) -> bool {
        self.word(at) == self.address + at as u64 + 16
            && self.word(at + 8) == text.len() as u64
            && self.bytes.get(at + 16..at + 16 + text.len()) == Some(text.as_bytes())
    }

    fn is_list(&self, at: usize, expected: &[i64]) -> bool {
        self.lists.iter().any(|(found, values)| *found == at && values == expected)
    }

    fn group_ranks(&self) -> Vec<i64> {
        let Values { first_rank, rank_stride, group_size, .. } = self.values;
        (0..i64::from(group_size)).map(|at| i64::from(first_rank) + at * i64::from(rank_stride)).collect()
    }
}

/// The one layout that explains all objects.
pub(super) fn solve(seen: &[Specimen]) -> Result<InfoLayout, Refusal> {
    let only = |field: &'static str, step: usize, is: &dyn Fn(&Specimen, usize) -> bool| {
        let at = (0..SPECIMEN_BYTES).step_by(step);
        let candidates: Vec<usize> = at.filter(|at| seen.iter().all(|seen| is(seen, *at))).collect();
        match candidates[..] {
            [offset] if seen.len() > 1 => Ok(offset),
            _ => Err(Refusal::Ambiguous { field, candidates }),
        }
    };
    Ok(InfoLayout {
        group: only("group's name", 8, &|seen, at| seen.is_text(at, seen.values.texts[0]))?,
        group_description: only("group's description", 8, &|seen, at| seen.is_text(at, seen.values.texts[1]))?,
        rank: only("rank", 4, &|seen, at| seen.int(at) == seen.values.rank)?,
        group_size: only("group's size", 4, &|seen, at| seen.int(at) == seen.values.group_size)?,
        name: only("collective's name", 8, &|seen, at| seen.is_text(at, seen.values.texts[2]))?,
        input_elements: only("elements in", 8, &|seen, at| seen.word(at) as i64 == seen.values.elements[0])?,
        output_elements: only("elements out", 8, &|seen, at| seen.word(at) as i64 == seen.values.elements[1])?,
        dtype: only("element type", 1, &|seen, at| seen.bytes[at] == seen.values.dtype as u8)?,
        input_split_sizes: only("input's splits", 8, &|seen, at| seen.is_list(at, seen.values.splits[0]))?,
        output_split_sizes: only("output's splits", 8, &|seen, at| seen.is_list(at, seen.values.splits[1]))?,
        group_ranks: only("group's ranks", 8, &|seen, at| seen.is_list(at, &seen.group_ranks()))?,
        is_async: only("asynchrony", 1, &|seen, at| Some(seen.bytes[at]) == seen.values.is_async.map(u8::from)).ok(),
        // Set later: a new object has -1 there.
        sequence_number: only("sequence number", 8, &|seen, at| seen.word(at) as i64 == -1).ok(),
    })
}

/// What is needed to read the object of the calling thread.
pub(super) struct Reader {
    pub(super) layout: InfoLayout,
    /// `c10::ThreadLocalDebugInfo::get(kind)`.
    pub(super) get: unsafe extern "C" fn(kind: usize) -> *const u8,
    /// Which object: a value of `c10::DebugInfoKind`.
    pub(super) kind: usize,
    /// What the first word of such an object is.
    pub(super) vtable: usize,
}

static READER: AtomicPtr<Reader> = AtomicPtr::new(std::ptr::null_mut());

impl Reader {
    pub(super) fn make_ready(self) {
        READER.store(Box::into_raw(Box::new(self)), Ordering::Release);
    }

    pub(super) fn is_ready() -> bool {
        !READER.load(Ordering::Acquire).is_null()
    }
}

/// Describes the collective that the calling thread announces.
///
/// # Safety
/// Called while its range begins.
pub(super) unsafe fn describe() -> Option<(String, Option<i64>)> {
    // SAFETY: null, or a reader that is never freed or changed.
    let reader = unsafe { READER.load(Ordering::Acquire).as_ref()? };
    // SAFETY: an exported function that only looks; the object lives until the range ends. Its first word says that its
    // layout is known.
    unsafe {
        let object = (reader.get)(reader.kind);
        if object.is_null() || *object.cast::<usize>() != reader.vtable {
            return None;
        }
        Some(Object(object).describe(&reader.layout))
    }
}

/// A live object of a proven layout.
struct Object(*const u8);

impl Object {
    /// # Safety
    /// The object lives, and has this layout.
    unsafe fn describe(&self, layout: &InfoLayout) -> (String, Option<i64>) {
        // SAFETY: the caller's promise, which the probe proved for each field.
        unsafe {
            let name = self.text(layout.name);
            let rank = self.read::<i32>(layout.rank);
            let ranks = self.list(layout.group_ranks);
            let mut pairs = vec![
                ("dtype", element_type(i32::from(self.read::<u8>(layout.dtype))).unwrap_or("").to_string()),
                ("input_elements", self.read::<i64>(layout.input_elements).to_string()),
                ("output_elements", self.read::<i64>(layout.output_elements).to_string()),
                ("input_split_sizes", list(self.list(layout.input_split_sizes))),
                ("output_split_sizes", list(self.list(layout.output_split_sizes))),
                ("group", self.text(layout.group)),
                ("group_description", self.text(layout.group_description)),
                ("group_size", self.read::<i32>(layout.group_size).to_string()),
                ("group_ranks", list(ranks)),
                ("rank", rank.to_string()),
            ];
            pairs.extend(layout.is_async.map(|at| ("is_async", (self.read::<u8>(at) != 0).to_string())));
            // From one rank to another, the rank is that of the other side.
            let peer = usize::try_from(rank).ok().and_then(|rank| ranks.get(rank));
            let side = match name.as_str() {
                "send" => Some("destination_rank"),
                "recv" => Some("source_rank"),
                _ => None,
            };
            pairs.extend(side.zip(peer).map(|(side, peer)| (side, peer.to_string())));
            pairs.insert(0, ("name", name));
            pairs.retain(|(_, value)| !value.is_empty());
            let number = layout.sequence_number.map(|at| self.read::<i64>(at)).filter(|number| *number >= 0);
            (describe_pairs(pairs), number)
        }
    }

    unsafe fn read<T: Copy>(&self, at: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(at).cast::<T>().read_unaligned() }
    }

    unsafe fn text(&self, at: usize) -> String {
        const LONGEST: usize = 512;
        // SAFETY: a string is an address and a length.
        unsafe {
            let (text, len) = (self.read::<*const u8>(at), self.read::<usize>(at + 8));
            let bytes = if text.is_null() { &[] } else { std::slice::from_raw_parts(text, len.min(LONGEST)) };
            String::from_utf8_lossy(bytes).into_owned()
        }
    }

    unsafe fn list(&self, at: usize) -> &[i64] {
        // SAFETY: a list is the addresses of its begin and its end.
        unsafe {
            let (begin, end) = (self.read::<*const i64>(at), self.read::<usize>(at + 8));
            let len = end.saturating_sub(begin as usize) / 8;
            if begin.is_null() { &[] } else { std::slice::from_raw_parts(begin, len) }
        }
    }
}

/// A function pointer of the type of [`Reader::get`] from an address that `dlsym` gave.
///
/// # Safety
/// It is the address of such a function.
pub(super) unsafe fn getter(address: *const c_void) -> unsafe extern "C" fn(usize) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe { std::mem::transmute(address) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object of a made-up layout, at a made-up address.
    fn specimen(which: usize) -> Specimen {
        let values = [first(), second()].into_iter().nth(which).unwrap();
        let address = 0x7000_0000 + 4096 * which as u64;
        let mut bytes = vec![0xa5; SPECIMEN_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        for (at, text) in [(8, values.texts[1]), (40, values.texts[0]), (80, values.texts[2])] {
            put(at, &(address + at as u64 + 16).to_le_bytes());
            put(at + 8, &(text.len() as u64).to_le_bytes());
            put(at + 16, text.as_bytes());
        }
        put(72, &values.rank.to_le_bytes());
        put(76, &values.group_size.to_le_bytes());
        put(112, &values.elements[0].to_le_bytes());
        put(120, &values.elements[1].to_le_bytes());
        put(128, &[values.dtype as u8]);
        put(200, &[u8::from(values.is_async.unwrap_or(false))]);
        put(208, &(-1_i64).to_le_bytes());
        let mut specimen = Specimen { values, address, bytes, lists: vec![] };
        let [input, output] = specimen.values.splits;
        specimen.lists = vec![(136, input.to_vec()), (160, output.to_vec()), (184, specimen.group_ranks())];
        specimen
    }

    fn first() -> Values {
        Values {
            texts: ["one", "two", "three"],
            rank: 1_001,
            group_size: 61,
            first_rank: 5,
            rank_stride: 2,
            elements: [1_002, 1_003],
            dtype: 7,
            splits: [&[4, 5], &[6]],
            is_async: Some(true),
        }
    }

    fn second() -> Values {
        let (texts, splits): (_, [&'static [i64]; 2]) = (["four", "five", "six"], [&[7], &[8, 9]]);
        let is_async = Some(false);
        Values { texts, rank: 2_001, group_size: 67, elements: [2_002, 2_003], dtype: 11, splits, is_async, ..first() }
    }

    #[test]
    fn two_objects_tell_where_every_field_is() {
        let found = solve(&[specimen(0), specimen(1)]).unwrap();
        assert_eq!((found.group, found.group_description, found.name), (40, 8, 80));
        assert_eq!((found.rank, found.group_size, found.dtype, found.is_async), (72, 76, 128, Some(200)));
        assert_eq!((found.input_split_sizes, found.output_split_sizes, found.group_ranks), (136, 160, 184));
        assert_eq!((found.input_elements, found.output_elements, found.sequence_number), (112, 120, Some(208)));
    }

    #[test]
    fn a_field_in_two_places_or_in_none_is_refused() {
        let mut both = [specimen(0), specimen(1)];
        both.iter_mut().for_each(|seen| seen.bytes.copy_within(72..76, 300));
        let refusal = Refusal::Ambiguous { field: "rank", candidates: vec![72, 300] };
        assert_eq!(solve(&both), Err(refusal));
        let mut both = [specimen(0), specimen(1)];
        both[1].bytes[128] ^= 1;
        assert_eq!(solve(&both), Err(Refusal::Ambiguous { field: "element type", candidates: vec![] }));
        assert!(solve(&[specimen(0)]).is_err(), "one object alone proves nothing");
    }

    #[test]
    fn what_older_releases_do_not_have_is_left_out_and_the_rest_is_read() {
        let mut both = [specimen(0), specimen(1)];
        both.iter_mut().for_each(|seen| (seen.values.is_async, _) = (None, seen.bytes[208..216].fill(0)));
        let found = solve(&both).unwrap();
        assert_eq!((found.is_async, found.sequence_number, found.dtype), (None, None, 128));
    }
}
