//! Names of calls: made once, never freed, so that a call can carry its name by address without the framework's or
//! Python's help.

use crate::lock::ForkLock;
use crate::names::MAX_NAME_BYTES;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Distinct names kept; what comes later shares one.
const MAX_CALL_NAMES: usize = 1 << 16;
const ID_BITS: u32 = 20;

pub(crate) static NAMES: ForkLock<BTreeMap<(&'static str, &'static CStr), &'static CallName>> =
    ForkLock::new(BTreeMap::new());
static OTHERS: CallName = CallName::new("(more functions)");

/// The name of a function, module or collection.
#[derive(Debug)]
pub struct CallName {
    text: &'static str,
    /// What else is known of it; empty for nothing.
    detail: &'static CStr,
    /// The epoch of the capture in which it has an id, and the id; 0: in none so far.
    id: AtomicU64,
}

impl CallName {
    /// A name for a `static`.
    pub const fn new(text: &'static str) -> Self {
        Self { text, detail: c"", id: AtomicU64::new(0) }
    }

    /// Its text.
    pub fn text(&self) -> &'static str {
        self.text
    }

    /// What stands in the place of an overload: the size of a module, as `65792 65536`.
    pub(crate) fn detail(&self) -> &'static CStr {
        self.detail
    }

    /// True for the name that stands for all functions beyond the bound.
    pub fn is_shared(&self) -> bool {
        std::ptr::eq(self, &OTHERS)
    }

    /// Its id in the capture of `epoch`, when it has one there. Acquire: who sees the id also sees that it was written.
    #[inline(always)]
    pub(crate) fn id(&self, epoch: u64) -> Option<u32> {
        let packed = self.id.load(Ordering::Acquire);
        (packed >> ID_BITS == epoch).then_some(packed as u32 & ((1 << ID_BITS) - 1))
    }

    pub(crate) fn set_id(&self, epoch: u64, id: u32) {
        self.id.store(epoch << ID_BITS | u64::from(id), Ordering::Release);
    }
}

/// The name with this text. Not for the hot path: remember what it gives.
pub fn call_name(text: &str) -> &'static CallName {
    call_name_with(text, c"")
}

/// The name with this text of which this is known, too.
pub fn call_name_with(text: &str, detail: &CStr) -> &'static CallName {
    let mut end = text.len().min(MAX_NAME_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    let mut names = NAMES.lock();
    if let Some(name) = names.get(&(text, detail)) {
        return name;
    }
    if names.len() >= MAX_CALL_NAMES {
        return &OTHERS;
    }
    let (text, detail): (&'static str, &'static CStr) = (Box::leak(text.into()), Box::leak(detail.into()));
    let name: &'static CallName = Box::leak(Box::new(CallName { detail, ..CallName::new(text) }));
    names.insert((text, detail), name);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_name_and_ids_belong_to_an_epoch() {
        let name = call_name("a.py(1): f");
        assert!(std::ptr::eq(name, call_name("a.py(1): f")));
        assert!(!std::ptr::eq(name, call_name("a.py(2): f")));
        let sized = call_name_with("a.py(1): f", c"8 8");
        assert!(std::ptr::eq(sized, call_name_with("a.py(1): f", c"8 8")) && !std::ptr::eq(sized, name));
        assert_eq!(name.id(1), None);
        name.set_id(3, 77);
        assert_eq!((name.id(3), name.id(2)), (Some(77), None));
    }

    #[test]
    fn names_are_bounded_and_cut_between_characters() {
        let long = "ü".repeat(MAX_NAME_BYTES);
        assert_eq!(call_name(&long).text(), &long[..MAX_NAME_BYTES]);
        (0..MAX_CALL_NAMES).for_each(|i| _ = call_name(&format!("f{i}")));
        assert!(call_name("one too many").is_shared());
        assert!(!call_name("f7").is_shared());
    }
}
