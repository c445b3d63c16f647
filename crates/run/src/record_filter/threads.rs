//! Which threads are selected, and which times of them: what a thread did for another one is that one's.
//!
//! ```text
//! thread 1     enters state 7 ----a---- hands b on
//! thread 2     state 1 ---- state 7 --b-- state 1 ----       thread 1 with state 7: a and b
//! ```

use super::{BACKWARD_SCOPE, RecordFilter};
use std::collections::HashSet;
use stepscope_capture::layout::scope;
use stepscope_capture::{Capture, Event, ProfilerState, Thread};

/// Whether the events of a thread are selected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadInclusion {
    /// They are.
    Yes,
    /// They are when it ran a backward node of an operator of a thread that is.
    IfBackward,
    /// They are not.
    No,
}

/// What is selected of each thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadFilter {
    of_threads: Vec<OfThread>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct OfThread {
    /// Whether anything is.
    is_shown: bool,
    /// Whether what comes before all `changes` is.
    is_first_shown: bool,
    /// From when on it is, or is not.
    changes: Vec<(i64, bool)>,
}

impl ThreadFilter {
    /// Whether anything of a thread is selected: then its calls, steps and marks are.
    pub fn has_thread(&self, thread: u32) -> bool {
        self.of_threads.get(thread as usize).is_some_and(|of| of.is_shown)
    }

    /// Whether what began on a thread at a moment is selected.
    #[inline]
    pub fn has(&self, thread: u32, at_ns: i64) -> bool {
        let Some(of) = self.of_threads.get(thread as usize) else { return false };
        match of.changes.partition_point(|(since_ns, _)| *since_ns <= at_ns) {
            0 => of.is_first_shown,
            behind => of.changes[behind - 1].1,
        }
    }

    /// Whether an event is selected. Calls of Python are a thread's own.
    #[inline]
    pub fn has_event(&self, event: &Event) -> bool {
        if scope::is_call(event.scope) { self.has_thread(event.thread) } else { self.has(event.thread, event.start_ns) }
    }
}

impl RecordFilter {
    /// What is selected of each thread. `capture` has of each thread that may have run a backward pass at least one
    /// node for each thread for which it did.
    pub fn thread_filter(&self, capture: &Capture) -> ThreadFilter {
        let mut forwards = vec![Vec::new(); capture.threads.len()];
        for event in capture.events.iter().filter(|event| event.scope == BACKWARD_SCOPE) {
            note_forward(&mut forwards[event.thread as usize], event.forward_thread.unwrap_or(0));
        }
        self.thread_filter_from(&capture.threads, &capture.profiler_states, &forwards)
    }

    /// What is selected of each thread, by the framework's ids of the threads for whose operators each ran backward
    /// nodes.
    pub fn thread_filter_from(
        &self,
        threads: &[Thread],
        states: &[ProfilerState],
        forwards: &[Vec<u64>],
    ) -> ThreadFilter {
        let inclusions = self.thread_inclusions(threads, states);
        let mut is_reached: Vec<bool> = inclusions.iter().map(|inclusion| *inclusion == ThreadInclusion::Yes).collect();
        // A backward pass may run operators whose own runs elsewhere.
        loop {
            let reached = threads.iter().zip(&is_reached).filter(|(_, is_reached)| **is_reached);
            let reached: HashSet<u64> = reached.map(|(thread, _)| thread.framework_thread).collect();
            let is_new = |at: &usize| {
                let ran_for = |id: &u64| *id != 0 && reached.contains(id);
                !is_reached[*at] && inclusions[*at] == ThreadInclusion::IfBackward && forwards[*at].iter().any(ran_for)
            };
            let new: Vec<usize> = (0..threads.len()).filter(is_new).collect();
            if new.is_empty() {
                return self.thread_filter_where(threads, states, &is_reached);
            }
            new.into_iter().for_each(|at| is_reached[at] = true);
        }
    }

    /// The most that may be selected, before it is known which threads ran a backward pass.
    pub fn widest_thread_filter(&self, threads: &[Thread], states: &[ProfilerState]) -> ThreadFilter {
        let inclusions = self.thread_inclusions(threads, states);
        let may_be: Vec<bool> = inclusions.iter().map(|inclusion| *inclusion != ThreadInclusion::No).collect();
        self.thread_filter_where(threads, states, &may_be)
    }

    /// A filter of threads that selects nothing.
    pub fn nothing(&self, threads: &[Thread], states: &[ProfilerState]) -> ThreadFilter {
        self.thread_filter_where(threads, states, &vec![false; threads.len()])
    }

    /// Whether each thread is selected, as far as that is known of the threads themselves.
    pub fn thread_inclusions(&self, threads: &[Thread], states: &[ProfilerState]) -> Vec<ThreadInclusion> {
        let inclusion = |thread: &Thread| match self.thread {
            None => ThreadInclusion::Yes,
            _ if self.is_own(thread) => ThreadInclusion::Yes,
            _ if self.known(states, thread).any(|state| self.states.contains(&state.number)) => ThreadInclusion::Yes,
            _ if self.known(states, thread).next().is_some() => ThreadInclusion::No,
            // The framework's own threads have no name of Python's; the program's threads have one.
            _ if thread.name.is_empty() || thread.name.starts_with("pt_autograd") => ThreadInclusion::IfBackward,
            _ => ThreadInclusion::No,
        };
        threads.iter().map(inclusion).collect()
    }

    fn is_own(&self, thread: &Thread) -> bool {
        self.thread.is_none_or(|tid| tid == thread.tid)
    }

    /// Under which of the recorder's states a thread ran what it did, when that tells anything.
    fn known<'a>(
        &self,
        states: &'a [ProfilerState],
        thread: &Thread,
    ) -> impl Iterator<Item = &'a ProfilerState> + use<'a> {
        let tells = self.thread.is_some() && !self.states.is_empty();
        let of_thread = states_of(states, thread.ordinal).iter();
        of_thread.filter(move |state| tells && state.number != ProfilerState::NOT_KNOWN)
    }

    fn thread_filter_where(&self, threads: &[Thread], states: &[ProfilerState], is_reached: &[bool]) -> ThreadFilter {
        let of_thread = |(thread, is_reached): (&Thread, &bool)| {
            let is_known = self.known(states, thread).next().is_some();
            // What another thread did elsewhere says nothing about what it did under a state that is not known.
            let is_first_shown = *is_reached && (!is_known || self.is_own(thread));
            let mut changes: Vec<(i64, bool)> = Vec::new();
            let of_thread = states_of(states, thread.ordinal).iter().filter(|_| is_known);
            for ProfilerState { since_ns, number, .. } in of_thread {
                let is_shown = match *number {
                    ProfilerState::NOT_KNOWN => is_first_shown,
                    number => self.states.contains(&number),
                };
                if changes.last().map_or(is_first_shown, |(_, before)| *before) != is_shown {
                    changes.push((*since_ns, is_shown));
                }
            }
            OfThread { is_shown: *is_reached, is_first_shown, changes }
        };
        ThreadFilter { of_threads: threads.iter().zip(is_reached).map(of_thread).collect() }
    }
}

/// The states of a thread.
fn states_of(states: &[ProfilerState], thread: u32) -> &[ProfilerState] {
    let of_thread = |is_before: &dyn Fn(u32) -> bool| states.partition_point(|state| is_before(state.thread));
    &states[of_thread(&|of| of < thread)..of_thread(&|of| of <= thread)]
}

/// Adds the framework's id of a thread to those whose operators' backward nodes were met; 0 stands for none.
#[inline]
pub fn note_forward(forwards: &mut Vec<u64>, thread: u64) {
    if thread != 0 && !forwards.contains(&thread) {
        forwards.push(thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record_filter::tests::capture;
    use std::ops::Range;
    use stepscope_capture::MemoryEvent;

    fn threads(names: &[&str]) -> Vec<Thread> {
        let thread = |(ordinal, name): (usize, &&str)| Thread {
            ordinal: ordinal as u32,
            tid: 100 + ordinal as u64,
            framework_thread: 1 + ordinal as u64,
            name: (*name).into(),
            handle: 0,
        };
        names.iter().enumerate().map(thread).collect()
    }

    fn of(thread: Option<u64>, states: &[u64]) -> RecordFilter {
        RecordFilter {
            spans: vec![Range { start: 100, end: 200 }],
            thread,
            states: states.to_vec(),
            ..RecordFilter::default()
        }
    }

    #[test]
    fn a_backward_pass_of_what_ran_in_a_backward_pass_is_shown_too() {
        let threads = threads(&["main", "", "pt_autograd_0", "", "program's"]);
        // The last but one ran for the third, that for the first; the second for nobody that is known.
        let forwards = [vec![], vec![7], vec![1], vec![3], vec![1]];
        let thread_filter = |filter: RecordFilter| {
            let thread_filter = filter.thread_filter_from(&threads, &[], &forwards);
            [0, 1, 2, 3, 4].map(|thread| (thread_filter.has_thread(thread), thread_filter.has(thread, 150)))
        };
        assert_eq!(
            thread_filter(of(Some(100), &[])),
            [true, false, true, true, false].map(|is_shown| (is_shown, is_shown))
        );
        assert_eq!(thread_filter(of(None, &[])), [(true, true); 5]);
    }

    #[test]
    fn what_a_thread_did_for_another_one_is_that_ones() {
        let threads = threads(&["main", "worker", "", "other"]);
        let state = |thread, since_ns, number| ProfilerState { thread, since_ns, number };
        let states = [state(0, 10, 1), state(0, 20, 7), state(0, 60, 9), state(0, 80, 0)];
        let of_worker = [state(1, 30, 1), state(1, 40, 7), state(1, 50, 1), state(1, 70, 0)];
        let states = [states.as_slice(), &of_worker, &[state(2, 15, 7)], &[state(3, 35, 1)]].concat();
        // As a string: shown or not at 5, 15, 25 … of each thread.
        let drawn = |filter: RecordFilter| {
            // The third ran a backward pass for the last one.
            let thread_filter = filter.thread_filter_from(&threads, &states, &[vec![], vec![], vec![4], vec![]]);
            let at = |thread| (0..9).map(move |at| (thread, at * 10 + 5));
            let mark = |(thread, at_ns)| if thread_filter.has(thread, at_ns) { '#' } else { '.' };
            [0, 1, 2, 3].map(|thread| at(thread).map(mark).collect::<String>())
        };
        // Under a state that is not known, a thread is its own.
        assert_eq!(drawn(of(Some(100), &[7])), ["#.####..#", "....#....", ".########", "........."]);
        assert_eq!(drawn(of(Some(100), &[7, 9])), ["#.#######", "....#....", ".########", "........."]);
        // The state that it had is not known: its threads tell.
        assert_eq!(drawn(of(Some(103), &[])), [".........", ".........", "#########", "#########"]);
        assert_eq!(drawn(of(None, &[7])), ["#########"; 4]);
    }

    #[test]
    fn calls_and_memory_go_with_what_ran_around_them() {
        let mut capture = capture();
        capture.profiler_states = vec![
            ProfilerState { thread: 0, since_ns: 90, number: 7 },
            ProfilerState { thread: 2, since_ns: 141, number: 7 },
            ProfilerState { thread: 2, since_ns: 160, number: 1 },
        ];
        let call = |start_ns| Event { scope: scope::PYTHON_CALL, start_ns, end_ns: 170, ..capture.events.at(4) };
        let calls = [call(135), call(165)];
        let [during, later] = [150, 161].map(|at| Event { start_ns: at, end_ns: at + 1, ..capture.events.at(4) });
        capture.events.extend([calls[0], calls[1], during, later]);
        let memory = |time_ns| MemoryEvent {
            thread: 2,
            time_ns,
            address: Some(64),
            bytes: 8,
            allocated_bytes: None,
            reserved_bytes: None,
            device_type: 0,
            device_index: None,
        };
        capture.memory = [130, 150, 170].map(memory).to_vec();
        of(Some(100), &[7]).apply(&mut capture);
        let found: Vec<_> = capture.events.iter().map(|event| (event.thread, event.start_ns)).collect();
        // Thread 1 ran a backward node, of which it is not known for whom.
        assert_eq!(found, [(0, 101), (0, 180), (1, 120), (2, 135), (2, 165), (2, 150)]);
        assert_eq!(capture.memory.iter().map(|event| event.time_ns).collect::<Vec<_>>(), [150]);
    }
}
