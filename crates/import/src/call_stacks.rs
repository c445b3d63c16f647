//! Call stacks as pickles of PyTorch hold them: each list of frames and each frame is read once.

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

/// The texts that a frame is made of.
#[derive(Clone, Copy)]
pub(crate) struct FrameKeys {
    pub(crate) name: StringId,
    pub(crate) filename: StringId,
    pub(crate) line: StringId,
}

/// What was read so far.
pub(crate) struct Stacks {
    of_list: Vec<Option<Option<StackId>>>,
    of_dict: Vec<Option<StringId>>,
    text_bytes: usize,
}

impl Stacks {
    pub(crate) fn of(plain: &Plain) -> Self {
        Self { of_list: vec![None; plain.list_count()], of_dict: vec![None; plain.dict_count()], text_bytes: 0 }
    }

    /// The stack that a list of frames is; innermost first.
    pub(crate) fn of_frames(
        &mut self,
        plain: &Plain,
        keys: FrameKeys,
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

    fn read(&mut self, plain: &Plain, keys: FrameKeys, list: ListId, builder: &mut TraceBuilder) -> Option<StackId> {
        let frames = self.frames(plain, keys, list, builder);
        frames.into_iter().rev().fold(None, |caller, frame| Some(builder.intern_stack(frame, caller)))
    }

    /// The frames of a list, innermost first; none where there is too much text already.
    pub(crate) fn frames(
        &mut self,
        plain: &Plain,
        keys: FrameKeys,
        list: ListId,
        builder: &mut TraceBuilder,
    ) -> Vec<StringId> {
        let frames = plain.list(list);
        if self.text_bytes > MAX_TEXT_BYTES || frames.len() > MAX_FRAMES {
            builder.findings.add(FindingCode::StackCut, || format!("{} frames", frames.len()));
        }
        if self.text_bytes > MAX_TEXT_BYTES {
            return Vec::new();
        }
        let dicts = frames.iter().take(MAX_FRAMES).filter_map(|frame| match frame {
            Value::Dict(dict) => Some(*dict),
            _ => None,
        });
        let frames: Vec<StringId> = dicts.filter_map(|dict| self.frame(plain, keys, dict, builder)).collect();
        self.text_bytes += frames.iter().map(|frame| builder.strings.get(*frame).len() + 1).sum::<usize>();
        frames
    }

    /// A frame, written as PyTorch's profiler does: `file.py(12): function`.
    fn frame(&mut self, plain: &Plain, keys: FrameKeys, dict: DictId, builder: &mut TraceBuilder) -> Option<StringId> {
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
