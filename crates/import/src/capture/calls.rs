//! Calls of Python, of modules and of its garbage collector: what they are in the model, and what modules are called.

use std::collections::HashMap;
use stepscope_base::{StringId, StringTable};
use stepscope_capture::layout::scope;
use stepscope_capture::{Capture, Event};
use stepscope_run::numbered_modules;
use stepscope_trace::{ModuleCall, ModuleSize, SliceId, SliceKind, TraceBuilder};

/// What a range of this scope is; `None` for the framework's own.
pub(super) fn kind_of_call(scope: u8) -> Option<SliceKind> {
    match scope {
        scope::MODULE => Some(SliceKind::Module),
        scope if scope::is_call(scope) => Some(SliceKind::PythonFunction),
        _ => None,
    }
}

/// Names modules by their place inside the module that calls them, so that the places of nested calls joined are the
/// path: `Net.layers.3` inside `Net` is `layers.3`. Sees a capture's events in their order.
pub(super) struct ModuleNames<'a> {
    /// Those of the capture.
    names: &'a [String],
    thread: u32,
    /// End and name of the calls that are open.
    open: Vec<(i64, u32)>,
    known: HashMap<(Option<u32>, u32), StringId>,
    /// By name, what it is listed as, where that is wanted.
    listed_as: HashMap<u32, String>,
}

impl<'a> ModuleNames<'a> {
    pub(super) fn new(names: &'a [String]) -> Self {
        Self { names, thread: 0, open: Vec::new(), known: HashMap::new(), listed_as: HashMap::new() }
    }

    /// The names of modules of a filtered capture, as a profile lists it: what a module is listed as stands before its
    /// place, on a line of its own.
    pub(super) fn listed(capture: &'a Capture) -> Self {
        let listed_as = numbered_modules(&capture.names, &capture.events).into_iter().collect();
        Self { listed_as, ..Self::new(&capture.names) }
    }

    /// The name of a module's call.
    pub(super) fn name(&mut self, event: &Event, strings: &mut StringTable) -> StringId {
        if event.thread != self.thread {
            self.thread = event.thread;
            self.open.clear();
        }
        while self.open.last().is_some_and(|(end_ns, _)| *end_ns <= event.start_ns) {
            self.open.pop();
        }
        let caller = self.open.last().map(|(_, name)| *name);
        self.open.push((event.end_ns, event.name));
        let names = self.names;
        *self.known.entry((caller, event.name)).or_insert_with(|| {
            let path = path_of(&names[event.name as usize]);
            let inside = caller.and_then(|caller| path.strip_prefix(path_of(&names[caller as usize])));
            let inside = inside.and_then(|inside| inside.strip_prefix('.'));
            let place = inside.unwrap_or(path);
            match self.listed_as.get(&event.name) {
                Some(name) => strings.intern(&format!("{name}\n{place}")),
                None => strings.intern(place),
            }
        })
    }
}

/// What modules are, by the numbers of their names: read once of each.
#[derive(Default)]
pub(super) struct ModuleKinds(HashMap<u32, Option<(StringId, Option<ModuleSize>)>>);

impl ModuleKinds {
    /// Adds what is known of the module that is called in `slice`.
    pub(super) fn add(&mut self, capture: &Capture, name: u32, slice: SliceId, builder: &mut TraceBuilder) {
        let kind = self.0.entry(name).or_insert_with(|| {
            let (class, _) = capture.names[name as usize].split_once(':')?;
            let size = capture.overloads.get(name as usize).and_then(|size| size_of(size));
            Some((builder.strings.intern(class), size))
        });
        if let Some((class, size)) = *kind {
            builder.add_module_call(ModuleCall { slice, class, size });
        }
    }
}

/// All parameters, and those that are trained: `65792 65536`.
fn size_of(text: &str) -> Option<ModuleSize> {
    let (parameters, trainable) = text.split_once(' ')?;
    Some(ModuleSize { parameters: parameters.parse().ok()?, trainable: trainable.parse().ok()? })
}

/// The path in a module's recorded name, which begins with its class.
fn path_of(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, path)| path)
}
