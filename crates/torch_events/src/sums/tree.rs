//! Which row lies in which, as rows come by start, the longest first; what leaves the tree is added to its group.

use super::groups::{Done, Group, Groups, Source};
use crate::NO_ROW;
use std::cmp::Reverse;

/// A row in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) name: u32,
    pub(super) scope: u8,
    pub(super) source: Source,
    /// Row of the capture's inputs, or [`NO_ROW`].
    pub(super) inputs: u32,
    pub(super) number: u32,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    /// Time on devices of what was launched in it and in no child.
    pub(super) own_device_ns: i64,
}

impl Row {
    /// A row without a name.
    pub(super) fn new(source: Source, number: u32, (start_ns, end_ns): (i64, i64)) -> Self {
        Self { name: NO_ROW, scope: 0, source, inputs: NO_ROW, number, start_ns, end_ns, own_device_ns: 0 }
    }
}

/// A row whose children may still come.
#[derive(Debug)]
struct Node {
    row: Row,
    children: u32,
    children_ns: i64,
    children_device_ns: i64,
    /// The first child, while it is the only one.
    only_child: Option<Done>,
}

/// The rows that are open on a thread.
#[derive(Debug)]
pub(super) struct Tree {
    open: Vec<Node>,
    pub(super) groups: Groups,
}

impl Tree {
    pub(super) fn new(groups: Groups) -> Self {
        Self { open: Vec::new(), groups }
    }

    /// Puts a row into the innermost one that it lies in; what it does not lie in has ended.
    #[inline]
    pub(super) fn place(&mut self, row: Row) {
        while let Some(Node { row: top, .. }) = self.open.last() {
            if row.start_ns < top.end_ns && row.end_ns <= top.end_ns {
                break;
            }
            self.pop();
        }
        self.open.push(Node { row, children: 0, children_ns: 0, children_device_ns: 0, only_child: None });
    }

    /// The sums of all rows, when nothing else comes.
    pub(super) fn into_groups(mut self) -> Vec<Group> {
        while !self.open.is_empty() {
            self.pop();
        }
        self.groups.into_groups()
    }

    /// Ends the innermost row.
    #[inline]
    fn pop(&mut self) {
        let Some((ended, around)) = self.open.split_last_mut() else { return };
        let row = &ended.row;
        let mut done = Done {
            name: row.name,
            scope: row.scope,
            is_async: false,
            inputs: row.inputs,
            place: (row.start_ns, Reverse(row.end_ns), row.source, row.number),
            children_ns: ended.children_ns,
            own_device_ns: row.own_device_ns,
            children_device_ns: ended.children_device_ns,
        };
        if let Some(child) = &ended.only_child {
            if child.name == done.name {
                done.children_ns = child.children_ns;
                done.children_device_ns = child.children_device_ns;
                done.own_device_ns += child.own_device_ns;
            } else {
                self.groups.add(child);
            }
        }
        match around.last_mut() {
            Some(parent) => {
                parent.children += 1;
                parent.children_ns += done.dur_ns();
                parent.children_device_ns += done.own_device_ns + done.children_device_ns;
                if parent.children == 1 {
                    parent.only_child = Some(done);
                } else {
                    parent.only_child.take().iter().for_each(|first| self.groups.add(first));
                    self.groups.add(&done);
                }
            }
            None => self.groups.add(&done),
        }
        self.open.pop();
    }
}
