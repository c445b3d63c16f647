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
    /// The frame that is written `file.py(12): function`, as PyTorch writes it.
    pub(super) fn parse(text: &str) -> Self {
        let place = text.split_once("): ").and_then(|(place, function)| {
            let (file, line) = place.rsplit_once('(')?;
            Some((file, line.parse().ok()?, function))
        });
        let text = text.to_string();
        match place {
            Some((file, line, function)) => {
                Self { file: Some(file.to_string()), line: Some(line), function: function.to_string(), text }
            }
            None => Self { file: None, line: None, function: text.clone(), text },
        }
    }
}

/// The stack of a slice, innermost first: its own, else that of the nearest op around it that has one, else the calls of
/// Python around it.
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
    fn frames_are_files_lines_and_functions() {
        let told = |text: &str| {
            let frame = Frame::parse(text);
            (frame.file, frame.line, frame.function)
        };
        let python = (Some("/a (b)/train.py".to_string()), Some(12), "step".to_string());
        assert_eq!(told("/a (b)/train.py(12): step"), python);
        assert_eq!(told("<built-in method add>"), (None, None, "<built-in method add>".to_string()));
        assert_eq!(told("x(y): z").0, None, "no line");
        assert_eq!(told("a.py(3): f(1): g"), (Some("a.py".to_string()), Some(3), "f(1): g".to_string()));
    }

    #[test]
    fn calls_of_python_are_a_stack() {
        let trace = stepscope_trace::drawn::drawn("rank 0 python 1 ffff\nrank 0 python 1 .gg.\nrank 0 cpu 1 ..a.");
        let a = trace.slices.ids().find(|id| trace.slice_name(*id) == "a").expect("an op");
        assert_eq!(frames(&trace, a).iter().map(|frame| frame.function.as_str()).collect::<String>(), "gf");
    }
}
