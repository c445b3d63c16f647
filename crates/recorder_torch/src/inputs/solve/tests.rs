//! A made-up PyTorch: its objects are drawn in bytes, with fields at places that the solver must find.

use super::*;

const TENSOR_TAG: u32 = 1;
const DOUBLE: u32 = 3;
const COMPLEX: u32 = 4;
const INT: u32 = 5;
const BOOL: u32 = 10;
const TEXT: u32 = 12;
const LIST: u32 = 14;
const TENSORS: u64 = 0x7000_0000;
const INTS: u64 = 0x7000_1000;

fn put(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

fn value(tag: u32, payload: u64) -> SeenValue {
    SeenValue { payload, tag, object: [0; OBJECT_BYTES], targets: vec![[0; TARGET_BYTES]; OBJECT_BYTES / 8] }
}

fn list(items: &[(u32, u64)], item_type: u64) -> SeenValue {
    let mut value = value(LIST, 0x5000_0000);
    let begin = 0x6000_0000;
    let end = begin + (items.len() * VALUE_BYTES) as u64;
    for (at, word) in [(16, begin), (24, end), (32, end), (40, item_type)] {
        put(&mut value.object, at, word);
    }
    for (at, (tag, payload)) in items.iter().enumerate() {
        put(&mut value.targets[2], at * VALUE_BYTES, *payload);
        put(&mut value.targets[2], at * VALUE_BYTES + 8, u64::from(*tag));
    }
    value
}

fn complex(real: f64, imaginary: f64) -> SeenValue {
    let mut value = value(COMPLEX, 0x5000_0000);
    put(&mut value.object, 16, real.to_bits());
    put(&mut value.object, 24, imaginary.to_bits());
    value
}

fn text(text: &str) -> SeenValue {
    let mut value = value(TEXT, 0x5000_0000);
    put(&mut value.object, 24, text.len() as u64);
    value.targets[2][..text.len()].copy_from_slice(text.as_bytes());
    value
}

fn call(values: Vec<(SeenValue, Known)>) -> (SeenCall, Vec<Known>) {
    let (values, known) = values.into_iter().unzip();
    (SeenCall { values, keywords: Some(224) }, known)
}

fn calls() -> Vec<(SeenCall, Vec<Known>)> {
    let ints = |numbers: &[i64]| {
        let items: Vec<_> = numbers.iter().map(|number| (INT, *number as u64)).collect();
        (list(&items, INTS), Known::Ints(numbers.into()))
    };
    let tensors = |addresses: &[usize]| {
        let items: Vec<_> = addresses.iter().map(|address| (TENSOR_TAG, *address as u64)).collect();
        (list(&items, TENSORS), Known::Tensors(addresses.into()))
    };
    vec![
        call(vec![ints(&[3, 5, 7]), (value(DOUBLE, 1.5_f64.to_bits()), Known::Double(1.5)), (value(0, 9), Known::Any)]),
        call(vec![ints(&[11]), (value(BOOL, 0xff01), Known::Bool(true)), (value(BOOL, 0), Known::Bool(false))]),
        call(vec![ints(&[2, 4]), (complex(2.5, 3.5), Known::Complex(2.5, 3.5))]),
        call(vec![tensors(&[0x9000, 0xa000]), (value(INT, -9_i64 as u64), Known::Int(-9))]),
        call(vec![tensors(&[0xa000]), (text("constant"), Known::Text("constant"))]),
    ]
}

fn tensor(sizes: &[i64], strides: &[i64], dtype: u16, policy: u8, class: u64) -> SeenTensor {
    let mut bytes = [0; TENSOR_BYTES];
    put(&mut bytes, 0, class);
    put(&mut bytes, 56, sizes.len() as u64);
    let is_inner = sizes.len() <= INNER_DIMS;
    if is_inner {
        sizes.iter().enumerate().for_each(|(axis, size)| put(&mut bytes, 64 + axis * 8, *size as u64));
        strides.iter().enumerate().for_each(|(axis, stride)| put(&mut bytes, 104 + axis * 8, *stride as u64));
    }
    bytes[160..162].copy_from_slice(&dtype.to_le_bytes());
    bytes[166] = 0x21 | policy << 2;
    let outer = if is_inner { Vec::new() } else { vec![(64, sizes.iter().chain(strides).copied().collect())] };
    let (sizes, strides) = (sizes.to_vec(), strides.to_vec());
    SeenTensor { bytes, sizes, strides, dtype, policy, is_plain: class == 0x1000, outer }
}

fn tensors() -> Vec<SeenTensor> {
    vec![
        tensor(&[13, 29], &[29, 1], 6, 0, 0x1000),
        tensor(&[5, 3], &[1, 5], 7, 0, 0x1000),
        tensor(&[], &[], 4, 0, 0x1000),
        tensor(&[3, 4, 1, 2, 6, 5], &[9, 8, 7, 6, 5, 4], 15, 0, 0x1000),
        tensor(&[11, 3], &[], 6, 1, 0x1000),
        tensor(&[11, 3], &[], 6, 2, 0x1000),
        tensor(&[8], &[], 6, 1, 0x2000),
    ]
}

fn unclear(field: &'static str, is_ambiguous: bool) -> Result<InputsLayout, Refusal> {
    Err(Refusal::InputsUnclear { field, is_ambiguous })
}

#[test]
fn one_explanation_is_used() {
    let layout = solve(&calls(), &tensors()).expect("there is one");
    let offsets = (layout.list_items, layout.complex_value, layout.text_value, layout.keywords);
    assert_eq!(offsets, (16, 16, Some(16), Some(224)));
    assert_eq!((layout.sizes, layout.dtype, layout.policy_bit), (56, 160, 166 * 8 + 2));
    assert_eq!((layout.tensor_type, layout.plain_class), (TENSORS as usize, 0x1000));
    let kind = |tag: u32| layout.kinds[tag as usize];
    assert_eq!([TENSOR_TAG, DOUBLE, COMPLEX].map(kind), [Kind::Tensor, Kind::Double, Kind::Complex]);
    assert_eq!([INT, BOOL, TEXT, LIST].map(kind), [Kind::Int, Kind::Bool, Kind::Text, Kind::List]);
    assert_eq!(layout.kinds.iter().filter(|kind| **kind == Kind::Other).count(), TAGS - 7);
}

#[test]
fn a_tag_of_two_meanings_is_refused() {
    let mut calls = calls();
    calls[0].0.values[1].tag = BOOL;
    assert_eq!(solve(&calls, &tensors()), unclear("tag of a value", true));
    calls[0].0.values[1].tag = 64;
    assert_eq!(solve(&calls, &tensors()), unclear("tag of a value", true));
}

#[test]
fn a_value_that_was_not_passed_is_refused() {
    let mut calls = calls();
    calls[3].0.values[1].payload = 9;
    assert_eq!(solve(&calls, &tensors()), unclear("value that was passed", false));
}

#[test]
fn lists_that_cannot_be_explained_are_refused() {
    let mut damaged = calls();
    put(&mut damaged[0].0.values[0].targets[2], 16, 6);
    assert_eq!(solve(&damaged, &tensors()), unclear("items of a list", false));
    let mut alike = calls();
    put(&mut alike[4].0.values[0].object, 40, INTS);
    assert_eq!(solve(&alike, &tensors()), unclear("type of a list", true));
}

#[test]
fn two_places_for_sizes_are_refused() {
    let tensors: Vec<SeenTensor> = tensors()
        .into_iter()
        .filter(|tensor| tensor.sizes.len() < 2)
        .map(|mut tensor| {
            put(&mut tensor.bytes, 24, tensor.sizes.len() as u64);
            tensor
        })
        .collect();
    assert_eq!(solve(&calls(), &tensors), unclear("sizes of a tensor", true));
}

#[test]
fn another_scalar_type_or_policy_is_refused() {
    let mut damaged = tensors();
    damaged[0].bytes[160] = 5;
    assert_eq!(solve(&calls(), &damaged), unclear("scalar type of a tensor", false));
    let mut damaged = tensors();
    damaged[4].bytes[166] ^= 1 << 2;
    assert_eq!(solve(&calls(), &damaged), unclear("way a tensor keeps its sizes", false));
    let mut damaged = tensors();
    damaged[6].bytes[0..8].copy_from_slice(&0x1000_u64.to_le_bytes());
    assert_eq!(solve(&calls(), &damaged), unclear("class of a tensor", true));
}

#[test]
fn texts_and_keywords_are_not_needed() {
    let mut calls = calls();
    calls[4].0.values[1].targets[2] = [0; TARGET_BYTES];
    calls[2].0.keywords = None;
    let layout = solve(&calls, &tensors()).expect("the rest is clear");
    assert_eq!((layout.text_value, layout.keywords), (None, None));
}
