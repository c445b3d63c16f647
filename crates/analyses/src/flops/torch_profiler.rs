//! The operations that `torch.profiler` counts with `with_flops`: at seven operators, each by itself, also where one calls
//! another. Products are those of the table of operators; sums are counted by their first input alone, without
//! broadcasting.

use super::inputs::Inputs;
use crate::op_classes::op_class;
use stepscope_base::StringTable;
use stepscope_trace::OpInputs;

const PRODUCTS: [&str; 4] = ["aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"];
const CONVOLUTION: &str = "aten::conv2d";
const SUMS: [&str; 2] = ["aten::add", "aten::mul"];
/// Arguments of the convolution that it only counts with a number for each of the two axes.
const STRIDE_PADDING_DILATION: [usize; 3] = [3, 4, 5];

/// True for an operator whose operations `torch.profiler` counts.
pub fn is_counted_by_torch_profiler(name: &str) -> bool {
    PRODUCTS.contains(&name) || SUMS.contains(&name) || name == CONVOLUTION
}

/// The operations of an operator called `name`, from the texts of its inputs (sizes, types and values, each a list as
/// JSON), as `torch.profiler` counts them; `None` where it counts none.
pub fn torch_profiler_flops(name: &str, dims: &str, types: &str, concrete: &str) -> Option<i64> {
    if !is_counted_by_torch_profiler(name) {
        return None;
    }
    let mut strings = StringTable::default();
    let [dims, types, concrete] = [dims, types, concrete].map(|text| strings.intern(text));
    let inputs = Inputs::read(&strings, OpInputs { dims, types, concrete, ..OpInputs::UNKNOWN })?;
    if SUMS.contains(&name) {
        return inputs.tensor(0)?.elements();
    }
    let is_pair = |at: usize| inputs.numbers(at).is_some_and(|sizes| sizes.len() == 2);
    if name == CONVOLUTION && !STRIDE_PADDING_DILATION.into_iter().all(is_pair) {
        return None;
    }
    op_class(name).formula?.work(&inputs).map(|work| work.flops)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operator, sizes, types, values, and what `torch.profiler` of PyTorch 2.13 counted.
    const COUNTED: [(&str, &str, &str, &str, i64); 17] = [
        ("aten::mm", "[[3,4],[4,5]]", "", "", 120),
        ("aten::mm", "[[3,0],[0,5]]", "", "", 0),
        ("aten::addmm", "[[5],[3,4],[4,5],[],[]]", "", r#"["","","","0.5","1"]"#, 120),
        ("aten::bmm", "[[2,3,4],[2,4,5]]", "", "", 240),
        ("aten::baddbmm", "[[1],[2,3,4],[2,4,5],[],[]]", "", "", 240),
        ("aten::add", "[[8],[4,8],[]]", "", "", 8),
        ("aten::add", "[[],[4,8],[]]", r#"["float","float","Scalar"]"#, "", 1),
        ("aten::add", "[[4,8],[],[]]", "", "", 32),
        ("aten::mul", "[[],[]]", r#"["",""]"#, "", 0),
        ("aten::mul", "[[0,3],[0,3]]", "", "", 0),
        ("aten::conv2d", CONV, "", r#"["","","","[1, 1]","[0, 0]","[1, 1]","1"]"#, 42_336),
        ("aten::conv2d", CONV, "", r#"["","","","[2, 2]","[1, 1]","[2, 2]","1"]"#, 13_824),
        ("aten::conv2d", CONV, "", r#"["","","","[1, 1]","","[1, 1]","1"]"#, 0),
        ("aten::conv2d", CONV, "", r#"["","","","[2]","[0, 0]","[1, 1]","1"]"#, 0),
        ("aten::conv2d", "[[4,9,9],[6,4,3,3]]", "", r#"["","","","[1, 1]","[0, 0]","[1, 1]","1"]"#, 0),
        (
            "aten::conv2d",
            "[[2,4,9,9],[6,2,3,3],[],[],[],[],[]]",
            "",
            r#"["","","","[1, 1]","[0, 0]","[1, 1]","2"]"#,
            21_168,
        ),
        ("aten::linear", "[[3,4],[5,4]]", "", "", 0),
    ];
    const CONV: &str = "[[2,4,9,9],[6,4,3,3],[],[],[],[],[]]";

    #[test]
    fn they_are_those_that_torch_profiler_counts() {
        for (name, dims, types, values, counted) in COUNTED {
            let flops = torch_profiler_flops(name, dims, types, values).unwrap_or(0);
            assert_eq!(flops, counted, "{name} {dims} {values}");
        }
    }

    #[test]
    fn absurd_sizes_have_none() {
        let huge = "[[4294967296,4294967296],[4294967296,4294967296]]";
        assert_eq!(torch_profiler_flops("aten::mm", huge, "", ""), None);
        assert_eq!(torch_profiler_flops("aten::mm", "[[3,4]", "", ""), None);
        assert_eq!(torch_profiler_flops("aten::add", "[[-3,4]]", "", ""), None);
    }
}
