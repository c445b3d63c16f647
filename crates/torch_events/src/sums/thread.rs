//! What one thread's ranges add up to.

use super::device::LaunchedOn;
use super::groups::{Done, Group, Groups, Source};
use super::launches::Launches;
use super::tree::{Row, Tree};
use crate::NO_ROW;
use crate::events::USER_SCOPE;
use std::cmp::Reverse;
use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;
use stepscope_capture::{Capture, Event, EventList};
use stepscope_run::{BACKWARD_SCOPE, Exclude, ResolvedFilter, ThreadFilter, note_forward};

/// What averages are requested, of every thread.
pub(super) struct AverageRequest<'a> {
    resolved: &'a ResolvedFilter,
    exclude: Exclude,
    by_shapes: bool,
    /// The name that each name is listed by, `None` for none.
    listed: &'a [Option<u32>],
}

impl<'a> AverageRequest<'a> {
    pub(super) fn new(
        resolved: &'a ResolvedFilter,
        exclude: Exclude,
        by_shapes: bool,
        listed: &'a [Option<u32>],
    ) -> Self {
        Self { resolved, exclude, by_shapes, listed }
    }
}

/// Adds up what a thread recorded.
pub(super) struct ThreadSums<'a> {
    request: &'a AverageRequest<'a>,
    /// What is selected of threads.
    thread_filter: &'a ThreadFilter,
    tree: Tree,
    /// Steps that are not in the tree yet, by start and the longest first.
    steps: Peekable<IntoIter<Row>>,
    /// Where the thread called a device's runtime.
    launched: Option<Launches<'a>>,
    /// Activity records of the thread that are in the tree already.
    activities: usize,
    events: u32,
    /// Those of the list that is being added, in order.
    rows: Vec<Row>,
    /// For whose operators the thread ran backward nodes: the framework's ids of threads.
    forwards: Vec<u64>,
}

impl<'a> ThreadSums<'a> {
    /// `names` is how many names rows may have.
    pub(super) fn new(
        request: &'a AverageRequest<'a>,
        capture: &Capture,
        (thread, thread_filter): (u32, &'a ThreadFilter),
        names: usize,
        launched: Option<LaunchedOn<'a>>,
    ) -> Self {
        let is_listed = !request.exclude.steps && thread_filter.has_thread(thread);
        let name = request.listed.len() as u32;
        let steps = (0_u32..).zip(&capture.steps).filter(|(_, step)| is_listed && step.thread == thread);
        let steps = steps.filter_map(|(number, step)| {
            let span = request.resolved.clip_step(step)?;
            Some(Row { name, scope: USER_SCOPE, ..Row::new(Source::Step, number, span) })
        });
        let mut steps: Vec<Row> = steps.collect();
        steps.sort_by_key(Row::place);
        Self {
            request,
            thread_filter,
            tree: Tree::new(Groups::new(names, request.by_shapes)),
            launched: launched.map(|launched| Launches::new(launched, steps.clone())),
            steps: steps.into_iter().peekable(),
            activities: 0,
            events: 0,
            rows: Vec::new(),
            forwards: Vec::new(),
        }
    }

    /// For whose operators it ran backward nodes: the framework's ids of threads.
    pub(super) fn take_forwards(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.forwards)
    }

    /// Adds events of the thread, which begin when all before have ended.
    pub(super) fn add(&mut self, events: &EventList, range: Range<usize>) {
        if self.launched.is_none() {
            for at in range {
                if let Some(row) = self.row(&events.at(at)) {
                    self.place(row);
                }
            }
            return;
        }
        let mut rows = std::mem::take(&mut self.rows);
        rows.extend(range.filter_map(|at| self.row(&events.at(at))));
        self.launched.iter_mut().for_each(|launched| launched.join(&mut rows));
        rows.drain(..).for_each(|row| self.place(row));
        self.rows = rows;
    }

    /// Puts a row into the tree, behind what stands before it.
    #[inline]
    fn place(&mut self, row: Row) {
        self.place_before(Some(&row));
        self.tree.place(row);
    }

    /// The row of an event in the tree. One that is in no tree is added up.
    #[inline]
    fn row(&mut self, event: &Event) -> Option<Row> {
        if event.scope == BACKWARD_SCOPE {
            note_forward(&mut self.forwards, event.forward_thread.unwrap_or(0));
        }
        let (start_ns, end_ns) = self.request.resolved.clip_event(event)?;
        let name = self.request.listed[event.name as usize]?;
        if !self.thread_filter.has_event(event) {
            return None;
        }
        self.events += 1;
        let row = Row {
            name,
            scope: event.scope,
            inputs: event.inputs.unwrap_or(NO_ROW),
            ..Row::new(Source::Event, self.events - 1, (start_ns, end_ns.max(start_ns)))
        };
        if event.is_async {
            self.tree.groups.add(&Done::detached(&row));
            return None;
        }
        Some(row)
    }

    /// Puts steps and activity records into the tree that stand before a row; all of them without one.
    #[inline]
    fn place_before(&mut self, row: Option<&Row>) {
        loop {
            let activity = self.launched.as_ref().and_then(|launched| launched.activity(self.activities));
            let step = self.steps.peek();
            let next = match (step, &activity) {
                (Some(step), Some(activity)) if activity.place() < step.place() => activity,
                (Some(step), _) => step,
                (None, Some(activity)) => activity,
                (None, None) => return,
            };
            if row.is_some_and(|row| row.place() <= next.place()) {
                return;
            }
            let next = *next;
            self.tree.place(next);
            match next.source {
                Source::Step => drop(self.steps.next()),
                _ => self.activities += 1,
            }
        }
    }

    /// What it adds up to, when nothing else comes.
    pub(super) fn finish(mut self) -> Vec<Group> {
        if let Some(launched) = &mut self.launched {
            launched.finish();
        }
        self.place_before(None);
        self.tree.into_groups()
    }
}

impl Row {
    /// Where it stands among the rows of its thread.
    #[inline]
    pub(super) fn place(&self) -> (i64, Reverse<i64>, Source) {
        (self.start_ns, Reverse(self.end_ns), self.source)
    }
}
