//! Writes a [`Script`]: what a program calls, in the words that the workload is told in.

mod device;

use super::autograd::Node;
use super::inputs::arguments;
use super::memory::{Memory, Use};
use super::rows;
use super::script::{Act, MemoryRow, OpRow, PythonRow, Script, Thread};
use std::collections::BTreeMap;

/// What a slice takes by itself, about: Python calls, operators, labels.
const PYTHON_NS: u32 = 230;
const OP_NS: u32 = 1_400;
const LABEL_NS: u32 = 2_600;

/// Writes one step.
pub(super) struct ScriptBuilder {
    pub(super) script: Script,
    /// What the forward pass leaves for the backward pass, last first.
    pub(super) tape: Vec<Node>,
    pub(super) memory: Memory,
    pub(super) thread: Thread,
    /// Sizes of the parameters whose gradients wait for their bucket to be full.
    pub(super) bucket: Vec<String>,
    /// Sizes of those that are reduced over all ranks.
    pub(super) reduced: Vec<String>,
    /// External ids of the operators that are open, by thread.
    ops: [Vec<u32>; 2],
    /// External ids and names of the labels that are open, by thread.
    labels: [Vec<(u32, String)>; 2],
    python: Vec<u32>,
    projections: BTreeMap<(u32, u32), u32>,
    modules: BTreeMap<String, u32>,
}

impl ScriptBuilder {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self {
            script: Script::default(),
            tape: Vec::new(),
            memory: Memory::new(),
            thread: Thread::Main,
            bucket: Vec::new(),
            reduced: Vec::new(),
            ops: [Vec::new(), Vec::new()],
            labels: [Vec::new(), Vec::new()],
            python: Vec::new(),
            projections: BTreeMap::new(),
            modules: BTreeMap::new(),
        }
    }

    /// A Python call of a function, and what it calls.
    pub(super) fn python(&mut self, name: &str, inner: impl FnOnce(&mut Self)) {
        self.python_row(name, None, inner);
    }

    /// Python calls that call nothing else.
    pub(super) fn python_leaves(&mut self, names: &[&str]) {
        names.iter().for_each(|name| self.python(name, |_| {}));
    }

    /// A call of a module: the next one of its class, and its `forward`.
    pub(super) fn module(&mut self, class: &str, forward: &str, inner: impl FnOnce(&mut Self)) {
        let count = self.modules.entry(class.into()).or_default();
        let number = std::mem::replace(count, *count + 1);
        self.python_row(&format!("nn.Module: {class}_{number}"), Some(number), |script| {
            script.python("torch/nn/modules/module.py(1743): _call_impl", |script| {
                script.python_leaves(&["<built-in method _get_tracing_state of PyCapsule object at 0x7d6af4f5f4e0>"]);
                script.python(forward, inner);
            });
        });
    }

    /// An operator below autograd, and what it calls.
    pub(super) fn op(&mut self, name: &str, inputs: &str, inner: impl FnOnce(&mut Self)) {
        self.op_with(name, arguments(inputs), None, None, inner);
    }

    /// An operator that is made of others which autograd sees.
    pub(super) fn composite_op(&mut self, name: &str, inputs: &str, inner: impl FnOnce(&mut Self)) {
        let sequence = Some((self.script.sequences, 0));
        self.op_with(name, arguments(inputs), sequence, None, inner);
    }

    /// An operator with its arguments as text.
    pub(super) fn op_with(
        &mut self,
        name: &str,
        arguments: String,
        sequence: Option<(u32, u8)>,
        arrow: Option<u32>,
        inner: impl FnOnce(&mut Self),
    ) {
        let slice = self.begin(OP_NS);
        let external = self.add_op(slice, rows::head("cpu_op", name), arguments, sequence, arrow, false);
        self.ops[self.thread as usize].push(external);
        inner(self);
        self.ops[self.thread as usize].pop();
        self.end(slice);
    }

    /// A label, and what is done under it.
    pub(super) fn label(&mut self, name: &str, arguments: String, inner: impl FnOnce(&mut Self)) {
        let slice = self.begin(LABEL_NS);
        let is_numbered = name.ends_with('#');
        let external = self.add_op(slice, rows::head("user_annotation", name), arguments, None, None, is_numbered);
        self.labels[self.thread as usize].push((external, name.into()));
        inner(self);
        self.labels[self.thread as usize].pop();
        self.end(slice);
    }

    /// Takes memory.
    pub(super) fn take(&mut self, purpose: Use, bytes: u64) {
        let arguments = self.memory.take(purpose, bytes);
        self.add_memory(arguments);
    }

    /// Gives back what was taken last.
    pub(super) fn give_back(&mut self, purpose: Use) {
        let arguments = self.memory.give_back(purpose);
        self.add_memory(arguments);
    }

    fn add_memory(&mut self, arguments: String) {
        self.script.acts.push(Act::Memory(self.script.memory.len() as u32));
        self.script.memory.push(MemoryRow { thread: self.thread, arguments });
    }

    fn begin(&mut self, cost_ns: u32) -> u32 {
        let slice = self.script.costs_ns.len() as u32;
        self.script.costs_ns.push(cost_ns);
        self.script.acts.push(Act::Begin(slice));
        slice
    }

    fn end(&mut self, slice: u32) {
        self.script.acts.push(Act::End(slice));
    }

    fn python_row(&mut self, name: &str, module: Option<u32>, inner: impl FnOnce(&mut Self)) {
        let slice = self.begin(PYTHON_NS);
        let parent = self.python.last().copied();
        self.python.push(self.script.python.len() as u32);
        self.script.python.push(PythonRow { slice, head: rows::head("python_function", name), parent, module });
        inner(self);
        self.python.pop();
        self.end(slice);
    }

    fn add_op(
        &mut self,
        slice: u32,
        head: String,
        arguments: String,
        sequence: Option<(u32, u8)>,
        arrow: Option<u32>,
        is_numbered: bool,
    ) -> u32 {
        let external = self.script.externals() as u32;
        let row = OpRow { slice, head, is_numbered, external, sequence, arguments, arrow };
        match self.thread {
            Thread::Main => self.script.main.push(row),
            Thread::Autograd => self.script.autograd.push(row),
        }
        external
    }
}
