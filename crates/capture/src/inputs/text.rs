//! Inputs as the texts that readers of traces know: torch.profiler's lists, as JSON without white space.

use super::{Input, Reader, unpack};
use std::fmt::Write;

/// The inputs of an op; the first four are lists with one item for each input, and empty when there are none.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Inputs {
    /// The sizes of each: `[[64,3],[],[[2,3],[2,3]]]`.
    pub dims: String,
    /// The type of each: `["float","","TensorList"]`.
    pub types: String,
    /// The strides of each, as `dims`.
    pub strides: String,
    /// The value of each that is no tensor: `["","[-1]","True"]`.
    pub concrete: String,
    /// Inputs that have names, as an object: `{"grid":"grid(1,)","stream":0}`; empty when there are none.
    pub keywords: String,
}

impl Inputs {
    /// Whether inputs with such names are what the recorder says of a loader's `next()`, of which PyTorch's own label has
    /// none: in what stands for PyTorch's own output they are left out.
    pub fn are_of_next(keywords: &str) -> bool {
        keywords.starts_with(r#"{"dataflow":"next""#)
    }
}

/// The C++ names of PyTorch's `ScalarType`s, by their number.
const DTYPES: [&str; 46] = [
    "unsigned char",
    "signed char",
    "short int",
    "int",
    "long int",
    "c10::Half",
    "float",
    "double",
    "c10::complex<c10::Half>",
    "c10::complex<float>",
    "c10::complex<double>",
    "bool",
    "c10::qint8",
    "c10::quint8",
    "c10::qint32",
    "c10::BFloat16",
    "c10::quint4x2",
    "c10::quint2x4",
    "c10::bits1x8",
    "c10::bits2x4",
    "c10::bits4x2",
    "c10::bits8",
    "c10::bits16",
    "c10::Float8_e5m2",
    "c10::Float8_e4m3fn",
    "c10::Float8_e5m2fnuz",
    "c10::Float8_e4m3fnuz",
    "short unsigned int",
    "unsigned int",
    "long unsigned int",
    "c10::dummy_uint1_7_t<1>",
    "c10::dummy_uint1_7_t<2>",
    "c10::dummy_uint1_7_t<3>",
    "c10::dummy_uint1_7_t<4>",
    "c10::dummy_uint1_7_t<5>",
    "c10::dummy_uint1_7_t<6>",
    "c10::dummy_uint1_7_t<7>",
    "c10::dummy_int1_7_t<1>",
    "c10::dummy_int1_7_t<2>",
    "c10::dummy_int1_7_t<3>",
    "c10::dummy_int1_7_t<4>",
    "c10::dummy_int1_7_t<5>",
    "c10::dummy_int1_7_t<6>",
    "c10::dummy_int1_7_t<7>",
    "c10::Float8_e8m0fnu",
    "c10::Float4_e2m1fn_x2",
];

impl Inputs {
    /// What a record's bytes say; `None` when they are damaged.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let inputs = Reader::all(&unpack(bytes)?)?;
        let (mut texts, mut keywords, mut inputs) = (Self::default(), String::new(), inputs.iter());
        while let Some(input) = inputs.next() {
            match input {
                Input::Keyword(name) => {
                    let _ = write!(begin_item(&mut keywords, '{'), "{}:", quoted(name));
                    keyword_value(&mut keywords, inputs.next()?)?;
                }
                _ => texts.add(input),
            }
        }
        for list in [&mut texts.dims, &mut texts.types, &mut texts.strides, &mut texts.concrete] {
            if !list.is_empty() {
                list.push(']');
            }
        }
        if !keywords.is_empty() {
            keywords.push('}');
        }
        texts.keywords = keywords;
        Some(texts)
    }

    fn add(&mut self, input: &Input) {
        let (dims, strides) = (begin_item(&mut self.dims, '['), begin_item(&mut self.strides, '['));
        match input {
            Input::TensorList(tensors) => {
                list(dims, tensors, sizes_of);
                list(strides, tensors, strides_of);
            }
            _ => {
                sizes_of(dims, input);
                strides_of(strides, input);
            }
        }
        let _ = write!(begin_item(&mut self.types, '['), "\"{}\"", type_of(input));
        let _ = write!(begin_item(&mut self.concrete, '['), "\"{}\"", value_of(input));
    }
}

/// Makes room for the next item of a list or an object.
fn begin_item(text: &mut String, open: char) -> &mut String {
    text.push(if text.is_empty() { open } else { ',' });
    text
}

fn list(text: &mut String, items: &[Input], write_item: fn(&mut String, &Input)) {
    text.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        write_item(text, item);
    }
    text.push(']');
}

fn sizes_of(text: &mut String, input: &Input) {
    let sizes = if let Input::Tensor { sizes, .. } = input { sizes.as_slice() } else { &[] };
    numbers(text, sizes);
}

fn strides_of(text: &mut String, input: &Input) {
    let strides = if let Input::Tensor { strides: Some(strides), .. } = input { strides.as_slice() } else { &[] };
    numbers(text, strides);
}

fn numbers(text: &mut String, numbers: &[i64]) {
    text.push('[');
    for (at, number) in numbers.iter().enumerate() {
        let _ = write!(text, "{}{number}", if at > 0 { "," } else { "" });
    }
    text.push(']');
}

fn type_of(input: &Input) -> &'static str {
    match input {
        Input::Tensor { dtype, .. } => DTYPES.get(usize::from(*dtype)).unwrap_or(&"(unknown type)"),
        Input::TensorList(_) => "TensorList",
        Input::ScalarList(_) => "ScalarList",
        Input::Int(_) | Input::Double(_) | Input::Bool(_) | Input::Complex(..) => "Scalar",
        Input::Other | Input::Keyword(_) | Input::Text(_) | Input::TextList(_) => "",
    }
}

/// As PyTorch prints a value.
fn value_of(input: &Input) -> String {
    match input {
        Input::Int(value) => value.to_string(),
        Input::Double(value) => double(*value),
        Input::Bool(value) => if *value { "True" } else { "False" }.to_string(),
        Input::Complex(real, imaginary) => {
            let sign = if *imaginary >= 0.0 { '+' } else { '-' };
            format!("{}{sign}{}j", double(*real), double(imaginary.abs()))
        }
        Input::ScalarList(items) => {
            let value_of = |item: &Input| if *item == Input::Other { "None".to_string() } else { value_of(item) };
            let items: Vec<String> = items.iter().map(value_of).collect();
            format!("[{}]", items.join(", "))
        }
        _ => String::new(),
    }
}

/// A number as C++ streams print it with 17 digits; a whole one has a point behind it.
fn double(value: f64) -> String {
    const WHOLE: std::ops::Range<f64> = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;
    if WHOLE.contains(&value) && value.trunc() == value {
        return format!("{}.", value as i64);
    }
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
    let scientific = format!("{value:.16e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..17).contains(&exponent) {
        let fixed = format!("{value:.*}", (16 - exponent) as usize);
        return fixed.trim_end_matches('0').trim_end_matches('.').to_string();
    }
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// A keyword's value as JSON.
fn keyword_value(text: &mut String, value: &Input) -> Option<()> {
    match value {
        Input::TextList(items) | Input::ScalarList(items) => list(text, items, single_value),
        Input::Text(_) | Input::Bool(_) | Input::Int(_) | Input::Double(_) | Input::Other => single_value(text, value),
        Input::Tensor { .. } | Input::TensorList(_) | Input::Complex(..) | Input::Keyword(_) => return None,
    }
    Some(())
}

/// A value that is no list, as JSON, which has no complex numbers and no other numbers than finite ones.
fn single_value(text: &mut String, value: &Input) {
    match value {
        Input::Text(value) => text.push_str(&quoted(value)),
        Input::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Input::Int(value) => text.push_str(&value.to_string()),
        Input::Double(value) if value.is_finite() => {
            let _ = write!(text, "{value:?}");
        }
        _ => text.push_str("null"),
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if (char as u32) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", char as u32);
            }
            _ => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}
