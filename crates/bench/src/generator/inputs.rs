//! What an operator was called with, in a short notation, as the four arguments that PyTorch writes of it.
//!
//! ```text
//! bf16[16,559,1024]          a tensor; its strides follow from its sizes
//! bf16[1024,2816/1,1024]     a tensor with strides of its own
//! =6  =False                 a scalar
//! =[16,559,1024]             a list of scalars
//! -                          nothing
//! list(1024;2816,1024)       a list of tensors, their sizes
//! ```

/// The arguments, each followed by a comma and a blank. Inputs are separated by blanks.
pub(super) fn arguments(inputs: &str) -> String {
    let inputs: Vec<Input> = inputs.split_whitespace().map(Input::read).collect();
    let list = |part: fn(&Input) -> &str| inputs.iter().map(part).collect::<Vec<_>>().join(", ");
    format!(
        r#""Concrete Inputs": [{}], "Input type": [{}], "Input Strides": [{}], "Input Dims": [{}], "#,
        list(|input| &input.concrete),
        list(|input| &input.kind),
        list(|input| &input.strides),
        list(|input| &input.sizes)
    )
}

/// One input, each part as JSON.
struct Input {
    concrete: String,
    kind: String,
    strides: String,
    sizes: String,
}

impl Input {
    fn read(text: &str) -> Self {
        if let Some(list) = text.strip_prefix("list(") {
            let tensors: Vec<&str> = list.trim_end_matches(')').split(';').collect();
            let all = |part: fn(&str) -> String| {
                format!("[{}]", tensors.iter().map(|sizes| part(sizes)).collect::<Vec<_>>().join(", "))
            };
            return Self::of("", "TensorList", all(strides), all(bracketed));
        }
        if let Some(scalar) = text.strip_prefix('=') {
            let kind = if scalar.starts_with('[') { "ScalarList" } else { "Scalar" };
            return Self::of(&scalar.replace(',', ", "), kind, "[]".into(), "[]".into());
        }
        let Some((kind, tensor)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) else {
            return Self::of("", "", "[]".into(), "[]".into());
        };
        match tensor.split_once('/') {
            Some((sizes, strides)) => Self::of("", type_name(kind), bracketed(strides), bracketed(sizes)),
            None => Self::of("", type_name(kind), strides(tensor), bracketed(tensor)),
        }
    }

    fn of(concrete: &str, kind: &str, strides: String, sizes: String) -> Self {
        Self { concrete: format!("\"{concrete}\""), kind: format!("\"{kind}\""), strides, sizes }
    }
}

/// What PyTorch calls a type of elements.
fn type_name(short: &str) -> &str {
    match short {
        "bf16" => "c10::BFloat16",
        "f32" => "float",
        "f64" => "double",
        "i32" => "int",
        "i64" => "long int",
        other => other,
    }
}

fn bracketed(numbers: &str) -> String {
    format!("[{}]", numbers.replace(',', ", "))
}

/// The strides of a tensor of these sizes that lies in memory without gaps.
fn strides(sizes: &str) -> String {
    let sizes: Vec<u64> = sizes.split(',').filter_map(|size| size.parse().ok()).collect();
    let mut next = 1;
    let mut strides = Vec::new();
    for size in sizes.iter().rev() {
        strides.insert(0, u64::to_string(&next));
        next *= size;
    }
    bracketed(&strides.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_input_is_written_as_pytorch_does() {
        assert_eq!(
            arguments("bf16[1024] f32[8,16/1,8] =1 =[2,3] - f64[] list(4;2,3)"),
            r#""Concrete Inputs": ["", "", "1", "[2, 3]", "", "", ""], "#.to_string()
                + r#""Input type": ["c10::BFloat16", "float", "Scalar", "ScalarList", "", "double", "TensorList"], "#
                + r#""Input Strides": [[1], [1, 8], [], [], [], [], [[1], [3, 1]]], "#
                + r#""Input Dims": [[1024], [8, 16], [], [], [], [], [[4], [2, 3]]], "#
        );
    }
}
