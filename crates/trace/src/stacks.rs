//! Call stacks that events carry themselves.

use rustc_hash::FxHashMap;
use stepscope_base::{StringId, StringTable};

stepscope_base::id_type! {
    /// A row of [`Stacks`].
    StackId
}

/// Distinct call stacks, as a tree: a row is a frame and the stack that it was called from, so that stacks share what
/// they have in common. A caller stands before what it calls. 12 bytes a row.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// The innermost frame, as [`crate::Frame::parse`] reads it; without `;`.
    frame: Vec<StringId>,
    /// The rest of the stack.
    caller: Vec<Option<StackId>>,
}

impl Stacks {
    /// The innermost frame of each, and the stack of its caller, which stands before it.
    pub fn rows(&self) -> impl Iterator<Item = (StringId, Option<StackId>)> + '_ {
        self.frame.iter().copied().zip(self.caller.iter().copied())
    }

    /// Number of distinct stacks, with those that others go through.
    pub fn len(&self) -> usize {
        self.frame.len()
    }

    /// True without any stack.
    pub fn is_empty(&self) -> bool {
        self.frame.is_empty()
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = StringId> + '_ {
        let rows = std::iter::successors(Some(stack), |id| self.caller[id.index()]);
        rows.map(|id| self.frame[id.index()])
    }

    /// A stack as text: frames one after another with `;` between, innermost first.
    pub fn text(&self, stack: StackId, strings: &StringTable) -> String {
        self.frames(stack).map(|frame| strings.get(frame)).collect::<Vec<_>>().join(";")
    }
}

/// Stacks while a trace is built.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackTable {
    pub(crate) rows: Stacks,
    ids: FxHashMap<(StringId, Option<StackId>), StackId>,
}

impl StackTable {
    /// The stack that calls `frame` from `caller`, added when it is new.
    pub(crate) fn intern(&mut self, frame: StringId, caller: Option<StackId>) -> StackId {
        *self.ids.entry((frame, caller)).or_insert_with(|| {
            self.rows.frame.push(frame);
            self.rows.caller.push(caller);
            StackId::from_index(self.rows.frame.len() - 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_their_callers() {
        let (mut strings, mut table) = (StringTable::default(), StackTable::default());
        let mut stack = |outermost_first: &str| {
            let frames = outermost_first.split(' ').map(|frame| strings.intern(frame));
            frames.fold(None, |caller, frame| Some(table.intern(frame, caller))).expect("a frame")
        };
        let ids = [stack("main step mm"), stack("main step add"), stack("main step mm")];
        assert_eq!((ids[0] == ids[2], ids[0] == ids[1]), (true, false));
        assert_eq!(table.rows.len(), 4, "main, step, mm, add");
        assert_eq!(ids.map(|id| table.rows.text(id, &strings))[..2], ["mm;step;main", "add;step;main"]);
    }
}
