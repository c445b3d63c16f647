//! The columns of samples of stacks. Parts written before there were any do not have them.

use super::reading::{NameIds, Text, column, name_id};
use super::text_column;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use stepscope_capture::{Called, Capture, Doing, StackSample};

/// The kind of a sample's row.
pub(super) const KIND: &str = "stack_sample";
/// What stands between two frames of a stack.
const BETWEEN: char = ';';

pub(super) fn fields() -> [Field; 4] {
    let text = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    [
        Field::new("stack", text(), true),
        Field::new("doing", text(), true),
        Field::new("cpu_ns", DataType::Int64, true),
        Field::new("runnable_ns", DataType::Int64, true),
    ]
}

/// All stacks of a capture as text: frames one after another, innermost first.
pub(super) fn texts(capture: &Capture) -> Vec<String> {
    let mut texts: Vec<String> = Vec::with_capacity(capture.stacks.len());
    for Called { frame, caller } in &capture.stacks {
        let frame = capture.names.get(*frame as usize).map_or("", String::as_str).replace(BETWEEN, ":");
        let text = match caller.and_then(|caller| texts.get(caller as usize)) {
            Some(caller) => format!("{frame}{BETWEEN}{caller}"),
            None => frame,
        };
        texts.push(text);
    }
    texts
}

/// The innermost frame of a sample's stack.
pub(super) fn name<'a>(sample: &StackSample, capture: &'a Capture) -> Option<&'a str> {
    let stack = capture.stacks.get(sample.stack? as usize)?;
    capture.names.get(stack.frame as usize).map(String::as_str)
}

/// The columns, from each row's sample and the texts of all stacks.
pub(super) fn columns<'a>(
    rows: impl ExactSizeIterator<Item = Option<&'a StackSample>> + Clone,
    texts: &'a [String],
) -> Result<[ArrayRef; 4], ArrowError> {
    let stack = |row: Option<&StackSample>| texts.get(row?.stack? as usize).map(String::as_str);
    Ok([
        text_column(rows.clone().map(stack))?,
        text_column(rows.clone().map(|row| Some(row?.doing.as_str())))?,
        Arc::new(rows.clone().map(|row| row?.cpu_ns).collect::<Int64Array>()),
        Arc::new(rows.map(|row| row?.runnable_ns).collect::<Int64Array>()),
    ])
}

/// Places of stacks in a capture's list, by what they are, and by their texts.
#[derive(Default)]
pub(super) struct StackIds {
    of_stack: FxHashMap<Called, u32>,
    of_text: FxHashMap<String, u32>,
}

impl StackIds {
    fn of(&mut self, text: &str, capture: &mut Capture, names: &mut NameIds) -> Option<u32> {
        if let Some(known) = self.of_text.get(text) {
            return Some(*known);
        }
        let mut caller = None;
        for frame in text.rsplit(BETWEEN) {
            let called = Called { frame: name_id(frame, "", capture, names), caller };
            caller = Some(*self.of_stack.entry(called).or_insert_with(|| {
                capture.stacks.push(called);
                capture.stacks.len() as u32 - 1
            }));
        }
        self.of_text.insert(text.into(), caller?);
        caller
    }
}

/// The columns of a batch.
pub(super) struct Columns<'a> {
    stack: Option<Text<'a>>,
    doing: Option<Text<'a>>,
    cpu_ns: &'a Int64Array,
    runnable_ns: &'a Int64Array,
}

impl<'a> Columns<'a> {
    pub(super) fn of(batch: &'a RecordBatch) -> Option<Self> {
        Some(Self {
            stack: Text::of(batch, "stack"),
            doing: Text::of(batch, "doing"),
            cpu_ns: column(batch, "cpu_ns")?,
            runnable_ns: column(batch, "runnable_ns")?,
        })
    }

    /// The sample of a row.
    pub(super) fn sample(
        &self,
        row: usize,
        (thread, time_ns): (u32, i64),
        (capture, names, stacks): (&mut Capture, &mut NameIds, &mut StackIds),
    ) -> StackSample {
        let value = |column: &Int64Array| column.is_valid(row).then(|| column.value(row));
        let text = self.stack.as_ref().and_then(|stack| stack.value(row));
        let doing = self.doing.as_ref().and_then(|doing| doing.value(row));
        StackSample {
            thread,
            time_ns,
            stack: text.and_then(|text| stacks.of(text, capture, names)),
            doing: doing.and_then(Doing::named).unwrap_or_default(),
            cpu_ns: value(self.cpu_ns),
            runnable_ns: value(self.runnable_ns),
        }
    }
}
