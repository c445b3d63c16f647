//! From what known inputs looked like in memory to where everything is. Pure: bytes in, places or a reason out.

use crate::Refusal;

/// Bytes of an `IValue`: eight of payload, then its tag.
pub(crate) const VALUE_BYTES: usize = 16;
/// Tensors of no more dimensions have their sizes and strides inside.
pub(crate) const INNER_DIMS: usize = 5;
/// Bytes of a tensor that are looked at: no release's is longer.
pub(crate) const TENSOR_BYTES: usize = 192;
/// Bytes of any other object that are looked at.
pub(crate) const OBJECT_BYTES: usize = 96;
/// Bytes that are looked at behind each pointer of such an object.
pub(crate) const TARGET_BYTES: usize = 64;
/// Tags are smaller in all releases.
const TAGS: usize = 64;

/// What a value is, as far as it is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Other,
    Tensor,
    List,
    Int,
    Double,
    Bool,
    Complex,
    Text,
}

/// Where the parts of inputs are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InputsLayout {
    /// What each tag means.
    pub(crate) kinds: [Kind; TAGS],
    /// Begin and end of a list's items; what stands for their type follows 24 bytes later.
    pub(crate) list_items: usize,
    /// What stands for the type of a list of tensors.
    pub(crate) tensor_type: usize,
    /// The two halves of a complex number.
    pub(crate) complex_value: usize,
    /// A text's begin and length; `None`: texts are not read.
    pub(crate) text_value: Option<usize>,
    /// The number of a tensor's dimensions, before its sizes and strides.
    pub(crate) sizes: usize,
    /// The number of its scalar type, u16.
    pub(crate) dtype: usize,
    /// Two bits: 0 when sizes and strides stand in the tensor, 1 when only sizes do.
    pub(crate) policy_bit: usize,
    /// What plain tensors begin with: the address of their class's virtual functions.
    pub(crate) plain_class: usize,
    /// In the object of a range: its inputs with names; `None`: they are not read.
    pub(crate) keywords: Option<usize>,
}

/// A tensor whose sizes are known, as the probe saw it.
pub(crate) struct SeenTensor {
    pub(crate) bytes: [u8; TENSOR_BYTES],
    pub(crate) sizes: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) dtype: u16,
    /// What its two bits must be.
    pub(crate) policy: u8,
    /// True when it is of the plain class.
    pub(crate) is_plain: bool,
    /// What stands where the first pointer behind the number of dimensions would lead, for each place.
    pub(crate) outer: Vec<(usize, Vec<i64>)>,
}

/// A value that was passed to a known op.
#[derive(Clone, Debug)]
pub(crate) struct SeenValue {
    pub(crate) payload: u64,
    pub(crate) tag: u32,
    /// What its payload points to, and what that points to, by word.
    pub(crate) object: [u8; OBJECT_BYTES],
    pub(crate) targets: Vec<[u8; TARGET_BYTES]>,
}

/// A known op or range, as the probe saw it begin.
#[derive(Clone, Debug)]
pub(crate) struct SeenCall {
    pub(crate) values: Vec<SeenValue>,
    /// Where its inputs with names would be, relative to the object, when an empty map stands there.
    pub(crate) keywords: Option<usize>,
}

/// A value that is known because the probe passed it.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    Int(i64),
    Double(f64),
    Bool(bool),
    Complex(f64, f64),
    Text(&'static str),
    Ints(Vec<i64>),
    /// Addresses.
    Tensors(Vec<usize>),
    /// Something else.
    Any,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
}

fn only<T: Copy>(field: &'static str, mut candidates: impl Iterator<Item = T>) -> Result<T, Refusal> {
    match (candidates.next(), candidates.next()) {
        (Some(found), None) => Ok(found),
        (None, _) => Err(Refusal::InputsUnclear { field, is_ambiguous: false }),
        _ => Err(Refusal::InputsUnclear { field, is_ambiguous: true }),
    }
}

/// The one layout that explains everything seen.
pub(crate) fn solve(calls: &[(SeenCall, Vec<Known>)], tensors: &[SeenTensor]) -> Result<InputsLayout, Refusal> {
    let pairs: Vec<(&SeenValue, &Known)> =
        calls.iter().flat_map(|(call, known)| call.values.iter().zip(known)).collect();
    let (sizes, dtype, policy_bit) = (sizes_of(tensors)?, dtype_of(tensors)?, policy_of(tensors)?);
    let list_items = list_items(&pairs)?;
    let item = |value: &SeenValue, at| {
        let target = &value.targets[list_items / 8];
        (word(target, at * VALUE_BYTES), word(target, at * VALUE_BYTES + 8) as u32)
    };
    let mut kinds = [Kind::Other; TAGS];
    let mut learn = |tag: u32, kind| match kinds.get_mut(tag as usize) {
        Some(known) if *known == Kind::Other || *known == kind => {
            *known = kind;
            Ok(())
        }
        _ => Err(Refusal::InputsUnclear { field: "tag of a value", is_ambiguous: true }),
    };
    for (value, known) in &pairs {
        let kind = match known {
            Known::Int(number) if value.payload as i64 == *number => Kind::Int,
            Known::Double(number) if value.payload == number.to_bits() => Kind::Double,
            Known::Bool(flag) if value.payload as u8 == u8::from(*flag) => Kind::Bool,
            Known::Complex(..) => Kind::Complex,
            Known::Text(_) => Kind::Text,
            Known::Ints(_) => {
                learn(item(value, 0).1, Kind::Int)?;
                Kind::List
            }
            Known::Tensors(_) => {
                learn(item(value, 0).1, Kind::Tensor)?;
                Kind::List
            }
            Known::Any => continue,
            _ => return Err(Refusal::InputsUnclear { field: "value that was passed", is_ambiguous: false }),
        };
        learn(value.tag, kind)?;
    }
    Ok(InputsLayout {
        kinds,
        list_items,
        tensor_type: tensor_type(&pairs, list_items)?,
        complex_value: complex_value(&pairs)?,
        text_value: text_value(&pairs),
        sizes,
        dtype,
        policy_bit,
        plain_class: plain_class(tensors)?,
        keywords: keywords(calls),
    })
}

/// Where lists have begin and end of their items.
fn list_items(pairs: &[(&SeenValue, &Known)]) -> Result<usize, Refusal> {
    let explains = |value: &SeenValue, known: &Known, at: usize| {
        let payloads: Vec<u64> = match known {
            Known::Ints(numbers) => numbers.iter().map(|number| *number as u64).collect(),
            Known::Tensors(addresses) => addresses.iter().map(|address| *address as u64).collect(),
            _ => return true,
        };
        let (begin, end, room) = (word(&value.object, at), word(&value.object, at + 8), word(&value.object, at + 16));
        let target = &value.targets[at / 8];
        let has_tag = |item: usize| word(target, item * VALUE_BYTES + 8) as u32 == word(target, 8) as u32;
        let is_item = |(item, payload): (usize, &u64)| word(target, item * VALUE_BYTES) == *payload && has_tag(item);
        end.wrapping_sub(begin) == (payloads.len() * VALUE_BYTES) as u64
            && room >= end
            && payloads.iter().enumerate().all(is_item)
    };
    let offsets = (8..OBJECT_BYTES - 32).step_by(8);
    only("items of a list", offsets.filter(|at| pairs.iter().all(|(value, known)| explains(value, known, *at))))
}

/// What stands for the type of tensors' lists: the same for all of them, and something else for lists of integers.
fn tensor_type(pairs: &[(&SeenValue, &Known)], list_items: usize) -> Result<usize, Refusal> {
    let types = |is_wanted: fn(&Known) -> bool| -> Vec<u64> {
        let mut types: Vec<u64> = pairs
            .iter()
            .filter(|(_, known)| is_wanted(known))
            .map(|(value, _)| word(&value.object, list_items + 24))
            .collect();
        types.dedup();
        types
    };
    let (tensors, ints) =
        (types(|known| matches!(known, Known::Tensors(_))), types(|known| matches!(known, Known::Ints(_))));
    match (&tensors[..], &ints[..]) {
        ([tensor], [int]) if tensor != int && *tensor > 4096 && *int > 4096 => Ok(*tensor as usize),
        _ => Err(Refusal::InputsUnclear { field: "type of a list", is_ambiguous: true }),
    }
}

fn complex_value(pairs: &[(&SeenValue, &Known)]) -> Result<usize, Refusal> {
    let explains = |at: usize| {
        pairs.iter().all(|(value, known)| match known {
            Known::Complex(real, imaginary) => {
                word(&value.object, at) == real.to_bits() && word(&value.object, at + 8) == imaginary.to_bits()
            }
            _ => true,
        })
    };
    only("complex number", (8..OBJECT_BYTES - 16).step_by(8).filter(|at| explains(*at)))
}

/// Where texts have begin and length. They only matter for inputs with names: without them the rest is recorded.
fn text_value(pairs: &[(&SeenValue, &Known)]) -> Option<usize> {
    let texts = || {
        pairs.iter().filter_map(|(value, known)| if let Known::Text(text) = known { Some((value, text)) } else { None })
    };
    let explains = |at: usize| {
        texts().all(|(value, text)| {
            word(&value.object, at + 8) == text.len() as u64 && value.targets[at / 8].starts_with(text.as_bytes())
        })
    };
    let offsets = (8..OBJECT_BYTES - 16).step_by(8);
    only("text", offsets.filter(|at| texts().next().is_some() && explains(*at))).ok()
}

/// Where an empty map stood in every range.
fn keywords(calls: &[(SeenCall, Vec<Known>)]) -> Option<usize> {
    let first = calls.first()?.0.keywords?;
    calls.iter().all(|(call, _)| call.keywords == Some(first)).then_some(first)
}

fn sizes_of(tensors: &[SeenTensor]) -> Result<usize, Refusal> {
    let explains = |tensor: &SeenTensor, at: usize| {
        let dims = tensor.sizes.len();
        let inner = |from: usize, numbers: &[i64]| {
            numbers.iter().enumerate().all(|(axis, number)| word(&tensor.bytes, from + axis * 8) as i64 == *number)
        };
        let outer = || {
            let numbers = tensor.outer.iter().find(|(place, _)| *place == at + 8).map(|(_, numbers)| numbers);
            numbers.is_some_and(|numbers| numbers.iter().eq(tensor.sizes.iter().chain(&tensor.strides)))
        };
        let is_inner = dims <= INNER_DIMS;
        word(&tensor.bytes, at) == dims as u64
            && if is_inner {
                inner(at + 8, &tensor.sizes) && inner(at + 8 + 8 * INNER_DIMS, &tensor.strides)
            } else {
                outer()
            }
    };
    let plain = || tensors.iter().filter(|tensor| tensor.policy == 0);
    let offsets = (8..TENSOR_BYTES - 8 * (2 * INNER_DIMS + 1)).step_by(8);
    only("sizes of a tensor", offsets.filter(|at| plain().all(|tensor| explains(tensor, *at))))
}

fn dtype_of(tensors: &[SeenTensor]) -> Result<usize, Refusal> {
    let code = |tensor: &SeenTensor, at: usize| u16::from_le_bytes([tensor.bytes[at], tensor.bytes[at + 1]]);
    let explains = |at: &usize| tensors.iter().all(|tensor| code(tensor, *at) == tensor.dtype);
    only("scalar type of a tensor", (8..TENSOR_BYTES - 1).step_by(2).filter(explains))
}

fn policy_of(tensors: &[SeenTensor]) -> Result<usize, Refusal> {
    // Both bits in one byte.
    let bits = |tensor: &SeenTensor, bit: usize| tensor.bytes[bit / 8] >> (bit % 8) & 3;
    let offsets = (64..TENSOR_BYTES * 8).filter(|bit| bit % 8 < 7);
    let explains = |bit: &usize| tensors.iter().all(|tensor| bits(tensor, *bit) == tensor.policy);
    only("way a tensor keeps its sizes", offsets.filter(explains))
}

fn plain_class(tensors: &[SeenTensor]) -> Result<usize, Refusal> {
    let mut classes: Vec<u64> =
        tensors.iter().filter(|tensor| tensor.is_plain).map(|tensor| word(&tensor.bytes, 0)).collect();
    classes.dedup();
    let class = only("class of a tensor", classes.into_iter())?;
    let is_other = |tensor: &SeenTensor| tensor.is_plain || word(&tensor.bytes, 0) != class;
    if !tensors.iter().all(is_other) {
        return Err(Refusal::InputsUnclear { field: "class of a tensor", is_ambiguous: true });
    }
    Ok(class as usize)
}

#[cfg(test)]
mod tests;
