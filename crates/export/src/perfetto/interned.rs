//! Texts that are written once and then referred to by number.

use super::Message;
use stepscope_base::StringId;
use stepscope_trace::{SliceKind, Trace};

/// Fields of `interned_data.proto`.
const CATEGORIES: u32 = 1;
const NAMES: u32 = 2;
const DETAIL_NAMES: u32 = 3;
const DETAIL_TEXTS: u32 = 29;

/// Which texts were written, and those that the next packet has to bring.
#[derive(Debug)]
pub(super) struct Interned {
    names: Vec<bool>,
    texts: Vec<bool>,
    categories: [bool; 64],
    details: Vec<&'static str>,
    next: Message,
}

impl Interned {
    pub(super) fn new(trace: &Trace) -> Self {
        let none = vec![false; trace.strings.len()];
        Self {
            names: none.clone(),
            texts: none,
            categories: [false; 64],
            details: Vec::new(),
            next: Message::default(),
        }
    }

    /// What was referred to and is not written yet; it counts as written from now on.
    pub(super) fn take(&mut self) -> Message {
        std::mem::take(&mut self.next)
    }

    /// The number of a name.
    pub(super) fn name(&mut self, trace: &Trace, name: StringId) -> u64 {
        let iid = u64::from(name.0) + 1;
        if !std::mem::replace(&mut self.names[name.index()], true) {
            self.bring(NAMES, iid, trace.strings.get(name));
        }
        iid
    }

    /// The number of a text that stands in a detail of an event.
    pub(super) fn text(&mut self, trace: &Trace, text: StringId) -> u64 {
        let iid = u64::from(text.0) + 1;
        if !std::mem::replace(&mut self.texts[text.index()], true) {
            self.bring(DETAIL_TEXTS, iid, trace.strings.get(text));
        }
        iid
    }

    /// The number of a kind, which is a category here.
    pub(super) fn category(&mut self, kind: SliceKind) -> u64 {
        let iid = kind as u64 + 1;
        if !std::mem::replace(&mut self.categories[kind as usize], true) {
            self.bring(CATEGORIES, iid, kind.as_str());
        }
        iid
    }

    /// The number of a detail's name.
    pub(super) fn detail(&mut self, name: &'static str) -> u64 {
        let known = self.details.iter().position(|known| *known == name);
        let at = known.unwrap_or_else(|| {
            self.details.push(name);
            self.bring(DETAIL_NAMES, self.details.len() as u64, name);
            self.details.len() - 1
        });
        at as u64 + 1
    }

    fn bring(&mut self, field: u32, iid: u64, text: &str) {
        let mut entry = Message::default();
        entry.number(1, iid);
        entry.text(2, text);
        self.next.message(field, &entry);
    }
}
