//! Inside which module each slice of a host thread lies, in the forward pass by nesting, in the backward pass by the
//! forward operator that its node belongs to. Two passes in slice order, each with a stack of what is open.
//!
//! ```text
//! GPT_0            ████████████
//!   Linear_0       ···█████····        AddmmBackward0   ····██████
//!     aten::addmm  ····███·····  ────▶   aten::mm       ······██··    inside GPT_0.Linear_0, backward
//! ```

use rustc_hash::FxHashMap;
use stepscope_base::StringId;
use stepscope_trace::{FlowKind, SliceId, SliceKind, Trace, TrackKind};

/// One place in the tree of modules: a module's name inside what calls it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ModuleNode {
    /// The node of the module that calls it.
    pub(crate) parent: Option<u32>,
    /// Its own name: `Linear_0`.
    pub(crate) name: StringId,
}

/// Where a slice lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Context {
    /// The innermost module.
    pub(crate) module: u32,
    /// True in the backward pass.
    pub(crate) is_backward: bool,
}

/// One call of a module, or one node of the backward pass that belongs to a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    /// Its slice.
    pub(crate) slice: SliceId,
    /// The context that it opens.
    pub(crate) context: Context,
    /// True for a call of a module.
    pub(crate) is_call: bool,
    /// Its duration without frames inside it.
    pub(crate) self_ns: i64,
}

/// The modules of a trace.
#[derive(Default)]
pub(crate) struct ModuleContexts {
    /// Modules in order of first call; what calls stands before what it calls.
    pub(crate) nodes: Vec<ModuleNode>,
    /// Calls and backward nodes in slice order.
    pub(crate) frames: Vec<Frame>,
    ids: FxHashMap<ModuleNode, u32>,
    /// For each slice 0 outside of modules, else its context; empty without any module.
    of_slice: Vec<u32>,
}

impl ModuleContexts {
    /// The modules of `trace`.
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut contexts = Self::default();
        if !trace.slices.kind.contains(&SliceKind::Module) {
            return contexts;
        }
        contexts.of_slice = vec![0; trace.slices.len()];
        contexts.sweep(trace, &[]);
        let flows = trace.flows.iter().filter(|flow| flow.kind == FlowKind::ForwardBackward);
        let backward = flows.filter_map(|flow| Some((flow.to, contexts.get(flow.from)?.module)));
        let mut backward: Vec<(SliceId, u32)> = backward.collect();
        if !backward.is_empty() {
            backward.sort_by_key(|(slice, _)| *slice);
            backward.dedup_by_key(|(slice, _)| *slice);
            contexts.sweep(trace, &backward);
        }
        contexts
    }

    /// Where a slice lies; `None` outside of modules.
    pub(crate) fn get(&self, slice: SliceId) -> Option<Context> {
        let packed = self.of_slice.get(slice.index())?.checked_sub(1)?;
        Some(Context { module: packed / 2, is_backward: packed % 2 == 1 })
    }

    /// The path of a module: `GPT_0.Block_1.Linear_0`.
    pub(crate) fn path(&self, trace: &Trace, node: u32) -> String {
        let outwards = std::iter::successors(Some(node), |node| self.nodes[*node as usize].parent);
        let mut names: Vec<&str> = outwards.map(|node| trace.strings.get(self.nodes[node as usize].name)).collect();
        names.reverse();
        names.join(".")
    }

    /// Fills frames and contexts; `backward` gives the module of slices that are nodes of the backward pass.
    fn sweep(&mut self, trace: &Trace, backward: &[(SliceId, u32)]) {
        let slices = &trace.slices;
        self.frames.clear();
        let mut backward = backward.iter().copied().peekable();
        let mut open: Vec<(i64, usize)> = Vec::new();
        for track in trace.tracks.iter().filter(|track| track.kind == TrackKind::Thread) {
            open.clear();
            for id in track.slice_ids() {
                let start_ns = slices.start_ns[id.index()];
                while open.last().is_some_and(|(end_ns, _)| *end_ns <= start_ns) {
                    open.pop();
                }
                while backward.next_if(|(slice, _)| *slice < id).is_some() {}
                let around = open.last().map(|(_, frame)| self.frames[*frame].context);
                let node = backward.next_if(|(slice, _)| *slice == id).map(|(_, module)| module);
                let is_call = slices.kind(id) == SliceKind::Module;
                let context = match node {
                    _ if is_call => {
                        let parent = around.map(|around| around.module);
                        let module = self.intern(ModuleNode { parent, name: slices.name[id.index()] });
                        Some(Context { module, is_backward: around.is_some_and(|around| around.is_backward) })
                    }
                    Some(module) => Some(Context { module, is_backward: true }),
                    None => around,
                };
                self.of_slice[id.index()] =
                    context.map_or(0, |context| 1 + 2 * context.module + u32::from(context.is_backward));
                if let Some(context) = context.filter(|_| is_call || node.is_some()) {
                    let dur_ns = slices.dur_ns[id.index()];
                    if let Some((_, outer)) = open.last() {
                        self.frames[*outer].self_ns -= dur_ns;
                    }
                    open.push((start_ns + dur_ns, self.frames.len()));
                    self.frames.push(Frame { slice: id, context, is_call, self_ns: dur_ns });
                }
            }
        }
    }

    fn intern(&mut self, node: ModuleNode) -> u32 {
        let Self { nodes, ids, .. } = self;
        *ids.entry(node).or_insert_with(|| {
            nodes.push(node);
            nodes.len() as u32 - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{Flow, Process, TraceBuilder, Track};

    /// Two threads; rows are (thread, kind, name, start, end). The second `op` row belongs backward to the first.
    fn contexts(rows: &[(usize, SliceKind, &str, i64, i64)], flows: &[(usize, usize)]) -> Vec<String> {
        let mut builder = TraceBuilder::new("modules");
        let process = builder.add_process(Process::default());
        // The backward thread comes first, so that order cannot help.
        let tracks =
            ["backward", "forward"].map(|name| builder.add_track(Track::new(TrackKind::Thread, process, name)));
        let mut ids = Vec::new();
        for (thread, kind, name, start, end) in rows {
            let name = builder.strings.intern(name);
            ids.push(builder.add_slice(tracks[1 - *thread], *kind, name, *start, end - start));
        }
        for (from, to) in flows {
            builder.add_flow(Flow { from: ids[*from], to: ids[*to], kind: FlowKind::ForwardBackward });
        }
        let trace = builder.finish();
        let contexts = ModuleContexts::of(&trace);
        let text = |id: SliceId| {
            let context = contexts.get(id);
            let path = context.map_or("-".into(), |context| contexts.path(&trace, context.module));
            let pass = if context.is_some_and(|context| context.is_backward) { "'" } else { "" };
            format!("{}@{path}{pass}", trace.slice_name(id))
        };
        trace.slices.ids().map(text).collect()
    }

    #[test]
    fn a_backward_node_lies_in_the_module_of_its_forward_operator() {
        use SliceKind::{Module, Op, PythonFunction};
        let found = contexts(
            &[
                (0, Module, "GPT_0", 0, 20),
                (0, Module, "Linear_0", 2, 10),
                (0, PythonFunction, "forward", 3, 9),
                (0, Op, "addmm", 4, 8),
                (0, Op, "add", 12, 14),
                (0, Op, "outside", 20, 22),
                (1, Op, "AddmmBackward0", 30, 40),
                (1, Op, "mm", 32, 35),
                (1, Op, "Other", 41, 45),
            ],
            &[(3, 6)],
        );
        let backward = ["AddmmBackward0@GPT_0.Linear_0'", "mm@GPT_0.Linear_0'", "Other@-"];
        let forward = ["GPT_0@GPT_0", "Linear_0@GPT_0.Linear_0", "forward@GPT_0.Linear_0", "addmm@GPT_0.Linear_0"];
        assert_eq!(found, [&backward[..], &forward[..], &["add@GPT_0", "outside@-"][..]].concat());
    }

    #[test]
    fn a_module_that_is_called_again_in_the_backward_pass_keeps_its_place() {
        use SliceKind::{Module, Op};
        let found = contexts(
            &[
                (0, Module, "Block_0", 0, 20),
                (0, Op, "checkpoint", 2, 10),
                (0, Module, "Linear_0", 3, 9),
                (1, Op, "CheckpointBackward", 30, 40),
                (1, Module, "Linear_0", 31, 35),
                (1, Op, "addmm", 32, 34),
            ],
            &[(1, 3)],
        );
        let again = "Block_0.Linear_0'";
        assert_eq!(found[..2], ["CheckpointBackward@Block_0'".into(), format!("Linear_0@{again}")]);
        assert_eq!(found[2], format!("addmm@{again}"));
    }

    #[test]
    fn a_trace_without_modules_has_none() {
        assert_eq!(contexts(&[(0, SliceKind::Op, "mm", 0, 5)], &[]), ["mm@-"]);
    }
}
