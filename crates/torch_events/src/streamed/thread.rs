//! What one thread's ranges add up to, while they are replayed.

use super::device::LaunchedOn;
use super::groups::{Done, Group, Groups, Source};
use super::launched::Launched;
use super::tree::{OPEN, Row, Tree};
use crate::events::USER_SCOPE;
use crate::{Grouping, NO_ROW};
use std::ops::Range;
use stepscope_capture::RecordVisitor;
use stepscope_capture::layout::scope;
use stepscope_capture::short::Begin;
use stepscope_run::{BACKWARD_SCOPE, Exclude, RecordFilter, ThreadFilter, note_forward};

/// What averages are requested, of every thread.
pub(super) struct AverageRequest {
    spans: Vec<Range<i64>>,
    exclude: Exclude,
    /// The name that each name is listed by, [`NO_ROW`] for none.
    listed: Vec<u32>,
    grouping: Grouping,
}

impl AverageRequest {
    pub(super) fn new(
        filter: &RecordFilter,
        spans: Vec<Range<i64>>,
        grouping: Grouping,
        listed: &[Option<u32>],
    ) -> Self {
        let listed = listed.iter().map(|name| name.unwrap_or(NO_ROW)).collect();
        Self { spans, exclude: filter.exclude, listed, grouping }
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
    /// It is excluded: what lies in it lies in what it lies in.
    Excluded,
    /// The innermost row of the tree that is still open.
    Listed,
    /// The last of `detached` that is still open.
    Detached,
    Step {
        number: i64,
        is_listed: bool,
    },
}

/// The visitor that adds up.
pub(super) struct ThreadAverages<'a> {
    request: &'a AverageRequest,
    /// The thread, and what is selected of it if anything is.
    thread: u32,
    thread_filter: &'a ThreadFilter,
    tree: Tree,
    /// Where the thread called a device's runtime.
    launched: Option<Launched<'a>>,
    open: Vec<Open>,
    /// Open labels that may end on another thread: they have no place in the tree.
    detached: Vec<Row>,
    /// The moment of the record before.
    last_ns: i64,
    begin_count: u32,
    /// For whose operators the thread ran backward nodes: the framework's ids of threads.
    forwards: Vec<u64>,
    needs_full_decode: bool,
}

impl<'a> ThreadAverages<'a> {
    /// `names` is how many names rows may have.
    pub(super) fn new(
        request: &'a AverageRequest,
        (thread, thread_filter): (u32, &'a ThreadFilter),
        names: usize,
        launched: Option<LaunchedOn<'a>>,
    ) -> Self {
        Self {
            request,
            thread,
            thread_filter,
            tree: Tree::new(Groups::new(names, request.grouping.by_shapes)),
            launched: launched.map(Launched::new),
            open: Vec::new(),
            detached: Vec::new(),
            last_ns: i64::MIN,
            begin_count: 0,
            forwards: Vec::new(),
            needs_full_decode: false,
        }
    }

    /// For whose operators it ran backward nodes: the framework's ids of threads.
    pub(super) fn take_forwards(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.forwards)
    }

    /// True when a list of events is needed to tell, also whether it ran such a node.
    pub(super) fn needs_full_decode(&self) -> bool {
        self.needs_full_decode || self.tree.needs_full_decode
    }

    /// What it adds up to. Ends what is open where the last span ends, if the process lived until then. `None` when
    /// what was visited cannot be understood.
    pub(super) fn finish(
        mut self,
        lived_until_ns: i64,
        has_other_threads: bool,
        may_end_elsewhere: bool,
    ) -> Option<Vec<Group>> {
        let end_ns = self.request.end_ns();
        while let Some(open) = self.open.pop() {
            // Another thread may have ended the step.
            let is_ambiguous = matches!(open, Open::Step { is_listed: true, .. }) && has_other_threads;
            if is_ambiguous || (open != Open::Excluded && (may_end_elsewhere || lived_until_ns < end_ns)) {
                return None;
            }
            self.end_listed(open, end_ns);
        }
        if let Some(launched) = &mut self.launched {
            launched.finish(end_ns, &mut self.tree);
        }
        (!self.needs_full_decode()).then(|| self.tree.groups.into_groups())
    }

    /// Times that do not go on tell nothing about what lies in what.
    #[inline]
    fn check_time_order(&mut self, at_ns: i64) {
        self.needs_full_decode |= at_ns < self.last_ns;
        self.last_ns = at_ns;
    }

    #[inline]
    fn new_row(&mut self, name: u32, scope: u8, start_ns: i64, source: Source) -> Row {
        self.begin_count += 1;
        let (number, inputs, end_ns) = (self.begin_count - 1, NO_ROW, OPEN);
        Row { name, scope, source, inputs, number, start_ns, end_ns, own_device_ns: 0 }
    }

    #[inline]
    fn begin_listed(&mut self, name: u32, scope: u8, start_ns: i64, source: Source) {
        let row = self.new_row(name, scope, start_ns, source);
        match &mut self.launched {
            Some(launched) => launched.begin(row, self.request.end_ns(), &mut self.tree),
            None => self.tree.push(row),
        }
    }

    #[inline]
    fn end_listed(&mut self, open: Open, at_ns: i64) {
        if matches!(open, Open::Excluded | Open::Step { is_listed: false, .. }) {
            return;
        }
        if open == Open::Detached {
            let row = self.detached.pop().map(|row| Row { end_ns: at_ns.min(self.request.end_ns()), ..row });
            return row.iter().for_each(|row| self.tree.groups.add(&Done::detached(row)));
        }
        match &mut self.launched {
            Some(launched) => launched.end(at_ns, self.request.end_ns(), &mut self.tree),
            None => {
                if let Some(row) = self.tree.last_mut() {
                    row.end_ns = at_ns.min(self.request.end_ns());
                }
                self.tree.pop();
            }
        }
    }
}

impl RecordVisitor for ThreadAverages<'_> {
    #[inline]
    fn begin(&mut self, at_ns: i64, begin: &Begin) {
        self.check_time_order(at_ns);
        if begin.scope == BACKWARD_SCOPE {
            note_forward(&mut self.forwards, begin.forward_thread);
        }
        let (scope, is_detached) = scope::decoded(begin.scope);
        let exclude = if scope == USER_SCOPE { self.request.exclude.labels } else { self.request.exclude.operators };
        let name = self.request.listed[begin.name as usize];
        let is_selected = self.request.contains(at_ns) && self.thread_filter.has(self.thread, at_ns);
        if exclude || name == NO_ROW || !is_selected {
            self.open.push(Open::Excluded);
            return;
        }
        if is_detached {
            // What it launched is not its own there.
            self.needs_full_decode |= self.launched.is_some();
            self.open.push(Open::Detached);
            let row = self.new_row(name, scope, at_ns, Source::Event);
            return self.detached.push(row);
        }
        self.open.push(Open::Listed);
        self.begin_listed(name, scope, at_ns, Source::Event);
    }

    #[inline]
    fn set_inputs(&mut self, row: Option<u32>) {
        match self.open.last() {
            Some(Open::Listed) => {}
            Some(Open::Detached) => {
                return self
                    .detached
                    .last_mut()
                    .into_iter()
                    .for_each(|detached_row| detached_row.inputs = row.unwrap_or(NO_ROW));
            }
            _ => return,
        }
        match (&mut self.launched, row.unwrap_or(NO_ROW)) {
            (Some(launched), inputs) => launched.set_inputs(inputs, &mut self.tree),
            (None, inputs) => self.tree.last_mut().into_iter().for_each(|row| row.inputs = inputs),
        }
    }

    #[inline]
    fn end(&mut self, at_ns: i64) {
        self.check_time_order(at_ns);
        match self.open.last() {
            Some(Open::Step { .. }) => {
                // Begun before the step and ended in it; or before everything that was visited.
                self.needs_full_decode |=
                    self.open.iter().any(|open| matches!(open, Open::Excluded | Open::Listed | Open::Detached));
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
        self.check_time_order(at_ns);
        self.needs_full_decode |= self.open.iter().any(|open| matches!(open, Open::Step { .. }));
        let is_listed = !self.request.exclude.steps && self.request.contains(at_ns);
        self.open.push(Open::Step { number, is_listed });
        if is_listed {
            self.begin_listed(self.request.listed.len() as u32, USER_SCOPE, at_ns, Source::Step);
        }
    }

    fn end_step(&mut self, at_ns: i64, number: i64) {
        self.check_time_order(at_ns);
        match self.open.last().copied() {
            Some(open @ Open::Step { number: begun, .. }) if begun == number => {
                self.open.pop();
                self.end_listed(open, at_ns);
            }
            _ => self.needs_full_decode |= self.open.iter().any(|open| matches!(open, Open::Step { .. })),
        }
    }

    fn fall_back(&mut self) {
        self.needs_full_decode = true;
    }
}
