//! Calls of Python and of modules among what is listed: which of them are, and what modules are called.

use stepscope_capture::layout::scope;
use stepscope_capture::{Capture, Event};
use stepscope_run::{ListedCalls, numbered_modules};

/// Which calls of a capture are listed, and how modules are named.
pub(crate) struct Calls {
    /// By event.
    is_listed: Vec<bool>,
    /// What modules are called.
    modules: Vec<String>,
    /// By name of the capture: a module's place in `modules`.
    place: Vec<Option<u32>>,
}

impl Calls {
    pub(crate) fn of(capture: &Capture) -> Self {
        let mut calls = Self { is_listed: Vec::new(), modules: Vec::new(), place: Vec::new() };
        if capture.events.iter().any(|event| scope::is_call(event.scope)) {
            let mut listed = ListedCalls::of(&capture.names);
            let mut is_listed = |event: &Event| {
                let is_call = scope::is_call(event.scope) && event.scope != scope::GARBAGE_COLLECTION;
                is_call && listed.lists(event)
            };
            calls.is_listed = capture.events.iter().map(|event| is_listed(&event)).collect();
            calls.name_modules(capture);
        }
        calls
    }

    /// True for calls that are not Stepscope's own. Garbage collections are none.
    pub(crate) fn is_listed(&self, event: usize) -> bool {
        self.is_listed.get(event).copied().unwrap_or(false)
    }

    /// The place of a module's name among those of all modules.
    pub(crate) fn module(&self, event: &Event) -> Option<u32> {
        let name = self.place.get(event.name as usize).filter(|_| event.scope == scope::MODULE);
        name.copied().flatten()
    }

    /// Names of modules, by place.
    pub(crate) fn module_names(&self) -> impl ExactSizeIterator<Item = &String> {
        self.modules.iter()
    }

    /// `nn.Module: Linear_1` is the second module of that class that was called.
    fn name_modules(&mut self, capture: &Capture) {
        self.place = vec![None; capture.names.len()];
        for (place, (id, name)) in (0..).zip(numbered_modules(&capture.names, &capture.events)) {
            self.place[id as usize] = Some(place);
            self.modules.push(format!("nn.Module: {name}"));
        }
    }
}
