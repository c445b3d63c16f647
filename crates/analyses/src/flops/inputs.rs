//! Shapes, types and values of an operator's inputs, read from their texts: once for each distinct text.

use super::Precision;
use stepscope_base::StringTable;
use stepscope_trace::OpInputs;

/// One tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tensor {
    /// Its shape.
    pub(crate) dims: Vec<i64>,
    /// Bytes of an element; `None` when its type is not known.
    pub(crate) element_bytes: Option<i64>,
    /// Elements in memory: what is expanded (stride 0) is stored once. `None` when absurd.
    pub(crate) stored: Option<i64>,
}

impl Tensor {
    /// Elements; `None` when absurd.
    pub(crate) fn elements(&self) -> Option<i64> {
        product(&self.dims)
    }

    /// Bytes to read all of it once.
    pub(crate) fn bytes(&self) -> Option<i64> {
        self.stored?.checked_mul(self.element_bytes?)
    }
}

/// The product of sizes; `None` when one is negative or it does not fit.
pub(crate) fn product(dims: &[i64]) -> Option<i64> {
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter().try_fold(1_i64, |all, dim| all.checked_mul(*dim).filter(|_| *dim >= 0))
}

/// One input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Input {
    /// A tensor.
    Tensor(Tensor),
    /// A list of tensors: their shapes.
    List(Vec<Vec<i64>>),
    /// No tensor.
    Value,
}

impl Input {
    fn has_negative_size(&self) -> bool {
        match self {
            Self::Tensor(tensor) => tensor.dims.iter().any(|size| *size < 0),
            Self::List(shapes) => shapes.iter().flatten().any(|size| *size < 0),
            Self::Value => false,
        }
    }
}

/// All inputs of an operator.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Inputs {
    inputs: Vec<Input>,
    values: Vec<String>,
    /// What its first tensor holds.
    pub(crate) precision: Option<Precision>,
}

impl Inputs {
    /// What the texts say; `None` when there is no text, it cannot be read, or a size is negative.
    pub(crate) fn read(strings: &StringTable, texts: OpInputs) -> Option<Self> {
        let dims = items(strings.get(texts.dims))?;
        let types = items(strings.get(texts.types)).unwrap_or_default();
        let strides = items(strings.get(texts.strides)).unwrap_or_default();
        let values = items(strings.get(texts.concrete)).unwrap_or_default();
        let mut precision = None;
        let mut input = |at: usize, dims: &Item| {
            let type_name = types.get(at).map_or("", Item::text);
            let Some(sizes) = dims.numbers() else {
                return dims.list_of_numbers().map_or(Input::Value, Input::List);
            };
            let element_bytes = element_bytes(type_name);
            if element_bytes.is_none() && sizes.is_empty() {
                return Input::Value;
            }
            precision = precision.or_else(|| Precision::of(type_name));
            let strides = strides.get(at).and_then(Item::numbers).filter(|strides| strides.len() == sizes.len());
            let stored = match strides {
                Some(strides) => {
                    let apart = sizes.iter().zip(&strides).filter(|(size, stride)| **stride != 0 || **size == 0);
                    product(&apart.map(|(size, _)| *size).collect::<Vec<_>>())
                }
                None => product(&sizes),
            };
            Input::Tensor(Tensor { dims: sizes, element_bytes, stored })
        };
        let inputs: Vec<Input> = dims.iter().enumerate().map(|(at, dims)| input(at, dims)).collect();
        if inputs.iter().any(Input::has_negative_size) {
            return None;
        }
        let values = values.iter().map(|value| value.text().to_string()).collect();
        Some(Self { inputs, values, precision })
    }

    /// The tensor at a position.
    pub(crate) fn tensor(&self, at: usize) -> Option<&Tensor> {
        match self.inputs.get(at)? {
            Input::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Every tensor that is an input of its own.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors_before(None)
    }

    /// Every tensor that is an argument of its own before position `out`: what is read, not what is written to.
    pub(crate) fn tensors_before(&self, out: Option<usize>) -> impl Iterator<Item = &Tensor> + Clone {
        let count = out.unwrap_or(usize::MAX);
        self.inputs.iter().take(count).filter_map(|input| match input {
            Input::Tensor(tensor) => Some(tensor),
            _ => None,
        })
    }

    /// The first tensor from position `out` on: a result that the caller gives.
    pub(crate) fn result(&self, out: Option<usize>) -> Option<&Tensor> {
        (out?..self.inputs.len()).find_map(|at| self.tensor(at))
    }

    /// The shapes of the list of tensors at a position.
    pub(crate) fn shapes(&self, at: usize) -> Option<&[Vec<i64>]> {
        match self.inputs.get(at)? {
            Input::List(shapes) => Some(shapes),
            _ => None,
        }
    }

    /// The shapes of the first list of tensors.
    pub(crate) fn first_list(&self) -> Option<&[Vec<i64>]> {
        self.inputs.iter().find_map(|input| match input {
            Input::List(shapes) => Some(shapes.as_slice()),
            _ => None,
        })
    }

    /// True when there is a list of tensors.
    pub(crate) fn has_list(&self) -> bool {
        self.first_list().is_some()
    }

    /// A whole number at a position.
    pub(crate) fn number(&self, at: usize) -> Option<i64> {
        self.values.get(at)?.trim().parse().ok()
    }

    /// Whole numbers in brackets at a position.
    pub(crate) fn numbers(&self, at: usize) -> Option<Vec<i64>> {
        self.list(at)?.map(|part| part.parse().ok()).collect()
    }

    /// Yes or no at a position.
    pub(crate) fn flag(&self, at: usize) -> Option<bool> {
        is_true(self.values.get(at)?)
    }

    /// Several yes or no in brackets at a position.
    pub(crate) fn flags(&self, at: usize) -> Option<Vec<bool>> {
        self.list(at)?.map(is_true).collect()
    }

    /// True when no value is given at a position, though values are recorded.
    pub(crate) fn is_absent(&self, at: usize) -> bool {
        !self.values.is_empty() && self.values.get(at).is_none_or(|value| value.is_empty())
    }

    /// Bytes of an element of the type whose number, as of PyTorch's `ScalarType`, is given at a position.
    pub(crate) fn scalar_type_bytes(&self, at: usize) -> Option<i64> {
        Some(match self.number(at)? {
            0 | 1 | 11 | 23..=26 => 1,
            2 | 5 | 15 => 2,
            3 | 6 => 4,
            4 | 7 => 8,
            _ => return None,
        })
    }

    fn list(&self, at: usize) -> Option<impl Iterator<Item = &str>> {
        let inside = self.values.get(at)?.trim().strip_prefix('[')?.strip_suffix(']')?;
        Some(inside.split(',').map(str::trim).filter(|part| !part.is_empty()))
    }
}

/// The shapes that a text of dimensions says, `None` for an input that has none; `None` when it cannot be read.
pub(crate) fn shapes(dims: &str) -> Option<Vec<Option<Vec<i64>>>> {
    Some(items(dims)?.iter().map(Item::numbers).collect())
}

fn is_true(text: &str) -> Option<bool> {
    match text.trim() {
        "True" | "true" => Some(true),
        "False" | "false" => Some(false),
        _ => None,
    }
}

/// Bytes of an element of a type as PyTorch writes it.
fn element_bytes(type_name: &str) -> Option<i64> {
    Some(match type_name {
        "double" | "long" | "long int" | "unsigned long" | "c10::complex<float>" => 8,
        "float" | "int" | "unsigned int" => 4,
        "c10::Half" | "c10::BFloat16" | "short" | "short int" | "unsigned short" => 2,
        "signed char" | "unsigned char" | "char" | "bool" | "c10::qint8" | "c10::quint8" => 1,
        "c10::complex<double>" => 16,
        name if name.starts_with("c10::Float8_") => 1,
        _ => return None,
    })
}

impl Precision {
    fn of(type_name: &str) -> Option<Self> {
        Some(match type_name {
            "double" => Self::Fp64,
            "float" => Self::Fp32,
            "c10::Half" | "c10::BFloat16" => Self::Fp16,
            "signed char" | "unsigned char" | "char" | "c10::qint8" | "c10::quint8" => Self::Int8,
            name if name.starts_with("c10::Float8_") => Self::Fp8,
            _ => return None,
        })
    }
}

/// A value in the texts: brackets, a number, a quoted text.
#[derive(Clone, PartialEq, Debug)]
enum Item {
    List(Vec<Item>),
    Number(i64),
    Text(String),
}

impl Item {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    fn numbers(&self) -> Option<Vec<i64>> {
        let Self::List(items) = self else { return None };
        let number = |item: &Item| if let Self::Number(number) = item { Some(*number) } else { None };
        items.iter().map(number).collect()
    }

    fn list_of_numbers(&self) -> Option<Vec<Vec<i64>>> {
        let Self::List(items) = self else { return None };
        items.iter().map(Self::numbers).collect()
    }
}

/// What stands between the outermost brackets of `text`.
fn items(text: &str) -> Option<Vec<Item>> {
    let mut rest = text.trim();
    match item(&mut rest, 0)? {
        Item::List(items) if rest.is_empty() => Some(items),
        _ => None,
    }
}

const DEEPEST: usize = 8;

fn item(rest: &mut &str, depth: usize) -> Option<Item> {
    if let Some(inside) = rest.strip_prefix('[').filter(|_| depth < DEEPEST) {
        *rest = inside.trim_start();
        let mut items = Vec::new();
        while !rest.starts_with(']') {
            items.push(item(rest, depth + 1)?);
            *rest = rest.trim_start();
            match rest.strip_prefix(',') {
                Some(more) => *rest = more.trim_start(),
                None if rest.starts_with(']') => {}
                None => return None,
            }
        }
        *rest = &rest[1..];
        return Some(Item::List(items));
    }
    if let Some(inside) = rest.strip_prefix('"') {
        let mut is_escaped = false;
        let is_end = |byte: &u8| {
            let is_end = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            is_end
        };
        let end = inside.as_bytes().iter().position(is_end)?;
        *rest = &inside[end + 1..];
        return Some(Item::Text(inside[..end].to_string()));
    }
    let end = rest.find([',', ']'])?;
    let number = rest[..end].trim();
    *rest = &rest[end..];
    Some(number.parse().map_or_else(|_| Item::Text(number.to_string()), Item::Number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(dims: &str, types: &str, strides: &str, values: &str) -> Option<Inputs> {
        let mut strings = StringTable::default();
        let [dims, types, strides, concrete] = [dims, types, strides, values].map(|text| strings.intern(text));
        Inputs::read(&strings, OpInputs { dims, types, strides, concrete, ..OpInputs::UNKNOWN })
    }

    #[test]
    fn shapes_types_and_values_are_read() {
        let dims = "[[64,3],[],[[2,3],[4]],[]]";
        let inputs =
            read(dims, r#"["c10::Half","","TensorList","double"]"#, "", r#"["","[2, -1]","","True"]"#).unwrap();
        let first = inputs.tensor(0).unwrap();
        assert_eq!((first.dims.as_slice(), first.bytes()), (&[64, 3][..], Some(384)));
        assert_eq!((inputs.tensor(1), inputs.numbers(1)), (None, Some(vec![2, -1])));
        assert_eq!(inputs.first_list(), Some(&[vec![2, 3], vec![4]][..]));
        assert_eq!((inputs.tensor(3).and_then(Tensor::bytes), inputs.flag(3)), (Some(8), Some(true)));
        assert_eq!(inputs.precision, Some(Precision::Fp16));
    }

    #[test]
    fn what_is_expanded_is_stored_once() {
        let inputs = read("[[64,3]]", r#"["float"]"#, "[[0,1]]", "").unwrap();
        assert_eq!(inputs.tensor(0).map(|tensor| (tensor.elements(), tensor.bytes())), Some((Some(192), Some(12))));
    }

    #[test]
    fn absurd_sizes_are_not_known() {
        let absurd = read("[[9223372036854775807,3]]", r#"["float"]"#, "", "").unwrap();
        assert_eq!(absurd.tensor(0).unwrap().bytes(), None);
        assert!(read("[[-4,3]]", r#"["float"]"#, "", "").is_none());
        assert!(read("[[],[[2],[-1]]]", r#"["float","TensorList"]"#, "", "").is_none());
        assert_eq!(product(&[i64::MAX, 2, 0]), Some(0));
        assert!(read("", "", "", "").is_none() && read("[[1", "", "", "").is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\],\"\\\\0-9a ]{0,40}") {
            let inputs = read(&text, &text, &text, &text);
            let tensors = (0..text.len()).filter_map(|at| inputs.as_ref()?.tensor(at));
            for tensor in tensors {
                prop_assert!(tensor.elements().is_none_or(|elements| elements >= 0), "{tensor:?}");
                prop_assert!(tensor.bytes().is_none_or(|bytes| bytes >= 0), "{tensor:?}");
            }
        }
    }
}
