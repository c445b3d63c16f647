//! What one thread called of a device's runtime, among its ranges: a row of its own, and in which range it was made.

use super::device::LaunchedOn;
use super::groups::Source;
use super::tree::{OPEN, Row, Tree};
use crate::NO_ROW;
use crate::events::USER_SCOPE;
use std::collections::VecDeque;

/// So many rows wait at least before some go into the tree.
const WAITING: usize = if cfg!(test) { 4 } else { 1_024 };

/// Where the row of a range is that has not ended.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Its number among all rows that ever waited.
    Waits(usize),
    /// How deep it lies in the tree.
    InTree(usize),
}

/// A range that has not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    place: Place,
    start_ns: i64,
    name: u32,
    /// The innermost operator and the innermost label of it and of what is open around it: one of the open ones, or
    /// [`NO_ROW`].
    operator: u32,
    innermost_label: u32,
    /// Its number among labels that launched something, once it is one.
    label: u32,
}

/// The ranges and the activity records of a thread on their way into the tree.
///
/// An activity record may overlap ranges, since its times come from another clock: so a row goes into the tree where a
/// list of events would have it, by its place, and not when it is heard of. A row waits until all that stands before it
/// is known, and of activity records the end: whether a range that is still open reaches beyond it.
#[derive(Debug)]
pub(super) struct Launched<'a> {
    on: LaunchedOn<'a>,
    /// The next one of the thread's calls, by their middles, and of its activity records, by their place.
    next_call: usize,
    next_activity: usize,
    /// By place.
    waiting: VecDeque<Row>,
    /// How many rows no longer wait.
    gone: usize,
    patience: usize,
    open: Vec<Open>,
}

impl<'a> Launched<'a> {
    pub(super) fn new(on: LaunchedOn<'a>) -> Self {
        let (waiting, open) = (VecDeque::new(), Vec::new());
        Self { on, next_call: 0, next_activity: 0, waiting, gone: 0, patience: WAITING, open }
    }

    pub(super) fn begin(&mut self, row: Row, end_ns: i64, tree: &mut Tree) {
        self.make_calls(row.start_ns, end_ns, tree);
        // Which of two labels that begin together is the inner one, the list of events tells.
        tree.needs_full_decode |=
            row.source == Source::Step && self.open.last().is_some_and(|of| of.start_ns == row.start_ns);
        let place = Place::Waits(self.gone + self.waiting.len());
        let (operator, label) = self.open.last().map_or((NO_ROW, NO_ROW), |of| (of.operator, of.innermost_label));
        let this = self.open.len() as u32;
        let (operator, innermost_label) = if row.scope == USER_SCOPE { (operator, this) } else { (this, label) };
        let (start_ns, name) = (row.start_ns, row.name);
        self.open.push(Open { place, start_ns, name, operator, innermost_label, label: NO_ROW });
        self.waiting.push_back(row);
        if self.waiting.len() >= self.patience {
            self.move_on(row.start_ns.min(end_ns), tree);
            self.patience = WAITING.max(2 * self.waiting.len());
        }
    }

    /// The innermost open range was called with this.
    pub(super) fn set_inputs(&mut self, inputs: u32, tree: &mut Tree) {
        if let Some(Open { place, .. }) = self.open.last().copied()
            && let Some(row) = self.row_mut(place, tree)
        {
            row.inputs = inputs;
        }
    }

    /// The innermost open range ends, where everything ends at `end_ns`.
    pub(super) fn end(&mut self, at_ns: i64, end_ns: i64, tree: &mut Tree) {
        self.make_calls(at_ns, end_ns, tree);
        if let Some(Open { place, .. }) = self.open.pop()
            && let Some(row) = self.row_mut(place, tree)
        {
            row.end_ns = at_ns.min(end_ns);
        }
    }

    /// Nothing else comes.
    pub(super) fn finish(&mut self, end_ns: i64, tree: &mut Tree) {
        self.make_calls(i64::MAX, end_ns, tree);
        self.move_on(i64::MAX, tree);
        while tree.depth() > 0 {
            tree.pop();
        }
    }

    fn row_mut<'b>(&'b mut self, place: Place, tree: &'b mut Tree) -> Option<&'b mut Row> {
        match place {
            Place::Waits(number) => self.waiting.get_mut(number - self.gone),
            Place::InTree(depth) => tree.row_mut(depth),
        }
    }

    /// The calls whose middle lies before `at_ns` were made in what is open now; behind `end_ns` nothing is.
    fn make_calls(&mut self, at_ns: i64, end_ns: i64, tree: &mut Tree) {
        while let Some(middle_ns) = self.on.middle_ns(self.next_call).filter(|middle_ns| *middle_ns < at_ns) {
            let call = self.next_call;
            self.next_call += 1;
            if middle_ns >= end_ns {
                continue;
            }
            let Some(Open { operator, innermost_label, .. }) = self.open.last().copied() else { continue };
            let device_ns = self.on.device_ns(call);
            let operator = self.open.get(operator as usize).map(|open| open.place);
            if let Some(row) = operator.and_then(|place| self.row_mut(place, tree)) {
                row.own_device_ns += device_ns;
            }
            if let Some(label) = self.open.get_mut(innermost_label as usize) {
                if label.label == NO_ROW {
                    label.label = self.on.new_label(label.name);
                }
                self.on.set_label(call, label.label);
            }
        }
    }

    /// Moves into the tree what has its place there already, when all ranges that are open end at `now_ns` or later.
    fn move_on(&mut self, now_ns: i64, tree: &mut Tree) {
        let place = |row: &Row| (row.start_ns, std::cmp::Reverse(row.end_ns), row.source);
        // The open ones among those that wait, from the outermost on.
        let mut next_open = self.open.partition_point(|open| matches!(open.place, Place::InTree(_)));
        loop {
            let row = match (self.waiting.front(), self.on.device_activity(self.next_activity)) {
                // Of two that begin together the longer one is outside: that is not known yet.
                (Some(row), Some(device_activity))
                    if row.end_ns == OPEN
                        && device_activity.start_ns == row.start_ns
                        && device_activity.end_ns >= now_ns =>
                {
                    return;
                }
                (Some(row), Some(device_activity)) if place(&device_activity) < place(row) => device_activity,
                (Some(row), _) => *row,
                (None, Some(device_activity)) => device_activity,
                (None, None) => return,
            };
            let is_report = row.source == Source::DeviceActivity;
            if now_ns != i64::MAX && (row.start_ns >= now_ns || is_report && row.end_ns >= now_ns) {
                return;
            }
            tree.place(row);
            if is_report {
                self.next_activity += 1;
                continue;
            }
            if row.end_ns == OPEN {
                self.open[next_open].place = Place::InTree(tree.depth() - 1);
                next_open += 1;
            }
            self.waiting.pop_front();
            self.gone += 1;
        }
    }
}
