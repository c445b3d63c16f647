//! In which operator and in which label one thread called a device's runtime.

use super::device::LaunchedOn;
use super::tree::Row;
use crate::NO_ROW;
use crate::events::USER_SCOPE;
use std::iter::Peekable;
use std::vec::IntoIter;

/// A label that is open: its name, and its number among those that launched something, once it is one.
#[derive(Clone, Copy, Debug)]
struct Label {
    name: u32,
    number: u32,
}

/// What is open on a thread where it calls the runtime of a device.
#[derive(Debug)]
pub(super) struct Launches<'a> {
    on: LaunchedOn<'a>,
    /// The next one of the thread's calls, by their middles.
    next_call: usize,
    /// Steps that have not begun yet.
    steps: Peekable<IntoIter<Row>>,
    /// The end of each open label, and the label.
    labels: Vec<(i64, Label)>,
}

impl<'a> Launches<'a> {
    pub(super) fn new(on: LaunchedOn<'a>, steps: Vec<Row>) -> Self {
        Self { on, next_call: 0, steps: steps.into_iter().peekable(), labels: Vec::new() }
    }

    /// An activity record of the thread, by its place among them.
    pub(super) fn activity(&self, at: usize) -> Option<Row> {
        self.on.activity(at)
    }

    /// Gives `rows` the time on devices of what was launched in them. They are in order, and begin when all before them
    /// have ended.
    pub(super) fn join(&mut self, rows: &mut [Row]) {
        let Some(end_ns) = rows.iter().map(|row| row.end_ns).max() else { return };
        let mut next = 0;
        // Ends and indexes.
        let mut operators: Vec<(i64, usize)> = Vec::new();
        while let Some(middle_ns) = self.on.middle_ns(self.next_call).filter(|middle_ns| *middle_ns < end_ns) {
            while let Some(row) = rows.get(next).filter(|row| row.start_ns <= middle_ns) {
                // A step is around the labels that begin with it or later.
                self.open_steps(row.start_ns);
                if row.scope == USER_SCOPE {
                    let label = Label { name: row.name, number: NO_ROW };
                    push(&mut self.labels, (row.start_ns, row.end_ns), label);
                } else {
                    push(&mut operators, (row.start_ns, row.end_ns), next);
                }
                next += 1;
            }
            if let Some((_, operator)) = innermost(&mut operators, middle_ns) {
                rows[*operator].own_device_ns += self.on.device_ns(self.next_call);
            }
            self.label_call(middle_ns);
        }
    }

    /// No other rows come: what was called later was called in steps alone.
    pub(super) fn finish(&mut self) {
        while let Some(middle_ns) = self.on.middle_ns(self.next_call) {
            self.label_call(middle_ns);
        }
    }

    fn open_steps(&mut self, until_ns: i64) {
        while let Some(step) = self.steps.next_if(|step| step.start_ns <= until_ns) {
            push(&mut self.labels, (step.start_ns, step.end_ns), Label { name: step.name, number: NO_ROW });
        }
    }

    /// Gives the next call the innermost label around it.
    fn label_call(&mut self, middle_ns: i64) {
        self.open_steps(middle_ns);
        if let Some((_, label)) = innermost(&mut self.labels, middle_ns) {
            if label.number == NO_ROW {
                label.number = self.on.new_label(label.name);
            }
            self.on.set_label(self.next_call, label.number);
        }
        self.next_call += 1;
    }
}

fn push<T>(open: &mut Vec<(i64, T)>, (start_ns, end_ns): (i64, i64), what: T) {
    innermost(open, start_ns);
    open.push((end_ns, what));
}

/// What is open at a moment; what has ended is taken away.
fn innermost<T>(open: &mut Vec<(i64, T)>, at_ns: i64) -> Option<&mut (i64, T)> {
    while open.pop_if(|(end_ns, _)| *end_ns <= at_ns).is_some() {}
    open.last_mut()
}
