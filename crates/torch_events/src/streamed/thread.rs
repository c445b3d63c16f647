//! What one thread's ranges add up to, while they are replayed.

use super::groups::{Done, Groups};
use crate::events::USER_SCOPE;
use crate::{Grouping, NO_ROW, recorded};
use std::cmp::Reverse;
use std::ops::Range;
use stepscope_capture::short::Begin;
use stepscope_capture::{Listener, StreamedCapture, Thread};
use stepscope_run::{BACKWARD_SCOPE, Cut, Hidden};

/// What is asked of every thread.
pub(super) struct Asked {
    spans: Vec<Range<i64>>,
    hides: Hidden,
    /// The framework's ids of the thread that is asked for.
    threads: Vec<u64>,
    /// The name that each name is listed by, [`NO_ROW`] for none.
    listed: Vec<u32>,
    grouping: Grouping,
}

impl Asked {
    pub(super) fn new(
        capture: &StreamedCapture,
        cut: &Cut,
        spans: Vec<Range<i64>>,
        threads: &[Thread],
        grouping: Grouping,
    ) -> Self {
        let listed = recorded::listed(capture.names()).into_iter().map(|name| name.unwrap_or(NO_ROW)).collect();
        Self { spans, hides: cut.hides, threads: cut.framework_ids(threads), listed, grouping }
    }

    #[inline]
    fn contains(&self, at_ns: i64) -> bool {
        self.spans.iter().any(|span| span.contains(&at_ns))
    }

    /// Where what is open at the end is cut.
    fn end_ns(&self) -> i64 {
        self.spans.last().map_or(i64::MIN, |span| span.end)
    }
}

/// A range that has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Open {
    /// It is not asked for: what lies in it lies in what it lies in.
    Hidden,
    /// The innermost of `listed` that is still open.
    Listed,
    Step {
        number: i64,
        is_listed: bool,
    },
}

/// A range that is asked for and has not ended.
#[derive(Debug)]
struct Listed {
    name: u32,
    scope: u8,
    inputs: u32,
    start_ns: i64,
    is_step: bool,
    number: u32,
    children: u32,
    children_ns: i64,
    /// The first child, while it is the only one.
    only_child: Option<Done>,
}

/// The listener that adds up.
pub(super) struct ThreadAverages<'a> {
    asked: &'a Asked,
    pub(super) groups: Groups,
    open: Vec<Open>,
    listed: Vec<Listed>,
    /// The moment of the record before.
    last_ns: i64,
    begun: u32,
    has_backward: bool,
    has_given_up: bool,
}

impl<'a> ThreadAverages<'a> {
    pub(super) fn new(asked: &'a Asked) -> Self {
        Self {
            asked,
            groups: Groups::new(asked.listed.len(), asked.grouping.by_shapes),
            open: Vec::new(),
            listed: Vec::new(),
            last_ns: i64::MIN,
            begun: 0,
            has_backward: false,
            has_given_up: false,
        }
    }

    /// True when it ran a backward node of the thread that is asked for.
    pub(super) fn has_backward(&self) -> bool {
        self.has_backward
    }

    /// True when a list of events is needed to tell, also whether it ran such a node.
    pub(super) fn has_given_up(&self) -> bool {
        self.has_given_up
    }

    /// Ends what is open where the last span ends, if the process lived until then. `None` when what was heard cannot be
    /// understood.
    pub(super) fn finish(
        &mut self,
        lived_until_ns: i64,
        has_other_threads: bool,
        may_end_elsewhere: bool,
    ) -> Option<()> {
        let end_ns = self.asked.end_ns();
        while let Some(open) = self.open.pop() {
            // Another thread may have ended the step.
            let is_unclear = matches!(open, Open::Step { is_listed: true, .. }) && has_other_threads;
            if is_unclear || (open != Open::Hidden && (may_end_elsewhere || lived_until_ns < end_ns)) {
                return None;
            }
            self.end_listed(open, end_ns);
        }
        (!self.has_given_up).then_some(())
    }

    /// Times that do not go on tell nothing about what lies in what.
    #[inline]
    fn goes_on(&mut self, at_ns: i64) {
        self.has_given_up |= at_ns < self.last_ns;
        self.last_ns = at_ns;
    }

    #[inline]
    fn begin_listed(&mut self, name: u32, scope: u8, start_ns: i64, is_step: bool) {
        self.listed.push(Listed {
            name,
            scope,
            inputs: NO_ROW,
            start_ns,
            is_step,
            number: self.begun,
            children: 0,
            children_ns: 0,
            only_child: None,
        });
        self.begun += 1;
    }

    #[inline]
    fn end_listed(&mut self, open: Open, at_ns: i64) {
        if matches!(open, Open::Hidden | Open::Step { is_listed: false, .. }) {
            return;
        }
        let Some(mut ended) = self.listed.pop() else { return };
        let end_ns = at_ns.min(self.asked.end_ns());
        self.has_given_up |= end_ns <= ended.start_ns;
        if let Some(child) = ended.only_child.take() {
            if child.name == ended.name {
                ended.children_ns = child.children_ns;
            } else {
                self.groups.add(&child);
            }
        }
        let done = Done {
            name: ended.name,
            scope: ended.scope,
            inputs: ended.inputs,
            place: (ended.start_ns, Reverse(end_ns), ended.is_step, ended.number),
            children_ns: ended.children_ns,
        };
        let Some(parent) = self.listed.last_mut() else { return self.groups.add(&done) };
        // An event goes before a step of the same extent.
        self.has_given_up |= parent.is_step && parent.start_ns == ended.start_ns;
        parent.children += 1;
        parent.children_ns += done.dur_ns();
        if parent.children == 1 {
            parent.only_child = Some(done);
            return;
        }
        let first = parent.only_child.take();
        first.iter().for_each(|first| self.groups.add(first));
        self.groups.add(&done);
    }
}

impl Listener for ThreadAverages<'_> {
    #[inline]
    fn begin(&mut self, at_ns: i64, begin: &Begin) {
        self.goes_on(at_ns);
        let is_backward = begin.scope == BACKWARD_SCOPE && begin.forward_thread != 0;
        self.has_backward |= is_backward && self.asked.threads.contains(&begin.forward_thread);
        let hides = if begin.scope == USER_SCOPE { self.asked.hides.labels } else { self.asked.hides.operators };
        let name = self.asked.listed[begin.name as usize];
        if hides || name == NO_ROW || !self.asked.contains(at_ns) {
            self.open.push(Open::Hidden);
            return;
        }
        self.open.push(Open::Listed);
        self.begin_listed(name, begin.scope, at_ns, false);
    }

    #[inline]
    fn set_inputs(&mut self, row: Option<u32>) {
        if let (Some(Open::Listed), Some(listed)) = (self.open.last(), self.listed.last_mut()) {
            listed.inputs = row.unwrap_or(NO_ROW);
        }
    }

    #[inline]
    fn end(&mut self, at_ns: i64) {
        self.goes_on(at_ns);
        match self.open.last() {
            Some(Open::Step { .. }) => {
                // Begun before the step and ended in it; or before everything that was heard.
                self.has_given_up |= self.open.iter().any(|open| matches!(open, Open::Hidden | Open::Listed));
            }
            Some(open) => {
                let open = *open;
                self.open.pop();
                self.end_listed(open, at_ns);
            }
            None => {}
        }
    }

    fn begin_step(&mut self, at_ns: i64, number: i64) {
        self.goes_on(at_ns);
        self.has_given_up |= self.open.iter().any(|open| matches!(open, Open::Step { .. }));
        let is_listed = !self.asked.hides.steps && self.asked.contains(at_ns);
        self.open.push(Open::Step { number, is_listed });
        if is_listed {
            self.begin_listed(self.asked.listed.len() as u32, USER_SCOPE, at_ns, true);
        }
    }

    fn end_step(&mut self, at_ns: i64, number: i64) {
        self.goes_on(at_ns);
        match self.open.last().copied() {
            Some(open @ Open::Step { number: begun, .. }) if begun == number => {
                self.open.pop();
                self.end_listed(open, at_ns);
            }
            _ => self.has_given_up |= self.open.iter().any(|open| matches!(open, Open::Step { .. })),
        }
    }

    fn give_up(&mut self) {
        self.has_given_up = true;
    }
}
