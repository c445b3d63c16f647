//! Call stacks: each list of frames and each frame is read once.

use super::document::Keys;
use crate::pickle::{DictId, ListId, Plain, Value};
use stepscope_base::StringId;
use stepscope_trace::{FindingCode, StackId, TraceBuilder};

/// A stack deeper than this, or a frame with a longer text, is cut.
const MAX_FRAMES: usize = 512;
const MAX_FRAME_CHARS: usize = 8_000;
/// Distinct stacks may take so much text in all, as a table shows them.
const MAX_TEXT_BYTES: usize = 512 << 20;
/// The name of a file that is not known.
const NO_FILE: &str = "??";

/// What was read so far.
pub(super) struct Stacks {
    of_list: Vec<Option<Option<StackId>>>,
    of_dict: Vec<Option<StringId>>,
    text_bytes: usize,
}

impl Stacks {
    pub(super) fn of(plain: &Plain) -> Self {
        Self { of_list: vec![None; plain.list_count()], of_dict: vec![None; plain.dict_count()], text_bytes: 0 }
    }

    /// The stack that a list of frames is; innermost first.
    pub(super) fn of_frames(
        &mut self,
        plain: &Plain,
        keys: &Keys,
        frames: Value,
        builder: &mut TraceBuilder,
    ) -> Option<StackId> {
        let Value::List(list) = frames else { return None };
        if let Some(known) = self.of_list[list.index()] {
            return known;
        }
        let stack = self.read(plain, keys, list, builder);
        self.of_list[list.index()] = Some(stack);
        stack
    }

    fn read(&mut self, plain: &Plain, keys: &Keys, list: ListId, builder: &mut TraceBuilder) -> Option<StackId> {
        let frames = plain.list(list);
        if self.text_bytes > MAX_TEXT_BYTES || frames.len() > MAX_FRAMES {
            builder.findings.add(FindingCode::StackCut, || format!("{} frames", frames.len()));
        }
        if self.text_bytes > MAX_TEXT_BYTES {
            return None;
        }
        let mut stack = None;
        for frame in frames[..frames.len().min(MAX_FRAMES)].iter().rev() {
            let Value::Dict(dict) = *frame else { continue };
            let Some(frame) = self.frame(plain, keys, dict, builder) else { continue };
            self.text_bytes += builder.strings.get(frame).len() + 1;
            stack = Some(builder.intern_stack(frame, stack));
        }
        stack
    }

    /// A frame, written as PyTorch's profiler does: `file.py(12): function`.
    fn frame(&mut self, plain: &Plain, keys: &Keys, dict: DictId, builder: &mut TraceBuilder) -> Option<StringId> {
        if let Some(known) = self.of_dict[dict.index()] {
            return Some(known);
        }
        let text = |key: StringId| match plain.get(dict, key) {
            Some(Value::Text(text)) => Some(plain.texts.get(text)),
            _ => None,
        };
        let function = text(keys.name)?;
        let file = text(keys.filename).filter(|file| !file.is_empty() && *file != NO_FILE);
        let line = plain.get(dict, keys.line).and_then(|line| plain.integer(line)).filter(|line| *line > 0);
        let frame = match (file, line) {
            (Some(file), Some(line)) => format!("{file}({line}): {function}"),
            _ => function.to_string(),
        };
        // A `;` stands between frames; names of C++ have some.
        let mut frame = frame.replace(';', ",");
        if let Some((end, _)) = frame.char_indices().nth(MAX_FRAME_CHARS) {
            builder.findings.add(FindingCode::StackCut, || frame.chars().take(80).collect());
            frame.truncate(end);
        }
        let id = builder.strings.intern(&frame);
        self.of_dict[dict.index()] = Some(id);
        Some(id)
    }
}
