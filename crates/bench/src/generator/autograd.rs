//! Autograd: what the forward pass leaves on its tape, and the backward pass that takes it off, last first.

use super::builder::ScriptBuilder;
use super::inputs::arguments;
use super::memory::Use;
use super::script::Thread;
use super::workload::data_parallel;

/// What an operator of the forward pass leaves for the backward pass.
pub(super) struct Backward {
    /// What autograd calls it: `MulBackward0`.
    pub(super) name: &'static str,
    /// The gradients that it gets, in the notation of inputs.
    pub(super) inputs: String,
    /// What it does.
    pub(super) body: Box<dyn FnOnce(&mut ScriptBuilder)>,
    /// Parameters whose gradient is whole after it: their sizes.
    pub(super) parameters: Vec<String>,
}

impl Backward {
    /// One without parameters.
    pub(super) fn new(name: &'static str, inputs: &str, body: impl FnOnce(&mut ScriptBuilder) + 'static) -> Self {
        Self { name, inputs: inputs.into(), body: Box::new(body), parameters: Vec::new() }
    }

    /// The same, after which the gradient of a parameter of these sizes is whole.
    pub(super) fn completing(mut self, sizes: &str) -> Self {
        self.parameters.push(sizes.into());
        self
    }
}

/// What is on the tape.
pub(super) struct Node {
    backward: Backward,
    sequence: u32,
    arrow: u32,
    /// How many activations were there before it.
    activations: usize,
}

impl ScriptBuilder {
    /// An operator that autograd sees: it leaves a node on the tape.
    pub(super) fn grad_op(
        &mut self,
        name: &str,
        inputs: &str,
        backward: Backward,
        inner: impl FnOnce(&mut ScriptBuilder),
    ) {
        let (sequence, arrow) = (self.script.sequences, self.script.arrows);
        self.script.sequences += 1;
        self.script.arrows += 1;
        let activations = self.memory.count(Use::Activation);
        self.op_with(name, arguments(inputs), Some((sequence, 0)), Some(arrow), inner);
        self.tape.push(Node { backward, sequence, arrow, activations });
    }

    /// Runs everything on the tape on the thread of the backward pass.
    pub(super) fn run_tape(&mut self) {
        self.thread = Thread::Autograd;
        while let Some(node) = self.tape.pop() {
            self.run_node(node);
        }
        data_parallel::finish(self);
        self.thread = Thread::Main;
    }

    fn run_node(&mut self, node: Node) {
        let Backward { name, inputs, body, parameters } = node.backward;
        let sequence = Some((node.sequence, 1));
        let outer = format!("autograd::engine::evaluate_function: {name}");
        self.op_with(&outer, String::new(), sequence, None, |script| {
            script.op_with(name, arguments(&inputs), sequence, Some(node.arrow), |script| {
                let temporary = script.memory.count(Use::Temporary);
                body(script);
                while script.memory.count(Use::Temporary) > temporary {
                    script.give_back(Use::Temporary);
                }
            });
            while script.memory.count(Use::Activation) > node.activations {
                script.give_back(Use::Activation);
            }
        });
        for sizes in parameters {
            data_parallel::accumulate(self, &sizes);
        }
    }
}
