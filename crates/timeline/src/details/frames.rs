//! Where in the program something was called.

use serde::Serialize;
use stepscope_base::StringTable;
use stepscope_trace::{SliceId, SliceKind, Trace};

/// One place in a call stack.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Frame {
    /// The file; none for functions that are built in.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
    /// The function.
    pub function: String,
    /// As the source tells it.
    pub text: String,
}

impl Frame {
    pub(crate) fn parse(text: &str) -> Self {
        let place = stepscope_trace::Frame::parse(text);
        let (file, function) = (place.file.map(str::to_string), place.function.to_string());
        Self { file, line: place.line, function, text: text.to_string() }
    }
}

/// The stack of a slice, innermost first: its own, else that of the nearest op around it that has one, else the calls
/// of Python around it.
pub(super) fn frames(trace: &Trace, slice: SliceId) -> Vec<Frame> {
    let of_op = trace.slices.with_ancestors(slice).find_map(|id| {
        let stack = trace.ops.get(id)?.stack;
        (stack != StringTable::EMPTY).then(|| trace.strings.get(stack))
    });
    if let Some(stack) = of_op {
        return stack.split(';').filter(|text| !text.is_empty()).map(Frame::parse).collect();
    }
    let is_call = |id: &SliceId| trace.slices.kind(*id) == SliceKind::PythonFunction;
    let calls = trace.slices.with_ancestors(slice).filter(is_call);
    calls.map(|id| Frame::parse(trace.slice_name(id))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_python_are_a_stack() {
        let trace = stepscope_trace::drawn::drawn("rank 0 python 1 ffff\nrank 0 python 1 .gg.\nrank 0 cpu 1 ..a.");
        let a = trace.slices.ids().find(|id| trace.slice_name(*id) == "a").expect("an op");
        assert_eq!(frames(&trace, a).iter().map(|frame| frame.function.as_str()).collect::<String>(), "gf");
    }
}
