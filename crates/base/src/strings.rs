//! Interned strings: each distinct text is stored once and named by an id.

use rustc_hash::FxHashMap;

crate::id_type! {
    /// The id of a text in a [`StringTable`].
    StringId
}

/// Distinct texts in order of first appearance. `StringId(0)` is always the empty text.
#[derive(Clone, Debug)]
pub struct StringTable {
    texts: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, StringId>,
}

impl Default for StringTable {
    fn default() -> Self {
        let mut table = Self { texts: Vec::new(), ids: FxHashMap::default() };
        table.intern("");
        table
    }
}

impl StringTable {
    /// The id of the empty text.
    pub const EMPTY: StringId = StringId(0);

    /// The id of `text`, added when it is new.
    pub fn intern(&mut self, text: &str) -> StringId {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = StringId::from_index(self.texts.len());
        self.texts.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    /// The text behind `id`.
    pub fn get(&self, id: StringId) -> &str {
        &self.texts[id.index()]
    }

    /// The id of `text` when it is in the table.
    pub fn find(&self, text: &str) -> Option<StringId> {
        self.ids.get(text).copied()
    }

    /// Number of distinct texts, the empty one included.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Never true: the empty text is always there.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_has_one_id() {
        let mut table = StringTable::default();
        let id = table.intern("aten::mm");
        assert_eq!(table.intern("aten::mm"), id);
        assert_eq!(table.get(id), "aten::mm");
        assert_eq!(table.find("aten::mm"), Some(id));
        assert_eq!(table.find("aten::bmm"), None);
        assert_eq!(table.get(StringTable::EMPTY), "");
        assert_eq!(table.len(), 2);
    }
}
