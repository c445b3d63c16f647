//! Calls of Python and of modules among what is listed: which of them are, and what modules are called.

use stepscope_capture::layout::scope;
use stepscope_capture::{Capture, Event};

/// Where Stepscope's own functions are.
const OWN: &str = "stepscope/";

/// Which calls of a capture are listed, and how modules are named.
pub(crate) struct Calls {
    /// By event.
    is_listed: Vec<bool>,
    /// What modules are called, each with the capture's name of it.
    modules: Vec<(u32, String)>,
    /// By name of the capture: a module's place in `modules`.
    place: Vec<Option<u32>>,
}

impl Calls {
    pub(crate) fn of(capture: &Capture) -> Self {
        let mut calls = Self { is_listed: Vec::new(), modules: Vec::new(), place: Vec::new() };
        if capture.events.iter().any(|event| scope::is_call(event.scope)) {
            calls.is_listed = listed(capture);
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
        self.modules.iter().map(|(_, name)| name)
    }

    /// `nn.Module: Linear_1` is the second module of that class that was called.
    fn name_modules(&mut self, capture: &Capture) {
        let mut first = vec![i64::MAX; capture.names.len()];
        for event in capture.events.iter().filter(|event| event.scope == scope::MODULE) {
            let first = &mut first[event.name as usize];
            *first = (*first).min(event.start_ns);
        }
        let mut called: Vec<u32> =
            (0..capture.names.len() as u32).filter(|id| first[*id as usize] != i64::MAX).collect();
        called.sort_by_key(|id| first[*id as usize]);
        self.place = vec![None; capture.names.len()];
        let mut of_class = std::collections::HashMap::<&str, u32>::new();
        for id in called {
            let name = &capture.names[id as usize];
            let class = name.split_once(':').map_or(name.as_str(), |(class, _)| class);
            let number = of_class.entry(class).or_default();
            self.place[id as usize] = Some(self.modules.len() as u32);
            self.modules.push((id, format!("nn.Module: {class}_{number}")));
            *number += 1;
        }
    }
}

/// By event: a call, and neither one of Stepscope's functions nor called by one.
fn listed(capture: &Capture) -> Vec<bool> {
    let is_own: Vec<bool> = capture.names.iter().map(|name| name.starts_with(OWN)).collect();
    // When the outermost of Stepscope's functions that are open ends, and on which thread.
    let (mut thread, mut own_until_ns) = (0, i64::MIN);
    let mut is_listed = |event: &Event| {
        if !scope::is_call(event.scope) || event.scope == scope::GARBAGE_COLLECTION {
            return false;
        }
        if event.thread != thread || event.start_ns >= own_until_ns {
            (thread, own_until_ns) = (event.thread, i64::MIN);
        }
        let begins_own = event.scope == scope::PYTHON_CALL && is_own[event.name as usize];
        if begins_own {
            own_until_ns = own_until_ns.max(event.end_ns);
        }
        own_until_ns == i64::MIN
    };
    capture.events.iter().map(&mut is_listed).collect()
}
