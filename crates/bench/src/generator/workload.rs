//! What a step of training does: a decoder of Qwen2's kind in bfloat16, with data parallelism over eight ranks and AdamW.
//! Shapes, Python calls and operators of the forward pass are those of a real trace of such a model.

pub(super) mod data_parallel;

mod attention;
mod decoder;
mod input;
mod linear;
mod loss;
mod optimizer;
mod rms_norm;
mod tensor_ops;

use super::builder::ScriptBuilder;
use super::script::Script;

/// One step of a model with that many layers.
pub(super) fn step(layers: u32) -> Script {
    let mut script = ScriptBuilder::new();
    script.label("ProfilerStep#", String::new(), |script| {
        input::next_batch(script);
        decoder::forward(script, layers);
        loss::forward(script);
        backward(script);
        optimizer::step(script, layers);
        loss::read(script);
    });
    script.python("torch/profiler/profiler.py(838): step", |script| {
        script.python_leaves(&["<built-in function isinstance>", "torch/profiler/profiler.py(905): _transit_action"]);
    });
    script.script
}

/// `loss.backward()`: the main thread waits while the other one works.
fn backward(script: &mut ScriptBuilder) {
    script.python("torch/_tensor.py(592): backward", |script| {
        script.python("torch/autograd/__init__.py(242): backward", |script| {
            script.python_leaves(&["<built-in function isinstance>", "torch/autograd/__init__.py(97): _make_grads"]);
            script.op("aten::ones_like", "f32[] - - - - =1", |script| {
                script.op("aten::empty_like", "f32[] =6 =0 - - =1", |script| {
                    script.op("aten::empty_strided", "=[] =[] =6 =0 - -", |_| {});
                });
                script.op("aten::fill_", "f32[] =1", |script| script.launch("add_scalar"));
            });
            script.python("torch/autograd/graph.py(814): _engine_run_backward", |script| {
                let engine = "<built-in method run_backward of torch._C._EngineBase object at 0x7d6ac1c1f2b0>";
                script.python(engine, ScriptBuilder::run_tape);
            });
        });
    });
}

#[cfg(test)]
mod tests {
    use super::super::memory::Use;
    use super::*;

    #[test]
    fn more_layers_are_more_of_the_same() {
        let rows = |layers| {
            let script = step(layers);
            [script.externals() as usize, script.python.len(), script.calls.len(), script.works.len()]
        };
        let (two, three, four) = (rows(2), rows(3), rows(4));
        assert!((0..4).all(|i| three[i] > two[i] && four[i] - three[i] <= three[i] - two[i] + 8), "{two:?} {three:?}");
    }

    #[test]
    fn a_step_gives_back_all_memory_that_it_takes() {
        let mut script = ScriptBuilder::new();
        decoder::forward(&mut script, 2);
        loss::forward(&mut script);
        backward(&mut script);
        optimizer::step(&mut script, 2);
        let left = [Use::Activation, Use::Gradient, Use::Temporary].map(|purpose| script.memory.count(purpose));
        assert_eq!(left, [0, 0, 0]);
    }
}
