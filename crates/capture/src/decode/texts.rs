//! Names that stand in records and have no id of the process.

use std::collections::HashMap;

/// Distinct texts, each with the id that it has behind the defined names of the process.
#[derive(Default, Debug)]
pub(super) struct Texts {
    list: Vec<String>,
    places: HashMap<String, u32>,
    /// The id of the first text, once all names are known.
    first_id: u32,
}

impl Texts {
    /// In the place of a name whose definition is not there.
    const LOST: &str = "(name lost)";

    /// The place of a text among all texts.
    pub(super) fn learn(&mut self, text: String) -> u32 {
        let next = self.list.len() as u32;
        let place = *self.places.entry(text.clone()).or_insert(next);
        if place == next {
            self.list.push(text);
        }
        place
    }

    /// Puts all texts behind `names`, and that of names which are lost. Gives the id of the first one.
    pub(super) fn append_to(&mut self, names: &mut Vec<String>) -> u32 {
        self.learn(Self::LOST.into());
        self.first_id = names.len() as u32;
        names.append(&mut self.list);
        self.first_id
    }

    /// The id of a text; that of a name that is lost when it is not there.
    pub(super) fn id(&self, text: &str) -> u32 {
        let place = self.places.get(text).or_else(|| self.places.get(Self::LOST));
        self.first_id + place.copied().unwrap_or(0)
    }

    /// The id of a name that is lost.
    pub(super) fn lost(&self) -> u32 {
        self.id(Self::LOST)
    }
}
