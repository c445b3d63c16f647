//! Which row of a table each operator belongs to, when operators are grouped by one thing or another.

use crate::context::Shared;
use crate::module_contexts::ModuleContexts;
use crate::op_classes::OpClasses;
use crate::op_tree::OpTree;
use crate::{AnalysisContext, GroupBy, Selection};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::hash::Hash;
use std::sync::OnceLock;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{SliceId, SliceKind, Trace, TrackKind};

/// What operators can be grouped by; the first is what they are grouped by unasked.
pub(crate) const OPERATOR_GROUPS: &[GroupBy] =
    &[GroupBy::Name, GroupBy::Shapes, GroupBy::Stack, GroupBy::Module, GroupBy::Category];

columns! {
    /// What the operators of a group have in common.
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
    pub struct GroupLabel {
        /// The operator's name; grouped by category, the category.
        name: String,
        /// The name of the operator. Grouped by category, the category. Absent for device work that no operator
        /// launched.
        name => Text = |label| known(&label.name),
        /// The kind of work: `matrix_product`, `elementwise` ….
        category: String,
        /// The kind of work: `matrix_product`, `elementwise` and others.
        category => Text = |label| known(&label.category),
        /// Grouped by shapes, the shapes of the inputs as written: `[[64,3],[3]]`; `None` when not known.
        shapes: Option<String>,
        /// The shapes of the inputs: `[[64,3],[3]]`. Absent when not known. A column only when grouped by
        /// shapes.
        shapes => Text if (|selection| selection.group_by == Some(GroupBy::Shapes)) = |label| label.shapes.as_ref(),
        /// Grouped by stack, the Python functions around the call, innermost first, with `;` between; `None`
        /// when not known.
        stack: Option<String>,
        /// The Python functions around the call, innermost first, with `;` between. Absent when not known. A
        /// column only when grouped by stack.
        stack => Text if (|selection| selection.group_by == Some(GroupBy::Stack)) = |label| label.stack.as_ref(),
        /// Grouped by module, the module it ran in; in the backward pass that of the forward operator; `None`
        /// outside.
        module: Option<String>,
        /// The module that the operator ran in. In the backward pass, the module of the forward operator. A
        /// column only when grouped by module.
        module => Text if (|selection| selection.group_by == Some(GroupBy::Module)) = |label| label.module.as_ref(),
    }
}

impl GroupLabel {
    /// That of what no operator launched.
    pub(crate) const NONE: &Self =
        &Self { name: String::new(), category: String::new(), shapes: None, stack: None, module: None };
}

/// An empty text is no answer.
pub(crate) fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// The group of every operator.
#[derive(Clone)]
pub(crate) struct Groups {
    /// The group of each row of the tree.
    pub(crate) of_op: Vec<u32>,
    /// What each group has in common.
    pub(crate) labels: Vec<GroupLabel>,
}

/// The groups by each of [`OPERATOR_GROUPS`]. They are found when they are first needed.
#[derive(Default)]
pub(crate) struct OperatorGroups([OnceLock<Groups>; OPERATOR_GROUPS.len()]);

impl Shared for OperatorGroups {
    fn compute(_: &AnalysisContext<'_>) -> Self {
        Self::default()
    }
}

impl Groups {
    /// The operators of the trace, grouped by one of [`OPERATOR_GROUPS`].
    pub(crate) fn by<'a>(context: &'a AnalysisContext<'_>, by: GroupBy) -> &'a Self {
        let at = OPERATOR_GROUPS.iter().position(|group| *group == by).unwrap_or(0);
        let groups = &context.get::<OperatorGroups>().0[at];
        groups.get_or_init(|| groups_by(context.trace, context.get(), OPERATOR_GROUPS[at]))
    }
}

/// What operators are grouped by, as was asked.
pub(crate) fn operator_group_by(selection: &Selection) -> GroupBy {
    selection.group_by.filter(|by| OPERATOR_GROUPS.contains(by)).unwrap_or(OPERATOR_GROUPS[0])
}

fn groups_by(trace: &Trace, tree: &OpTree, by: GroupBy) -> Groups {
    let mut classes = OpClasses::new(&trace.strings);
    let name_of = |row: usize| trace.slices.name[tree.slice[row].index()];
    let text = |id: StringId| trace.text(id);
    let mut named = |name: StringId| GroupLabel {
        name: trace.strings.get(name).to_string(),
        category: classes.get(name).category.to_string(),
        ..GroupLabel::default()
    };
    match by {
        GroupBy::Shapes => {
            let infos = op_infos(trace, tree);
            let key = |row: usize| {
                let inputs = infos[row].map(|info| trace.ops.inputs(trace.ops.info[info as usize].inputs));
                (name_of(row), inputs.map_or(StringTable::EMPTY, |inputs| inputs.dims))
            };
            keyed(tree.len(), key, |(name, dims)| GroupLabel { shapes: text(dims), ..named(name) })
        }
        GroupBy::Stack => {
            let (stack_of, stacks) = stacks(trace, tree);
            let key = |row: usize| (name_of(row), stack_of[row]);
            keyed(tree.len(), key, |(name, stack)| GroupLabel { stack: stacks.text(trace, stack), ..named(name) })
        }
        GroupBy::Module => {
            let modules = ModuleContexts::of(trace);
            let key = |row: usize| (name_of(row), modules.get(tree.slice[row]).map(|context| context.module));
            let path = |module: Option<u32>| module.map(|module| modules.path(trace, module));
            keyed(tree.len(), key, |(name, module)| GroupLabel { module: path(module), ..named(name) })
        }
        GroupBy::Category => {
            let mut classes = OpClasses::new(&trace.strings);
            let key = |row: usize| classes.get(name_of(row)).category;
            let label = |category: &'static str| GroupLabel {
                name: category.to_string(),
                category: category.to_string(),
                ..GroupLabel::default()
            };
            keyed(tree.len(), key, label)
        }
        _ => by_name(trace, tree, named),
    }
}

/// Names are numbers already: no hashing.
fn by_name(trace: &Trace, tree: &OpTree, mut label: impl FnMut(StringId) -> GroupLabel) -> Groups {
    let mut group_of_name = vec![u32::MAX; trace.strings.len()];
    let mut groups = Groups { of_op: Vec::with_capacity(tree.len()), labels: Vec::new() };
    for slice in &tree.slice {
        let name = trace.slices.name[slice.index()];
        let group = &mut group_of_name[name.index()];
        if *group == u32::MAX {
            *group = groups.labels.len() as u32;
            groups.labels.push(label(name));
        }
        groups.of_op.push(*group);
    }
    groups
}

fn keyed<K: Copy + Eq + Hash>(
    count: usize,
    mut key: impl FnMut(usize) -> K,
    mut label: impl FnMut(K) -> GroupLabel,
) -> Groups {
    let mut ids: FxHashMap<K, u32> = FxHashMap::default();
    let mut groups = Groups { of_op: Vec::with_capacity(count), labels: Vec::new() };
    for row in 0..count {
        let key = key(row);
        let group = *ids.entry(key).or_insert_with(|| {
            groups.labels.push(label(key));
            groups.labels.len() as u32 - 1
        });
        groups.of_op.push(group);
    }
    groups
}

/// For each operator the row of its facts.
fn op_infos(trace: &Trace, tree: &OpTree) -> Vec<Option<u32>> {
    let mut infos = vec![None; tree.len()];
    for (info, slice) in trace.ops.slice.iter().enumerate() {
        if let Some(row) = tree.row(Some(*slice)) {
            infos[row as usize] = Some(info as u32);
        }
    }
    infos
}

/// Call stacks: as the source wrote them, or as a tree of functions that call each other.
#[derive(Default)]
struct Stacks {
    nodes: Vec<(u32, StringId)>,
    ids: FxHashMap<(u32, StringId), u32>,
}

/// No node: the outermost function has this parent.
const ROOT: u32 = u32::MAX;

/// A stack as the source wrote it, or a node of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum StackKey {
    Text(StringId),
    Node(u32),
}

impl Stacks {
    fn node(&mut self, parent: u32, name: StringId) -> u32 {
        let Self { nodes, ids } = self;
        *ids.entry((parent, name)).or_insert_with(|| {
            nodes.push((parent, name));
            nodes.len() as u32 - 1
        })
    }

    fn text(&self, trace: &Trace, key: StackKey) -> Option<String> {
        match key {
            StackKey::Text(text) => Some(trace.strings.get(text).to_string()),
            StackKey::Node(ROOT) => None,
            StackKey::Node(node) => {
                let parent = |node: &u32| Some(self.nodes[*node as usize].0).filter(|parent| *parent != ROOT);
                let outwards = std::iter::successors(Some(node), parent);
                let names = outwards.map(|node| trace.strings.get(self.nodes[node as usize].1));
                Some(names.collect::<Vec<_>>().join(";"))
            }
        }
    }
}

struct OpenFunction {
    end_ns: i64,
    name: StringId,
    node: Option<u32>,
}

/// The stack of every operator. Functions get a node only when an operator runs inside.
fn stacks(trace: &Trace, tree: &OpTree) -> (Vec<StackKey>, Stacks) {
    let slices = &trace.slices;
    let mut stacks = Stacks::default();
    let mut of_op = vec![StackKey::Node(ROOT); tree.len()];
    let mut open: Vec<OpenFunction> = Vec::new();
    for track in trace.tracks.iter().filter(|track| track.kind == TrackKind::Thread) {
        open.clear();
        for id in track.slice_ids() {
            let kind = slices.kind(id);
            let is_function = matches!(kind, SliceKind::PythonFunction | SliceKind::Module);
            if !is_function && kind != SliceKind::Op {
                continue;
            }
            let span = slices.span(id);
            while open.last().is_some_and(|function| function.end_ns <= span.start_ns) {
                open.pop();
            }
            if is_function {
                open.push(OpenFunction { end_ns: span.end_ns, name: slices.name[id.index()], node: None });
            } else if let Some(row) = tree.row(Some(id)) {
                of_op[row as usize] = StackKey::Node(node_of_last(&mut open, &mut stacks));
            }
        }
    }
    let written = |slice: &SliceId, stack: StringId| Some((tree.row(Some(*slice))?, stack));
    for (slice, info) in
        trace.ops.slice.iter().zip(&trace.ops.info).filter(|(_, info)| info.stack != StringTable::EMPTY)
    {
        if let Some((row, stack)) = written(slice, info.stack) {
            of_op[row as usize] = StackKey::Text(stack);
        }
    }
    (of_op, stacks)
}

fn node_of_last(open: &mut [OpenFunction], stacks: &mut Stacks) -> u32 {
    let known = open.iter().rposition(|function| function.node.is_some());
    let mut node = known.and_then(|at| open[at].node).unwrap_or(ROOT);
    for function in &mut open[known.map_or(0, |at| at + 1)..] {
        node = stacks.node(node, function.name);
        function.node = Some(node);
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{OpInfo, OpInputs, Process, TraceBuilder, Track};

    /// Groups of a thread with functions, a module and operators, as `name shapes stack module category`.
    fn check(by: GroupBy, expected: &[&str]) {
        let mut builder = TraceBuilder::new("groups");
        let process = builder.add_process(Process::default());
        let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
        let mut add = |kind, name: &str, start, end, dims: &str, stack: &str| {
            let name = builder.strings.intern(name);
            let slice = builder.add_slice(track, kind, name, start, end - start);
            let (dims, stack) = (builder.strings.intern(dims), builder.strings.intern(stack));
            let inputs = builder.intern_inputs(OpInputs { dims, ..OpInputs::UNKNOWN });
            builder.add_op(slice, OpInfo { inputs, stack, ..OpInfo::default() });
        };
        add(SliceKind::PythonFunction, "main", 0, 50, "", "");
        add(SliceKind::Op, "aten::add", 1, 4, "[[2]]", "");
        add(SliceKind::Module, "Net_0", 5, 40, "", "");
        add(SliceKind::Op, "aten::mm", 6, 10, "[[2]]", "");
        add(SliceKind::Op, "aten::mm", 11, 20, "[[3]]", "");
        add(SliceKind::Op, "aten::mul", 60, 70, "", "a;b");
        let trace = builder.finish();
        let tree = OpTree::of(&trace);
        let found = groups_by(&trace, &tree, by);
        let text = |text: &Option<String>| text.clone().unwrap_or("-".into());
        let line = |group: &u32| {
            let label = &found.labels[*group as usize];
            let [shapes, stack, module] = [&label.shapes, &label.stack, &label.module].map(text);
            format!("{} {shapes} {stack} {module} {}", label.name, label.category)
        };
        assert_eq!(found.of_op.iter().map(line).collect::<Vec<_>>(), expected, "{by:?}");
    }

    #[test]
    fn operators_are_grouped_by_what_is_asked_for() {
        let [add, mm, mul] = ["aten::add", "aten::mm", "aten::mul"];
        let name = |name: &str, category: &str| format!("{name} - - - {category}");
        let names = [name(add, "elementwise"), name(mm, "matrix_product"), name(mul, "elementwise")];
        check(GroupBy::Name, &[&names[0], &names[1], &names[1], &names[2]]);
        check(
            GroupBy::Shapes,
            &[
                "aten::add [[2]] - - elementwise",
                "aten::mm [[2]] - - matrix_product",
                "aten::mm [[3]] - - matrix_product",
                "aten::mul - - - elementwise",
            ],
        );
        let mm = "aten::mm - Net_0;main - matrix_product";
        check(GroupBy::Stack, &["aten::add - main - elementwise", mm, mm, "aten::mul - a;b - elementwise"]);
        let mm = "aten::mm - - Net_0 matrix_product";
        check(GroupBy::Module, &["aten::add - - - elementwise", mm, mm, "aten::mul - - - elementwise"]);
        let [elementwise, product] = ["elementwise", "matrix_product"].map(|category| name(category, category));
        check(GroupBy::Category, &[&elementwise, &product, &product, &elementwise]);
    }
}
