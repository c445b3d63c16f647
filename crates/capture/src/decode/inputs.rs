//! What ops were called with: each distinct one once.

use crate::inputs::Inputs;
use std::collections::HashMap;

/// Ids up to this one are always dense enough.
const FIRST_IDS: usize = 1024;

/// Distinct inputs of a capture.
#[derive(Default, Debug)]
pub(crate) struct InputsTable {
    list: Vec<Inputs>,
    /// Rows of the list by the id that the writer gave, as long as ids are dense.
    rows: Vec<Option<u32>>,
    /// Rows of the list by ids that are not dense.
    far_rows: HashMap<u32, u32>,
    /// Rows by the bytes of those that have no id.
    in_place: HashMap<Vec<u8>, u32>,
    /// How many could not be decoded.
    damaged: u64,
}

impl InputsTable {
    /// Takes in inputs that have an id.
    pub(super) fn learn(&mut self, id: u32, bytes: &[u8]) {
        if let Some(row) = self.add(bytes) {
            // Ids are given in order; only damage makes one that lies far beyond what is there.
            if (id as usize) < 2 * self.list.len() + FIRST_IDS {
                self.rows.resize(self.rows.len().max(id as usize + 1), None);
                self.rows[id as usize] = Some(row);
            } else {
                self.far_rows.insert(id, row);
            }
        }
    }

    /// Takes in inputs that have none.
    pub(super) fn learn_in_place(&mut self, bytes: &[u8]) {
        if !self.in_place.contains_key(bytes)
            && let Some(row) = self.add(bytes)
        {
            self.in_place.insert(bytes.into(), row);
        }
    }

    fn add(&mut self, bytes: &[u8]) -> Option<u32> {
        let Some(inputs) = Inputs::read(bytes) else {
            self.damaged += 1;
            return None;
        };
        self.list.push(inputs);
        u32::try_from(self.list.len() - 1).ok()
    }

    /// The row of the inputs whose id stands in these three bytes.
    #[inline]
    pub(super) fn row(&self, id: &[u8]) -> Option<u32> {
        let id = id.iter().rev().fold(0, |id, byte| id << 8 | u32::from(*byte));
        let near = self.rows.get(id as usize).copied().flatten();
        near.or_else(|| self.far_rows.get(&id).copied())
    }

    /// The row of inputs that have no id.
    pub(super) fn row_in_place(&self, bytes: &[u8]) -> Option<u32> {
        self.in_place.get(bytes).copied()
    }

    /// What was lost, in words.
    pub(crate) fn damage(&self) -> Option<String> {
        let damaged = self.damaged;
        (damaged > 0).then(|| format!("inputs of operators cannot be decoded: {damaged} of {}", self.all()))
    }

    fn all(&self) -> u64 {
        self.damaged + self.list.len() as u64
    }

    /// All of them, by row. What is left tells rows only.
    pub(crate) fn take_list(&mut self) -> Vec<Inputs> {
        std::mem::take(&mut self.list)
    }
}
