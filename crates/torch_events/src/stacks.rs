//! The functions of Python that are around each event.

use crate::event_source::{EventSource, Item};
use crate::tree::Placed;
use crate::{Events, NO_ROW};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use stepscope_capture::Capture;

/// The scope of a backward node.
const BACKWARD_SCOPE: u8 = 1;
/// Functions that `torch.profiler` leaves out of stacks: both texts stand in their names.
const LEFT_OUT: [(&str, &str); 6] = [
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
    ("_internal/common_utils", "prof_callable"),
    ("_internal/common_utils", "prof_func_call"),
    ("_internal/common_utils", "prof_meth_call"),
];

/// Distinct stacks. A stack is a function and the stack that it was called from.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// The stack below, or [`NO_ROW`], and the name of the innermost function.
    frames: Vec<(u32, u32)>,
    known: FxHashMap<(u32, u32), u32>,
}

impl Stacks {
    fn push(&mut self, below: u32, name: u32) -> u32 {
        *self.known.entry((below, name)).or_insert_with(|| {
            self.frames.push((below, name));
            self.frames.len() as u32 - 1
        })
    }

    /// Number of stacks.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The stack below each, or [`NO_ROW`], and the name of its innermost function. A stack stands behind that below
    /// it.
    pub fn frames(&self) -> &[(u32, u32)] {
        &self.frames
    }

    /// The names of a stack's functions, the innermost first; none for [`NO_ROW`].
    pub fn names(&self, stack: u32) -> impl Iterator<Item = u32> {
        let frame = |stack: u32| self.frames.get(stack as usize).copied();
        std::iter::successors(frame(stack), move |(below, _)| frame(*below)).map(|(_, name)| name)
    }
}

/// Numbers for the innermost functions of stacks, the same for those that are alike in several lists.
pub(crate) struct Innermost<'a> {
    frames: usize,
    known: FxHashMap<Vec<&'a str>, u32>,
}

impl<'a> Innermost<'a> {
    /// Of the `frames` innermost functions of each stack.
    pub(crate) fn new(frames: usize) -> Self {
        Self { frames, known: FxHashMap::default() }
    }

    /// The number of each stack of a list; empty when no functions are wanted.
    pub(crate) fn of(&mut self, events: &'a Events) -> Vec<u32> {
        let stacks = if self.frames == 0 { 0 } else { events.stacks.len() as u32 };
        let number = |stack: u32| {
            let names = events.stacks.names(stack).take(self.frames);
            let names = names.map(|name| events.names[name as usize].as_str()).collect();
            let next = self.known.len() as u32;
            *self.known.entry(names).or_insert(next)
        };
        (0..stacks).map(number).collect()
    }
}

/// The number of each thread's first call. Calls are numbered by thread, as in a Chrome trace.
fn first_calls(capture: &Capture, order: &[u32], event_source: &EventSource<'_>) -> Vec<u32> {
    let mut calls = vec![0; capture.threads.len()];
    let of_calls = order.iter().filter(|item| event_source.calls.is_listed(**item as usize));
    of_calls.for_each(|item| calls[event_source.placed(*item).thread as usize] += 1);
    let mut next = 1;
    for count in &mut calls {
        next += std::mem::replace(count, next);
    }
    calls
}

/// What is open on a thread: with what begins inside it, its stack and the number of the innermost call.
#[derive(Clone, Copy)]
struct Open {
    /// The first end of this and of what is open around it.
    end_ns: i64,
    stack: u32,
    call: u32,
}

/// Threads with what is open on them.
struct Threads {
    open: Vec<Vec<Open>>,
    by_framework_id: FxHashMap<u64, usize>,
}

impl Threads {
    fn of(capture: &Capture) -> Self {
        let ids = capture.threads.iter().enumerate().filter(|(_, thread)| thread.framework_thread != 0);
        let by_framework_id = ids.map(|(at, thread)| (thread.framework_thread, at)).collect();
        Self { open: vec![Vec::new(); capture.threads.len()], by_framework_id }
    }

    /// What is innermost on a thread at a moment. What has ended takes with it all that began inside it: a label begins
    /// inside the call that enters it, and outlives that.
    fn innermost(&mut self, thread: usize, at_ns: i64) -> Option<Open> {
        let open = &mut self.open[thread];
        while open.last().is_some_and(|last| last.end_ns <= at_ns) {
            open.pop();
        }
        open.last().copied()
    }

    fn push(&mut self, thread: usize, inside: Open) {
        let around_ns = self.open[thread].last().map_or(i64::MAX, |around| around.end_ns);
        self.open[thread].push(Open { end_ns: inside.end_ns.min(around_ns), ..inside });
    }
}

/// The stack around each item, and for calls their numbers, from 1; 0 without one.
#[derive(Clone, Copy)]
struct Around {
    stack: u32,
    call: u32,
    caller: u32,
}

impl Events {
    /// Fills the columns of stacks and of calls; `order` are the items by start, of which those that stay are rows.
    pub(crate) fn fill_stacks(
        &mut self,
        capture: &Capture,
        order: &[u32],
        kept: &[bool],
        event_source: &EventSource<'_>,
    ) {
        if !order.iter().any(|item| event_source.calls.is_listed(*item as usize)) {
            return;
        }
        let around = self.around(capture, order, event_source);
        let of_rows = around.into_iter().zip(kept).filter(|(_, kept)| **kept);
        for (row, (around, _)) in of_rows.enumerate() {
            self.stack.push(if self.is_memory[row] { NO_ROW } else { around.stack });
            self.call.push(around.call);
            self.caller.push(around.caller);
            if around.call != 0 {
                self.scope[row] = 0;
            }
        }
        self.take_stacks_of_forward();
    }

    fn around(&mut self, capture: &Capture, order: &[u32], event_source: &EventSource<'_>) -> Vec<Around> {
        let is_left_out = |name: &String| LEFT_OUT.iter().any(|(a, b)| name.contains(a) && name.contains(b));
        let is_left_out: Vec<bool> = self.names.iter().map(is_left_out).collect();
        let mut threads = Threads::of(capture);
        let mut next_call = first_calls(capture, order, event_source);
        let mut stacks_of_operators =
            vec![NO_ROW; if event_source.activities.is_empty() { 0 } else { event_source.host_ranges() }];
        let mut of_item = |item: u32| {
            if event_source.item(item).is_on_device() {
                return Around { stack: NO_ROW, call: 0, caller: 0 };
            }
            let Placed { start_ns, end_ns, thread, name, .. } = event_source.placed(item);
            let thread = thread as usize;
            let inside = threads.innermost(thread, start_ns).or_else(|| {
                // A thread of autograd's is inside of what waits for it.
                let forward = event_source.event(item)?.forward_thread?;
                let forward = *threads.by_framework_id.get(&forward)?;
                threads.innermost(forward, start_ns)
            });
            let inside = inside.unwrap_or(Open { end_ns: i64::MAX, stack: NO_ROW, call: 0 });
            let mut around = Around { stack: inside.stack, call: 0, caller: inside.call };
            let mut open = Open { end_ns, ..inside };
            if event_source.calls.is_listed(item as usize) {
                around.call = next_call[thread];
                next_call[thread] += 1;
                open.call = around.call;
                if !is_left_out[name as usize] {
                    open.stack = self.stacks.push(inside.stack, name);
                }
            }
            threads.push(thread, open);
            stacks_of_operators.get_mut(item as usize).into_iter().for_each(|stack| *stack = around.stack);
            around
        };
        let mut around: Vec<Around> = order.iter().map(|item| of_item(*item)).collect();
        // What runs on a device has the stack of the operator that launched it.
        for (around, item) in around.iter_mut().zip(order) {
            if let Item::DeviceActivity(device_activity) = event_source.item(*item)
                && device_activity.record.thread().is_none()
            {
                let operator = event_source.operator(*item);
                around.stack = stacks_of_operators.get(operator as usize).copied().unwrap_or(NO_ROW);
            }
        }
        around
    }

    /// What runs in a backward node has the stack of what runs in its forward operator.
    fn take_stacks_of_forward(&mut self) {
        let mut node = vec![NO_ROW; self.len()];
        let mut forward: FxHashMap<(i64, u64), u32> = FxHashMap::default();
        for row in 0..self.len() {
            let parent = self.parent[row];
            node[row] = match () {
                () if self.scope[row] == BACKWARD_SCOPE => row as u32,
                () if parent != NO_ROW => node[parent as usize],
                () => NO_ROW,
            };
            if node[row] == NO_ROW {
                let thread = self.threads[self.thread[row] as usize].0;
                forward.entry((self.sequence_number[row], thread)).or_insert(self.stack[row]);
            }
        }
        for row in (0..self.len()).filter(|row| node[*row] != NO_ROW) {
            let node = node[row] as usize;
            let key = (self.sequence_number[node], self.forward_thread[node]);
            self.stack[row] = forward.get(&key).copied().unwrap_or(NO_ROW);
        }
    }

    /// The names of the functions around a row, the innermost first; empty when no calls were recorded.
    pub fn stack_of(&self, row: usize) -> impl Iterator<Item = &str> {
        let stack = self.stack.get(row).copied().unwrap_or(NO_ROW);
        self.stacks.names(stack).map(|name| self.names[name as usize].as_str())
    }

    /// Writes a line an event that has a stack and at least a microsecond of its own, of the host or of devices: the
    /// functions around it, the outermost first, and how many microseconds.
    ///
    /// # Errors
    /// When `to` fails.
    pub fn write_folded(&self, to: &mut impl Write, is_of_devices: bool) -> io::Result<()> {
        let self_ns = if is_of_devices { &self.device.self_ns } else { &self.self_ns };
        let mut texts: FxHashMap<u32, String> = FxHashMap::default();
        for (row, stack) in self.stack.iter().copied().enumerate().filter(|(_, stack)| *stack != NO_ROW) {
            let self_us = self_ns.get(row).copied().unwrap_or(0) / 1000;
            if self_us > 0 {
                let text = texts.entry(stack).or_insert_with(|| self.folded(stack));
                writeln!(to, "{text} {self_us}")?;
            }
        }
        Ok(())
    }

    fn folded(&self, stack: u32) -> String {
        let names: Vec<&str> = self.stacks.names(stack).map(|name| self.names[name as usize].as_str()).collect();
        let safe = |name: &&str| name.replace([' ', ';', '\t', '\n'], "_");
        names.iter().rev().map(safe).collect::<Vec<_>>().join(";")
    }
}

#[cfg(test)]
mod tests;
