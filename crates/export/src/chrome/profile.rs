//! What Kineto writes only of a profile that it recorded itself: a number for each row and, when that is wanted, the
//! functions around it.

use super::Json;
use super::ids::Ids;
use std::borrow::Cow;
use stepscope_trace::OpInfo;

/// How a profile is written.
#[derive(Clone, Copy, Debug)]
pub struct ProfileOptions {
    /// With the functions around each row.
    pub is_verbose: bool,
    /// The first of the numbers that operators, labels and steps have as `External id`; the others follow.
    pub first_id: i64,
}

/// The scope of a backward node.
const BACKWARD_SCOPE: u8 = 1;
/// What the names of autograd's engine's own ranges begin with.
const ENGINE: &str = "autograd::engine::evaluate_function: ";

/// What a document has of it.
pub(super) struct Profile {
    is_verbose: bool,
    pub(super) ids: Ids,
    next_row: i64,
    /// Where the last row can be told the numbers of the backward node that follows it, when it is the engine's.
    node_place: Option<usize>,
    /// Threads with calls so far, and the number of this one.
    threads: i64,
    thread: Option<i64>,
}

impl Profile {
    pub(super) fn new(ProfileOptions { is_verbose, first_id }: ProfileOptions) -> Self {
        Self { is_verbose, ids: Ids::new(first_id), next_row: 0, node_place: None, threads: 0, thread: None }
    }

    /// Whether the functions around rows are written.
    pub(super) fn is_verbose(&self) -> bool {
        self.is_verbose
    }

    /// What follows lies on another thread.
    pub(super) fn begin_thread(&mut self) {
        self.thread = None;
        self.forget_text();
    }

    /// Numbers a row.
    #[inline]
    pub(super) fn write_number(&mut self, json: &mut Json) {
        json.int("Ev Idx", self.next_row);
        self.next_row += 1;
    }

    /// What is written of `info`: of what has no sequence number no thread of a forward op.
    #[inline]
    pub(super) fn shown(info: &OpInfo) -> OpInfo {
        OpInfo { forward_thread: info.forward_thread.filter(|_| info.sequence_number.is_some()), ..*info }
    }

    /// Numbers an operator or a label; `range_number` is PyTorch's own, 0 when nobody asked for one.
    /// Autograd's engine has the numbers of the node that it runs: what begins next on its thread.
    #[inline]
    pub(super) fn write_range(&mut self, json: &mut Json, name: &str, op: Option<&OpInfo>, range_number: i64) {
        if let Some(place) = self.node_place.take() {
            let node = op.filter(|op| op.scope == BACKWARD_SCOPE);
            let numbers = node.and_then(|op| Some((op.sequence_number?, op.forward_thread?)));
            numbers.into_iter().for_each(|(number, thread)| {
                json.put_numbers(place, [("Sequence number", number), ("Fwd thread id", thread as i64)]);
            });
        }
        let number = op.and_then(|op| op.sequence_number);
        if number.is_some() && op.is_some_and(|op| op.forward_thread.is_none()) {
            json.verbatim("Fwd thread id", "0");
        }
        if number.is_none() && op.is_some_and(|op| op.scope == 0) && name.starts_with(ENGINE) {
            self.node_place = Some(json.place());
        }
        json.int("Record function id", range_number);
        self.write_number(json);
    }

    /// Whether the text so far may still change.
    pub(super) fn is_open(&self) -> bool {
        self.node_place.is_some()
    }

    /// The text so far does not change any more.
    pub(super) fn forget_text(&mut self) {
        self.node_place = None;
    }

    /// Numbers a call, and the thread that it is on.
    pub(super) fn write_call(&mut self, json: &mut Json) {
        self.write_number(json);
        if self.is_verbose {
            let thread = *self.thread.get_or_insert_with(|| {
                self.threads += 1;
                self.threads - 1
            });
            json.int("Python thread", thread);
        }
    }

    /// Writes the functions around a row, the innermost first.
    pub(super) fn write_stack<'a>(&self, json: &mut Json, functions: impl Iterator<Item = Cow<'a, str>>) {
        if !self.is_verbose {
            return;
        }
        let mut stack = String::new();
        for function in functions {
            stack.push_str(&function);
            stack.push(';');
        }
        if !stack.is_empty() {
            json.text("Call stack", &stack);
        }
    }
}

/// The name of a module as its profile lists it, its number among those of its class, and its place in the module that
/// calls it. A part of a recording has both names; any other trace only the place.
pub(super) fn listed_module(text: &str) -> Option<(&str, i64, &str)> {
    let (listed, place) = text.split_once('\n')?;
    let (_, number) = listed.rsplit_once('_')?;
    Some((listed, number.parse().ok()?, place))
}
