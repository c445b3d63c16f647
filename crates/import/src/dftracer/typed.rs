//! What calls on files say, read into numbers, so that a thread of its own can do it: only what takes more than one row
//! to know is left for the thread that adds them.

use super::hashes::Hash;
use super::quick;
use super::row::{Args, FileName, Phase, Row, integer, plain_digits};
use super::scanner::Scanner;
use super::stretches::between_rows;
use std::ops::Range;

/// An integer of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Number {
    /// It is not given.
    Missing,
    /// It is none.
    Unreadable,
    /// This.
    Is(i64),
}

impl Number {
    fn read(written: &[u8]) -> Self {
        match written {
            [] => Self::Missing,
            _ => integer(written).map_or(Self::Unreadable, Self::Is),
        }
    }

    /// The number, if it is one.
    pub(super) fn get(self) -> Option<i64> {
        match self {
            Self::Is(number) => Some(number),
            Self::Missing | Self::Unreadable => None,
        }
    }

    /// This one, or another where it is not given.
    pub(super) fn or(self, other: Self) -> Self {
        if self == Self::Missing { other } else { self }
    }
}

/// The numbers of a call on a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CallNumbers {
    pub(super) result: Number,
    pub(super) count: Number,
    pub(super) size: Number,
    pub(super) offset: Number,
}

impl CallNumbers {
    /// Those among `args`.
    #[inline]
    pub(super) fn of(args: &Args<'_>) -> Self {
        let [result, count, size, offset] = [args.result, args.count, args.size, args.offset].map(Number::read);
        Self { result, count, size, offset }
    }
}

/// Bytes of a text.
pub(super) type Place = Range<u32>;

/// The file of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum CallFile {
    /// Not named.
    Missing,
    /// Its path as written.
    Path(Place),
    /// A hash that means the same in every process.
    Hash(Hash),
}

/// A row with a duration whose numbers are numbers.
#[derive(Clone, Debug)]
pub(super) struct TypedRow {
    /// Its first byte.
    pub(super) at: u32,
    /// Which of the owners.
    pub(super) owner: u32,
    /// Which of the calls.
    pub(super) call: u32,
    pub(super) time: u64,
    pub(super) duration: u64,
    /// Its number within its process, where rows may be written twice.
    pub(super) id: Option<u64>,
    pub(super) numbers: CallNumbers,
    pub(super) file: CallFile,
}

/// One row of a stretch.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// Its numbers.
    Typed(TypedRow),
    /// Something else begins here.
    Other(u32),
}

/// The process and the thread of rows, as written.
#[derive(Clone, Debug)]
pub(super) struct TypedOwner {
    pub(super) pid: Place,
    pub(super) tid: Place,
    pub(super) host: Place,
    pub(super) is_host_hashed: bool,
}

/// What is called, as written.
#[derive(Clone, Debug)]
pub(super) struct TypedCall {
    pub(super) category: Place,
    pub(super) name: Place,
}

/// The rows of a stretch, up to the first that cannot be read.
#[derive(Debug, Default)]
pub(super) struct TypedStretch {
    pub(super) items: Vec<Item>,
    pub(super) owners: Vec<TypedOwner>,
    pub(super) calls: Vec<TypedCall>,
    /// Rows are read up to here.
    pub(super) end: usize,
    /// Brackets close a list between them.
    pub(super) has_closed_list: bool,
    /// Calls used of late, by a few of their bytes.
    recent: Vec<u32>,
}

/// Slots for calls used of late.
const RECENT: usize = 128;

impl TypedStretch {
    /// Reads rows from the begin of `text`, instead of those before.
    pub(super) fn read(&mut self, text: &[u8]) {
        self.items.clear();
        self.owners.clear();
        self.calls.clear();
        self.recent.clear();
        self.recent.resize(RECENT, u32::MAX);
        let (mut at, mut is_open) = (0, true);
        loop {
            at += between_rows(&text[at..], &mut is_open);
            if text.get(at) != Some(&b'{') {
                break;
            }
            if let Some((row, end)) = quick::read_row(text, at) {
                let item = self.typed(text, at, &row).map_or(Item::Other(at as u32), Item::Typed);
                self.items.push(item);
                at = end;
                continue;
            }
            let mut scanner = Scanner::new_at(text, at);
            if Row::read(&mut scanner).is_err() {
                break;
            }
            self.items.push(Item::Other(at as u32));
            at = scanner.at();
        }
        (self.end, self.has_closed_list) = (at, !is_open);
    }

    #[inline]
    fn typed(&mut self, text: &[u8], at: usize, row: &Row<'_>) -> Option<TypedRow> {
        if row.phase != Phase::Complete {
            return None;
        }
        let file = match row.args.file {
            FileName::Missing => CallFile::Missing,
            FileName::Path(path) => CallFile::Path(place(text, path)),
            FileName::Hash(written) => CallFile::Hash(Hash::wide(written)?),
        };
        Some(TypedRow {
            at: at as u32,
            time: plain_digits(row.time)?,
            duration: plain_digits(row.duration)?,
            id: if row.is_numbered_phase { None } else { plain_digits(row.id) },
            numbers: CallNumbers::of(&row.args),
            file,
            owner: self.owner(text, row),
            call: self.call(text, row),
        })
    }

    fn owner(&mut self, text: &[u8], row: &Row<'_>) -> u32 {
        let is_same = self.owners.last().is_some_and(|last| {
            part(text, &last.tid) == row.tid
                && part(text, &last.pid) == row.pid
                && part(text, &last.host) == row.args.host
                && last.is_host_hashed == row.args.is_host_hashed
        });
        if !is_same {
            let [pid, tid, host] = [row.pid, row.tid, row.args.host].map(|written| place(text, written));
            self.owners.push(TypedOwner { pid, tid, host, is_host_hashed: row.args.is_host_hashed });
        }
        self.owners.len() as u32 - 1
    }

    fn call(&mut self, text: &[u8], row: &Row<'_>) -> u32 {
        let slot = few_bytes(row.category, row.name) % RECENT;
        let known = self.recent[slot];
        if let Some(call) = self.calls.get(known as usize)
            && part(text, &call.name) == row.name
            && part(text, &call.category) == row.category
        {
            return known;
        }
        self.calls.push(TypedCall { category: place(text, row.category), name: place(text, row.name) });
        self.recent[slot] = self.calls.len() as u32 - 1;
        self.recent[slot]
    }
}

/// A number made of a few bytes of both, quickly.
pub(super) fn few_bytes(category: &[u8], name: &[u8]) -> usize {
    let byte = |text: &[u8], at: usize| usize::from(text.get(at).copied().unwrap_or_default());
    let last = name.len().saturating_sub(1);
    byte(name, 0) ^ byte(name, last / 2) << 1 ^ byte(name, last) << 2 ^ byte(category, 0) ^ name.len() << 3
}

/// Where a part of a text lies in it.
fn place(text: &[u8], written: &[u8]) -> Place {
    // What is missing lies nowhere.
    let from = if written.is_empty() { 0 } else { (written.as_ptr().addr() - text.as_ptr().addr()) as u32 };
    from..from + written.len() as u32
}

/// The bytes at a place.
pub(super) fn part<'a>(text: &'a [u8], place: &Place) -> &'a [u8] {
    &text[place.start as usize..place.end as usize]
}
