//! What operators were called with, as texts.

use stepscope_capture::Inputs;

/// The inputs of an operator; every text is JSON.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct InputTexts {
    /// The sizes of each tensor; nothing of lists of tensors.
    pub shapes: String,
    /// The sizes of each input, those of lists of tensors too.
    pub dims: String,
    /// The strides of each input.
    pub strides: String,
    /// The type of each input.
    pub types: String,
    /// The value of each that is no tensor, as PyTorch prints it.
    pub concrete: String,
    /// Inputs that have names, as an object; empty without any.
    pub keywords: String,
}

impl InputTexts {
    pub(crate) fn of(inputs: &Inputs) -> Self {
        Self {
            shapes: without_lists(&inputs.dims),
            dims: inputs.dims.clone(),
            strides: inputs.strides.clone(),
            types: inputs.types.clone(),
            concrete: inputs.concrete.clone(),
            keywords: if Inputs::are_of_next(&inputs.keywords) { String::new() } else { inputs.keywords.clone() },
        }
    }
}

/// Sizes with an empty list where there is a list of lists.
fn without_lists(dims: &str) -> String {
    let mut shapes = String::with_capacity(dims.len());
    let (mut depth, mut input) = (0, String::new());
    for character in dims.chars() {
        depth += usize::from(character == '[');
        if depth < 2 {
            shapes.push(character);
            continue;
        }
        input.push(character);
        depth -= usize::from(character == ']');
        if depth == 1 {
            shapes.push_str(if input.contains("[[") { "[]" } else { &input });
            input.clear();
        }
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_tensors_have_no_shape() {
        assert_eq!(without_lists("[[64,3],[],[[2,3],[2,3]],[7]]"), "[[64,3],[],[],[7]]");
        assert_eq!(without_lists("[[[]],[[2]]]"), "[[],[]]");
        assert_eq!([without_lists("[]"), without_lists("")], ["[]", ""]);
    }
}
