//! Calls of Python and of modules as a profile lists them: without the profiler's own functions, modules by class and
//! number.

use std::collections::HashMap;
use std::ops::Range;
use stepscope_capture::layout::scope;
use stepscope_capture::{Event, EventList};

/// Where Stepscope's own functions are.
const OWN: &str = "stepscope/";

/// Tells which calls are listed. Sees events by thread and start.
#[derive(Clone, Debug)]
pub struct ListedCalls {
    /// By name.
    is_own: Vec<bool>,
    thread: u32,
    /// While the last outermost one of Stepscope's functions ran.
    own: Range<i64>,
}

impl ListedCalls {
    /// Of a capture with these names.
    pub fn of(names: &[String]) -> Self {
        Self { is_own: names.iter().map(|name| name.starts_with(OWN)).collect(), thread: 0, own: Range::default() }
    }

    /// False for Stepscope's own functions and for what they call; true for all that is no call.
    #[inline]
    pub fn lists(&mut self, event: &Event) -> bool {
        self.lists_when(event, event.start_ns..event.end_ns)
    }

    /// As [`lists`](Self::lists), of an event that was filtered, and ran at that time.
    #[inline]
    pub fn lists_when(&mut self, event: &Event, ran: Range<i64>) -> bool {
        if !scope::is_call(event.scope) {
            return true;
        }
        if event.thread != self.thread {
            (self.thread, self.own) = (event.thread, Range::default());
        }
        let is_inside = self.own.contains(&ran.start);
        if self.is_own(event) {
            self.own = if is_inside { self.own.start..self.own.end.max(ran.end) } else { ran };
            return false;
        }
        !is_inside
    }

    /// Whether it is one of Stepscope's own functions.
    #[inline]
    pub fn is_own(&self, event: &Event) -> bool {
        event.scope == scope::PYTHON_CALL && self.is_own[event.name as usize]
    }
}

/// What the modules that `events` call are listed as, each by the number of its name, in the order of their first
/// calls: `Linear_1` is the second one of its class.
pub fn numbered_modules(names: &[String], events: &EventList) -> Vec<(u32, String)> {
    let mut first: HashMap<u32, i64> = HashMap::new();
    for event in events.iter().filter(|event| event.scope == scope::MODULE) {
        let first_ns = first.entry(event.name).or_insert(i64::MAX);
        *first_ns = (*first_ns).min(event.start_ns);
    }
    let mut called: Vec<(i64, u32)> = first.into_iter().map(|(name, first_ns)| (first_ns, name)).collect();
    called.sort_unstable();
    let mut of_class: HashMap<&str, u32> = HashMap::new();
    let number = |(_, name): (i64, u32)| {
        let text = &names[name as usize];
        let class = text.split_once(':').map_or(text.as_str(), |(class, _)| class);
        let next = of_class.entry(class).or_default();
        *next += 1;
        (name, format!("{class}_{}", *next - 1))
    };
    called.into_iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(scope: u8, name: u32, thread: u32, (start_ns, end_ns): (i64, i64)) -> Event {
        Event {
            thread,
            name,
            scope,
            start_ns,
            end_ns,
            is_unfinished: false,
            is_async: false,
            sequence_number: None,
            forward_thread: None,
            inputs: None,
            collective: None,
        }
    }

    #[test]
    fn own_functions_and_what_they_call_are_not_listed() {
        let names = ["stepscope/x.py(1): own", "a.py(1): f", "op"].map(String::from);
        let (call, module) = (scope::PYTHON_CALL, scope::MODULE);
        let events = [
            (event(call, 1, 0, (0, 5)), true),
            (event(call, 0, 0, (10, 20)), false),
            (event(call, 1, 0, (11, 12)), false),
            (event(module, 1, 0, (12, 13)), false),
            (event(0, 2, 0, (13, 14)), true),
            (event(call, 0, 0, (15, 20)), false),
            (event(call, 1, 0, (19, 20)), false),
            (event(call, 1, 0, (20, 30)), true),
            (event(scope::GARBAGE_COLLECTION, 1, 0, (21, 22)), true),
            (event(call, 1, 1, (16, 17)), true),
        ];
        let mut calls = ListedCalls::of(&names);
        for (event, is_listed) in events {
            assert_eq!(calls.lists(&event), is_listed, "{event:?}");
        }
    }

    #[test]
    fn modules_are_numbered_by_class_in_the_order_of_their_first_calls() {
        let names = ["Linear:Net.b", "Net:Net", "Linear:Net.a", "never"].map(String::from);
        let called = [(0, 9), (1, 0), (2, 4), (0, 2), (2, 1)];
        let events = called.map(|(name, start_ns)| event(scope::MODULE, name, 0, (start_ns, start_ns)));
        let expected = [(1, "Net_0"), (2, "Linear_0"), (0, "Linear_1")].map(|(name, text)| (name, text.to_string()));
        assert_eq!(numbered_modules(&names, &events.into()), expected);
    }
}
