//! The list of events, in columns.

use crate::flows;
use crate::inputs::InputTexts;
use crate::memory::Usage;
use crate::recorded::Recorded;
use crate::stacks::Stacks;
use crate::tree;
use std::cmp::Reverse;
use stepscope_capture::Capture;

/// No row: what has no parent.
pub const NO_ROW: u32 = u32::MAX;
/// The scope of a label.
pub(crate) const USER_SCOPE: u8 = 7;
/// What was recorded, ordered by start, the longest first. A row is an event; times count from the start of the window.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// Names that rows refer to. Those of steps have no number.
    pub names: Vec<String>,
    /// Index into `names`.
    pub name: Vec<u32>,
    /// Names as they were recorded, with the numbers of steps, by row, where they differ.
    pub traced_names: Vec<(u32, String)>,
    /// Start, ns.
    pub start_ns: Vec<i64>,
    /// Duration, ns.
    pub dur_ns: Vec<i64>,
    /// The same less what its children take.
    pub self_ns: Vec<i64>,
    /// Threads: the framework's id, or the system's without one; and the system's.
    pub threads: Vec<(u64, u64)>,
    /// Index into `threads`.
    pub thread: Vec<u32>,
    /// The row that directly contains it, or [`NO_ROW`].
    pub parent: Vec<u32>,
    /// Autograd's sequence number, -1 without one.
    pub sequence_number: Vec<i64>,
    /// The thread of a backward node's forward operator, 0 when not known.
    pub forward_thread: Vec<u64>,
    /// The number of the arrow that joins a forward operator with its backward node, 0 without one.
    pub flow: Vec<u32>,
    /// Whether it is the forward one of the two.
    pub is_flow_start: Vec<bool>,
    /// What operators were called with.
    pub input_texts: Vec<InputTexts>,
    /// Index into `input_texts`, [`NO_ROW`] for what was called with nothing known; empty when there are none.
    pub inputs: Vec<u32>,
    /// PyTorch's `RecordScope`.
    pub scope: Vec<u8>,
    /// Bytes of the host that were allocated, less those freed, while it ran; empty when memory was not recorded.
    pub cpu_bytes: Vec<i64>,
    /// The same less what its children have.
    pub self_cpu_bytes: Vec<i64>,
    /// Distinct stacks.
    pub stacks: Stacks,
    /// The functions around it, the innermost of them its caller: one of `stacks`, or [`NO_ROW`]; empty when no calls
    /// were recorded.
    pub stack: Vec<u32>,
    /// The number of a call of Python or of a module, 0 for others; empty when none were recorded.
    pub call: Vec<u32>,
    /// The number of the call around it, 0 without one.
    pub caller: Vec<u32>,
}

impl Events {
    /// What `capture` holds; times count from `zero_ns`.
    pub fn of(capture: &Capture, zero_ns: i64) -> Self {
        let recorded = Recorded::of(capture, zero_ns);
        // Threads follow one another in a capture, each in order.
        let mut order: Vec<u32> = (0..recorded.len()).filter(|item| recorded.is_listed(*item)).collect();
        order.sort_by_key(|item| {
            let placed = recorded.placed(*item);
            (placed.start_ns, Reverse(placed.end_ns))
        });
        let (parents, stays) = tree::build(order.len(), capture.threads.len(), |at| recorded.placed(order[at]));
        let mut events = Self { names: recorded.names(), threads: threads_of(capture), ..Self::default() };
        events.input_texts = capture.inputs.iter().map(InputTexts::of).collect();
        let of_host = capture.memory.iter().filter(|event| event.device_type == 0 && !event.is_out_of_memory());
        let usage = Usage::new(of_host.map(|event| (event.time_ns.saturating_sub(zero_ns), event.bytes)).collect());
        events.fill(&order, &parents, &stays, &recorded, &usage);
        events.fill_stacks(capture, &order, &stays, &recorded);
        (events.flow, events.is_flow_start) = flows::join(&events);
        events
    }

    fn fill(&mut self, order: &[u32], parents: &[u32], stays: &[bool], recorded: &Recorded<'_>, usage: &Usage) {
        self.reserve(order.len());
        let mut new_row = vec![NO_ROW; order.len()];
        for at in (0..order.len()).filter(|at| stays[*at]) {
            let placed = recorded.placed(order[at]);
            let dur_ns = placed.end_ns - placed.start_ns;
            let bytes = usage.between(placed.start_ns, placed.end_ns);
            let row = self.name.len() as u32;
            new_row[at] = row;
            let parent = if parents[at] == NO_ROW { NO_ROW } else { new_row[parents[at] as usize] };
            if parent != NO_ROW {
                self.self_ns[parent as usize] -= dur_ns;
            }
            self.name.push(placed.name);
            self.start_ns.push(placed.start_ns);
            self.dur_ns.push(dur_ns);
            self.self_ns.push(dur_ns);
            self.thread.push(placed.thread);
            self.parent.push(parent);
            let event = recorded.event(order[at]);
            self.sequence_number.push(event.and_then(|event| event.sequence_number).unwrap_or(-1));
            self.forward_thread.push(event.and_then(|event| event.forward_thread).unwrap_or(0));
            self.scope.push(event.map_or(USER_SCOPE, |event| event.scope));
            if !self.input_texts.is_empty() {
                self.inputs.push(event.and_then(|event| event.inputs).unwrap_or(NO_ROW));
            }
            self.traced_names.extend(recorded.traced_name(order[at]).map(|name| (row, name)));
            if !usage.is_empty() {
                if parent != NO_ROW {
                    self.self_cpu_bytes[parent as usize] -= bytes;
                }
                self.cpu_bytes.push(bytes);
                self.self_cpu_bytes.push(bytes);
            }
        }
    }

    fn reserve(&mut self, len: usize) {
        self.name.reserve(len);
        self.start_ns.reserve(len);
        self.dur_ns.reserve(len);
        self.self_ns.reserve(len);
        self.thread.reserve(len);
        self.parent.reserve(len);
        self.sequence_number.reserve(len);
        self.forward_thread.reserve(len);
        self.scope.reserve(len);
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.name.len()
    }

    /// True without any event.
    pub fn is_empty(&self) -> bool {
        self.name.is_empty()
    }

    /// True for a label or a step.
    pub fn is_label(&self, row: usize) -> bool {
        self.scope[row] == USER_SCOPE
    }
}

/// The framework's id of each thread, or the system's, and the system's.
fn threads_of(capture: &Capture) -> Vec<(u64, u64)> {
    let id = |own: u64, tid: u64| if own == 0 { tid } else { own };
    capture.threads.iter().map(|thread| (id(thread.framework_thread, thread.tid), thread.tid)).collect()
}

#[cfg(test)]
pub(crate) mod tests;
