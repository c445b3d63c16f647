//! Python's pickles, as far as they hold plain data: numbers, texts, lists, tuples and dicts.
//!
//! A pickle is a program. This one's machine knows no class and calls nothing: an object of any class becomes
//! [`Value::Other`], and is counted. Values are numbers of rows in tables, so that what a pickle names twice is there
//! once: memory is bounded by the length of the pickle, whatever it refers to, and nothing here recurses.

mod bytes;
mod json;
mod machine;

use crate::window::Blocks;
use bytes::Bytes;
use machine::Machine;
use stepscope_base::{StringId, StringTable};

/// The first byte of pickles of protocol 2 and later; no text begins with it.
const PROTOCOL: u8 = 0x80;
const PROTOCOLS: std::ops::RangeInclusive<u8> = 2..=5;
/// What decoding may take in memory. A snapshot of PyTorch takes about twice the length of its pickle.
const MAX_MEMORY_BYTES: usize = 2 << 30;
/// Dicts with more keys are data of something else: they are searched for nothing.
const MAX_SEARCHED_KEYS: usize = 64;

/// True when `head` begins as a pickle does.
pub(crate) fn is_pickle(head: &[u8]) -> bool {
    matches!(head, [PROTOCOL, protocol, ..] if PROTOCOLS.contains(protocol))
}

/// One value. 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    None,
    Bool(bool),
    /// An integer of 32 bits.
    Small(i32),
    /// A row of the integers that are larger.
    Large(u32),
    /// A row of the floats.
    Float(u32),
    Text(StringId),
    /// A list or a tuple.
    List(ListId),
    Dict(DictId),
    /// Anything else: bytes, sets, integers beyond 64 bits, objects.
    Other,
}

stepscope_base::id_type! {
    /// A list of a pickle. Two values with one id are one list.
    ListId
}
stepscope_base::id_type! {
    /// A dict of a pickle. Two values with one id are one dict.
    DictId
}

/// The values of a pickle.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    /// Texts, keys among them; the reader may intern before what it looks for.
    pub(crate) texts: StringTable,
    /// The value that the pickle is; what there was of it when it is cut.
    pub(crate) root: Option<Value>,
    /// Texts that had to be repaired.
    pub(crate) repaired_texts: u64,
    /// Names of the classes and functions that the pickle asks for, each as often as it does; the first few.
    pub(crate) foreign_names: Vec<String>,
    pub(crate) foreign_count: u64,
    large: Vec<i64>,
    floats: Vec<f64>,
    lists: Vec<Vec<Value>>,
    dicts: Vec<Vec<(Value, Value)>>,
}

impl Plain {
    /// The items of a list.
    pub(crate) fn list(&self, id: ListId) -> &[Value] {
        &self.lists[id.index()]
    }

    /// Number of lists and tuples.
    pub(crate) fn list_count(&self) -> usize {
        self.lists.len()
    }

    /// Number of dicts.
    pub(crate) fn dict_count(&self) -> usize {
        self.dicts.len()
    }

    /// The pairs of a dict, in the order of their making.
    pub(crate) fn dict(&self, id: DictId) -> &[(Value, Value)] {
        &self.dicts[id.index()]
    }

    /// What a dict has under `key`.
    pub(crate) fn get(&self, dict: DictId, key: StringId) -> Option<Value> {
        let pairs = self.dict(dict);
        let is_key = |pair: &&(Value, Value)| pair.0 == Value::Text(key);
        // What was set last counts.
        let found = (pairs.len() <= MAX_SEARCHED_KEYS).then(|| pairs.iter().rev().find(is_key)).flatten();
        found.map(|(_, value)| *value)
    }

    /// A value as an integer.
    pub(crate) fn integer(&self, value: Value) -> Option<i64> {
        match value {
            Value::Small(number) => Some(number.into()),
            Value::Large(row) => self.large.get(row as usize).copied(),
            _ => None,
        }
    }

    /// A value as a person reads it; `None` for what is not one number, word or text.
    pub(crate) fn shown(&self, value: Value) -> Option<String> {
        match value {
            Value::Bool(is_true) => Some(if is_true { "True" } else { "False" }.into()),
            Value::Float(row) => self.floats.get(row as usize).map(|number| format!("{number:?}")),
            Value::Text(text) => Some(self.texts.get(text).to_string()),
            number => self.integer(number).map(|number| number.to_string()),
        }
    }

    /// What a value is, for messages.
    pub(crate) fn kind(value: Value) -> &'static str {
        match value {
            Value::None => "None",
            Value::Bool(_) => "a truth value",
            Value::Small(_) | Value::Large(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Dict(_) => "a dict",
            Value::Other => "an object that is no plain data",
        }
    }
}

/// What ended the reading of a pickle before its own end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PickleError {
    /// There are no more bytes: why, when the source says so. What came before is read.
    Cut { at_byte: u64, reason: Option<String> },
    /// It is no pickle from here on, or one that is not read.
    Damaged { at_byte: u64, found: String },
}

/// Reads a pickle into `plain`.
pub(crate) fn read(source: impl Blocks, plain: &mut Plain) -> Result<(), PickleError> {
    read_within(source, plain, MAX_MEMORY_BYTES)
}

fn read_within(source: impl Blocks, plain: &mut Plain, max_memory_bytes: usize) -> Result<(), PickleError> {
    Machine::new(Bytes::of(source), plain, max_memory_bytes).run()
}

#[cfg(test)]
mod tests;
