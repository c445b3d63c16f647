//! The columns of calls on files, which use those of bytes as well. Parts written before there were any do not have
//! them.

use super::reading::{Text, column};
use super::text_column;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt16Array};
use arrow_schema::{ArrowError, DataType, Field};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use stepscope_capture::io::IoFunction;
use stepscope_capture::{Capture, IoCall};

/// The kind of a call's row.
pub(super) const KIND: &str = "io";

pub(super) fn fields() -> [Field; 5] {
    let text = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    [
        Field::new("file", text(), true),
        Field::new("other_file", text(), true),
        Field::new("asked_bytes", DataType::Int64, true),
        Field::new("offset", DataType::Int64, true),
        Field::new("errno", DataType::UInt16, true),
    ]
}

/// The columns, from each row's call.
pub(super) fn columns<'a>(
    rows: impl ExactSizeIterator<Item = Option<&'a IoCall>> + Clone,
    files: &'a [String],
) -> Result<[ArrayRef; 5], ArrowError> {
    let path = |file: Option<u32>| files.get(file? as usize).map(String::as_str);
    Ok([
        text_column(rows.clone().map(|row| path(row?.file)))?,
        text_column(rows.clone().map(|row| path(row?.other_file)))?,
        Arc::new(rows.clone().map(|row| row?.asked_bytes).collect::<Int64Array>()),
        Arc::new(rows.clone().map(|row| row?.offset).collect::<Int64Array>()),
        Arc::new(rows.clone().map(|row| row.map(|row| row.errno).filter(|errno| *errno != 0)).collect::<UInt16Array>()),
    ])
}

/// The columns of a batch.
pub(super) struct Columns<'a> {
    file: Option<Text<'a>>,
    other_file: Option<Text<'a>>,
    bytes: &'a Int64Array,
    asked_bytes: &'a Int64Array,
    offset: &'a Int64Array,
    errno: &'a UInt16Array,
}

/// Places of files in a capture's list, by their path.
pub(super) type FileIds = FxHashMap<String, u32>;

impl<'a> Columns<'a> {
    pub(super) fn of(batch: &'a RecordBatch) -> Option<Self> {
        Some(Self {
            file: Text::of(batch, "file"),
            other_file: Text::of(batch, "other_file"),
            bytes: column(batch, "bytes")?,
            asked_bytes: column(batch, "asked_bytes")?,
            offset: column(batch, "offset")?,
            errno: column(batch, "errno")?,
        })
    }

    /// The call of a row; `None` for a function that is not known.
    pub(super) fn call(
        &self,
        (row, name): (usize, &str),
        (thread, start_ns, end_ns): (u32, i64, i64),
        capture: &mut Capture,
        files: &mut FileIds,
    ) -> Option<IoCall> {
        let signed = |column: &Int64Array| column.is_valid(row).then(|| column.value(row));
        let mut file = |text: &Option<Text<'_>>| {
            let path = text.as_ref()?.value(row)?;
            if let Some(id) = files.get(path) {
                return Some(*id);
            }
            let id = capture.files.len() as u32;
            capture.files.push(path.into());
            files.insert(path.into(), id);
            Some(id)
        };
        Some(IoCall {
            thread,
            start_ns,
            end_ns,
            function: IoFunction::from_name(name)?,
            errno: if self.errno.is_valid(row) { self.errno.value(row) } else { 0 },
            file: file(&self.file),
            other_file: file(&self.other_file),
            bytes: signed(self.bytes),
            asked_bytes: signed(self.asked_bytes),
            offset: signed(self.offset),
        })
    }
}
