//! What the instructions of a pickle do, one byte each: they push values, and make lists and dicts of what was pushed.

use super::bytes::Bytes;
use super::{DictId, ListId, PickleError, Plain, Value};
use crate::window::Blocks;
use rustc_hash::FxHashMap;
use stepscope_base::StringId;

/// Memory for one value, and for one list or dict beside its items.
const VALUE_BYTES: usize = size_of::<Value>();
const CONTAINER_BYTES: usize = 32;
/// Names of classes that are kept for messages.
const MAX_FOREIGN_NAMES: usize = 5;

pub(super) struct Machine<'a, B> {
    bytes: Bytes<B>,
    plain: &'a mut Plain,
    stack: Vec<Value>,
    /// Where on the stack the items of an open list or dict begin.
    marks: Vec<usize>,
    memo: FxHashMap<u32, Value>,
    memory_bytes: usize,
    max_memory_bytes: usize,
}

impl<'a, B: Blocks> Machine<'a, B> {
    pub(super) fn new(bytes: Bytes<B>, plain: &'a mut Plain, max_memory_bytes: usize) -> Self {
        let (stack, marks, memo) = (Vec::new(), Vec::new(), FxHashMap::default());
        Self { bytes, plain, stack, marks, memo, memory_bytes: 0, max_memory_bytes }
    }

    /// Runs to the end. A pickle that is cut gives what was in the making.
    pub(super) fn run(mut self) -> Result<(), PickleError> {
        let ending = loop {
            match self.step() {
                Ok(true) => {}
                ending => break ending,
            }
        };
        if matches!(ending, Err(PickleError::Cut { .. })) {
            self.close_all()?;
        }
        self.plain.root = self.stack.pop();
        ending.map(drop)
    }

    /// Carries out one instruction; false at the last.
    fn step(&mut self) -> Result<bool, PickleError> {
        let code = self.bytes.instruction()?;
        match code {
            0x80 => drop(self.bytes.byte()?),
            // A frame only says how many bytes may be read at once.
            0x95 => drop(self.bytes.number::<8>()?),
            b'.' => return if self.stack.is_empty() { Err(self.missing()) } else { Ok(false) },
            b'(' => {
                self.spend(VALUE_BYTES)?;
                self.marks.push(self.stack.len());
            }
            b'0' => drop(self.pop()?),
            b'1' => drop(self.items()?),
            b'2' => {
                let value = self.top()?;
                self.push(value)?;
            }
            b'q' | b'r' | 0x94 => self.remember(code)?,
            b'h' | b'j' => self.recall(code)?,
            b'N' => self.push(Value::None)?,
            0x88 | 0x89 => self.push(Value::Bool(code == 0x88))?,
            b'J' => {
                let number = self.bytes.number::<4>()? as u32;
                self.push(Value::Small(number as i32))?;
            }
            b'K' => {
                let number = self.bytes.byte()?;
                self.push(Value::Small(number.into()))?;
            }
            b'M' => {
                let number = self.bytes.number::<2>()?;
                self.push(Value::Small(number as i32))?;
            }
            0x8a | 0x8b => self.push_long(code)?,
            b'G' => {
                let bits = self.bytes.number::<8>()?.swap_bytes();
                self.spend(VALUE_BYTES)?;
                self.plain.floats.push(f64::from_bits(bits));
                self.push(Value::Float((self.plain.floats.len() - 1) as u32))?;
            }
            b'X' | 0x8c | 0x8d | b'T' | b'U' => self.push_text(code)?,
            b'B' | b'C' | 0x8e | 0x96 => {
                let len = self.length(code)?;
                self.bytes.take(len)?;
                self.push(Value::Other)?;
            }
            b']' | b')' => self.push_list(Vec::new())?,
            b'l' | b't' => {
                let items = self.items()?;
                self.push_list(items)?;
            }
            0x85..=0x87 => {
                let items = self.last(usize::from(code - 0x84))?;
                self.push_list(items)?;
            }
            b'a' => {
                let item = self.last(1)?;
                self.append(&item)?;
            }
            b'e' => {
                let items = self.items()?;
                self.append(&items)?;
            }
            b'}' => self.push_dict(&[])?,
            b'd' => {
                let items = self.items()?;
                self.push_dict(&items)?;
            }
            b's' => {
                let pair = self.last(2)?;
                self.set(&pair)?;
            }
            b'u' => {
                let items = self.items()?;
                self.set(&items)?;
            }
            _ => self.step_of_objects(code)?,
        }
        Ok(true)
    }

    /// What makes sets and objects of classes: their parts are taken off the stack, and nothing is made of them.
    fn step_of_objects(&mut self, code: u8) -> Result<(), PickleError> {
        let parts = match code {
            // A set, and its items.
            0x8f => 0,
            0x90 => return self.items().map(drop),
            0x91 => return self.items().and_then(|_| self.push(Value::Other)),
            // The name of a class or function.
            b'c' => {
                let name = format!("{}.{}", self.bytes.line()?, self.bytes.line()?);
                self.report_foreign(name);
                0
            }
            0x93 => {
                let names: Vec<String> =
                    self.last(2)?.into_iter().map(|name| self.plain.shown(name).unwrap_or_default()).collect();
                self.report_foreign(names.join("."));
                0
            }
            b'i' => {
                let name = format!("{}.{}", self.bytes.line()?, self.bytes.line()?);
                self.report_foreign(name);
                return self.items().and_then(|_| self.push(Value::Other));
            }
            b'o' => return self.items().and_then(|_| self.push(Value::Other)),
            // A call of it, and the state of the object.
            b'R' | 0x81 => 2,
            0x92 => 3,
            b'b' => return self.pop().map(drop),
            b'Q' => 1,
            // Numbers that stand for classes.
            0x82..=0x84 => {
                let width = [1, 2, 4][usize::from(code - 0x82)];
                self.bytes.take(width)?;
                self.report_foreign("an extension".into());
                0
            }
            // Buffers beside the pickle.
            0x97 => 0,
            0x98 => return self.top().map(drop),
            _ => return Err(self.bytes.damaged(format!("the byte 0x{code:02x}, which is no instruction of a pickle"))),
        };
        self.last(parts)?;
        self.push(Value::Other)
    }

    fn report_foreign(&mut self, name: String) {
        self.plain.foreign_count += 1;
        if self.plain.foreign_names.len() < MAX_FOREIGN_NAMES {
            self.plain.foreign_names.push(name.chars().take(80).collect());
        }
    }

    fn remember(&mut self, code: u8) -> Result<(), PickleError> {
        let number = match code {
            b'q' => self.bytes.byte()?.into(),
            b'r' => self.bytes.number::<4>()? as u32,
            _ => self.memo.len() as u32,
        };
        self.spend(3 * VALUE_BYTES)?;
        let value = self.top()?;
        self.memo.insert(number, value);
        Ok(())
    }

    fn recall(&mut self, code: u8) -> Result<(), PickleError> {
        let number = if code == b'h' { self.bytes.byte()?.into() } else { self.bytes.number::<4>()? as u32 };
        let Some(value) = self.memo.get(&number).copied() else {
            return Err(self.bytes.damaged(format!("a reference to {number}, which stands for nothing")));
        };
        self.push(value)
    }

    /// An integer of any length, the least byte first.
    fn push_long(&mut self, code: u8) -> Result<(), PickleError> {
        let len = if code == 0x8a { self.bytes.byte()?.into() } else { self.bytes.number::<4>()? };
        let bytes = self.bytes.take(len)?;
        let is_negative = bytes.last().is_some_and(|byte| *byte >= 0x80);
        let mut word = [if is_negative { 0xff } else { 0 }; 8];
        let Some(low) = word.get_mut(..bytes.len()) else { return self.push(Value::Other) };
        low.copy_from_slice(bytes);
        let number = i64::from_le_bytes(word);
        if let Ok(small) = i32::try_from(number) {
            return self.push(Value::Small(small));
        }
        self.spend(VALUE_BYTES)?;
        self.plain.large.push(number);
        self.push(Value::Large((self.plain.large.len() - 1) as u32))
    }

    fn push_text(&mut self, code: u8) -> Result<(), PickleError> {
        let len = self.length(code)?;
        let texts = self.plain.texts.len();
        let text = String::from_utf8_lossy(self.bytes.take(len)?);
        self.plain.repaired_texts += u64::from(matches!(text, std::borrow::Cow::Owned(_)));
        let id: StringId = self.plain.texts.intern(&text);
        let is_new = self.plain.texts.len() > texts;
        self.spend(if is_new { 2 * (CONTAINER_BYTES + len as usize) } else { 0 })?;
        self.push(Value::Text(id))
    }

    /// The length in front of a text or bytes.
    fn length(&mut self, code: u8) -> Result<u64, PickleError> {
        match code {
            0x8c | b'U' | b'C' => self.bytes.byte().map(u64::from),
            b'X' | b'T' | b'B' => self.bytes.number::<4>(),
            _ => self.bytes.number::<8>(),
        }
    }

    fn push_list(&mut self, items: Vec<Value>) -> Result<(), PickleError> {
        self.spend(CONTAINER_BYTES)?;
        let id = ListId::from_index(self.plain.lists.len());
        self.plain.lists.push(items);
        self.push(Value::List(id))
    }

    fn push_dict(&mut self, items: &[Value]) -> Result<(), PickleError> {
        self.spend(CONTAINER_BYTES)?;
        let id = DictId::from_index(self.plain.dicts.len());
        self.plain.dicts.push(Vec::new());
        self.push(Value::Dict(id))?;
        self.set(items)
    }

    /// Adds to the list on top of the stack; what is added to an object goes where the object went.
    fn append(&mut self, items: &[Value]) -> Result<(), PickleError> {
        match self.top()? {
            Value::List(id) => self.plain.lists[id.index()].extend_from_slice(items),
            Value::Other => {}
            other => return Err(self.bytes.damaged(format!("items that are added to {}", Plain::kind(other)))),
        }
        Ok(())
    }

    /// Adds keys and values to the dict on top of the stack.
    fn set(&mut self, items: &[Value]) -> Result<(), PickleError> {
        match self.top()? {
            Value::Dict(id) => {
                let pairs = items.chunks_exact(2).map(|pair| (pair[0], pair[1]));
                self.plain.dicts[id.index()].extend(pairs);
            }
            Value::Other => {}
            other => return Err(self.bytes.damaged(format!("keys that are added to {}", Plain::kind(other)))),
        }
        Ok(())
    }

    fn push(&mut self, value: Value) -> Result<(), PickleError> {
        self.spend(VALUE_BYTES)?;
        self.stack.push(value);
        Ok(())
    }

    fn pop(&mut self) -> Result<Value, PickleError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let value = if self.stack.len() > floor { self.stack.pop() } else { None };
        value.ok_or_else(|| self.missing())
    }

    fn top(&self) -> Result<Value, PickleError> {
        self.stack.last().copied().ok_or_else(|| self.missing())
    }

    /// Takes the last `count` values off the stack.
    fn last(&mut self, count: usize) -> Result<Vec<Value>, PickleError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let from = self.stack.len().checked_sub(count).filter(|from| *from >= floor);
        from.map(|from| self.stack.split_off(from)).ok_or_else(|| self.missing())
    }

    /// Takes what was pushed since the last mark off the stack.
    fn items(&mut self) -> Result<Vec<Value>, PickleError> {
        let from = self.marks.pop().ok_or_else(|| self.missing())?;
        Ok(self.stack.split_off(from))
    }

    fn missing(&self) -> PickleError {
        self.bytes.damaged("an instruction for values that are not there".into())
    }

    /// Counts memory that is taken.
    fn spend(&mut self, bytes: usize) -> Result<(), PickleError> {
        self.memory_bytes += bytes;
        if self.memory_bytes <= self.max_memory_bytes {
            return Ok(());
        }
        let limit = self.max_memory_bytes >> 20;
        Err(self.bytes.damaged(format!("more data than fits into {limit} MiB of memory")))
    }

    /// Puts everything that is open into the list or dict that it is for, from the innermost outwards.
    fn close_all(&mut self) -> Result<(), PickleError> {
        loop {
            let from = self.marks.pop();
            // Without a mark it is one item of a list, or a key and its value.
            let floor = self.marks.last().copied().unwrap_or(0);
            let from = from.unwrap_or(floor + 1).max(floor + 1).min(self.stack.len());
            let items = self.stack.split_off(from);
            match self.stack.last() {
                Some(Value::List(_)) => self.append(&items)?,
                Some(Value::Dict(_)) => {
                    let items = self.put_into_lists(&items)?;
                    self.set(&items)?;
                }
                _ => {}
            }
            if self.marks.is_empty() && self.stack.len() <= 1 {
                return Ok(());
            }
        }
    }

    /// What stands where a key should is an only item, not yet put into the list before it. Gives the keys and values.
    fn put_into_lists(&mut self, items: &[Value]) -> Result<Vec<Value>, PickleError> {
        let mut pairs = Vec::with_capacity(items.len());
        let mut list = None;
        for item in items {
            let is_key = pairs.len() % 2 == 0 && matches!(item, Value::Text(_));
            if pairs.len() % 2 == 1 || is_key {
                pairs.push(*item);
            } else if let Some(Value::List(id)) = list {
                self.spend(VALUE_BYTES)?;
                let id: ListId = id;
                self.plain.lists[id.index()].push(*item);
            }
            list = Some(*item);
        }
        Ok(pairs)
    }
}
