//! The model: embedding, positions, layers, the last norm and the head, inside `DistributedDataParallel`.

use super::super::autograd::Backward;
use super::super::builder::ScriptBuilder;
use super::super::kernels::Stream;
use super::super::memory::Use;
use super::linear::{Linear, ROWS, SQUARE};
use super::tensor_ops::{Elementwise, as_strided};
use super::{attention, rms_norm};

const HIDDEN: &str = "bf16[16,559,1024]";
const HIDDEN_BYTES: u64 = 2 * ROWS * 1024;
const WIDE: &str = "bf16[16,559,2816]";
/// Words that the model knows.
pub(super) const WORDS: u64 = 32_000;

const WIDEN: Linear = Linear { to: 2816, output: ["16,559,2816", "8944,2816"], kernel: "gemm_wide", ..SQUARE };
const NARROW: Linear = Linear { from: 2816, input: ["16,559,2816", "8944,2816"], kernel: "gemm_wide", ..SQUARE };
const HEAD: Linear = Linear { to: WORDS, output: ["16,559,32000", "8944,32000"], kernel: "gemm_head", ..SQUARE };

/// Sizes of a layer's parameters, in the model's order.
pub(super) const LAYER_PARAMETERS: [&str; 12] = [
    "1024,1024",
    "1024",
    "1024,1024",
    "1024",
    "1024,1024",
    "1024",
    "1024,1024",
    "2816,1024",
    "2816,1024",
    "1024,2816",
    "1024",
    "1024",
];

/// Calls the model.
pub(super) fn forward(script: &mut ScriptBuilder, layers: u32) {
    let parallel = "torch/nn/parallel/distributed.py(1633): forward";
    script.module("DistributedDataParallel", parallel, |script| {
        script.label("DistributedDataParallel.forward", String::new(), |script| {
            script.python("torch/nn/parallel/distributed.py(1522): _pre_forward", |script| {
                script.python_leaves(&["<built-in function is_grad_enabled>"]);
                script.python_leaves(&["torch/nn/parallel/distributed.py(1421): _lazy_init_ran"]);
            });
            let causal = "transformers/models/qwen2/modeling_qwen2.py(779): forward";
            script.module("Qwen2ForCausalLM", causal, |script| {
                script.module("Qwen2Model", "transformers/models/qwen2/modeling_qwen2.py(486): forward", |script| {
                    embedding(script);
                    positions(script);
                    (0..layers).for_each(|_| layer(script));
                    rms_norm::call(script);
                });
                HEAD.call(script);
            });
        });
    });
}

fn layer(script: &mut ScriptBuilder) {
    script.module("Qwen2DecoderLayer", "transformers/models/qwen2/modeling_qwen2.py(243): forward", |script| {
        script.python_leaves(&["torch/nn/modules/module.py(1915): __getattr__"]);
        rms_norm::call(script);
        attention::call(script);
        residual().call(script);
        script.python_leaves(&["torch/nn/modules/module.py(1915): __getattr__"]);
        rms_norm::call(script);
        mlp(script);
        residual().call(script);
    });
}

fn mlp(script: &mut ScriptBuilder) {
    script.module("Qwen2MLP", "transformers/models/qwen2/modeling_qwen2.py(56): forward", |script| {
        script.python_leaves(&["torch/nn/modules/module.py(1915): __getattr__"; 3]);
        WIDEN.call(script);
        script.module("SiLU", "torch/nn/modules/activation.py(431): forward", |script| {
            script.python("torch/nn/functional.py(2358): silu", |script| {
                script.python_leaves(&["<built-in function _has_torch_function_unary>"]);
                script.python("<built-in function silu>", |script| {
                    wide("aten::silu", WIDE, "silu", "SiluBackward0", &[("aten::silu_backward", "silu_backward")])
                        .call(script);
                });
            });
        });
        WIDEN.call(script);
        let gradients = &[("aten::mul", "mul_wide"), ("aten::mul", "mul_wide")];
        wide("aten::mul", "bf16[16,559,2816] bf16[16,559,2816]", "mul_wide", "MulBackward0", gradients).call(script);
        NARROW.call(script);
    });
}

fn wide(
    name: &'static str,
    inputs: &'static str,
    kernel: &'static str,
    node: &'static str,
    gradients: &'static [(&'static str, &'static str)],
) -> Elementwise {
    Elementwise { name, inputs, kernel, bytes: 2 * ROWS * 2816, node, result: WIDE, gradients }
}

fn residual() -> Elementwise {
    Elementwise {
        name: "aten::add",
        inputs: "bf16[16,559,1024] bf16[16,559,1024] =1",
        kernel: "add",
        bytes: HIDDEN_BYTES,
        node: "AddBackward0",
        result: HIDDEN,
        gradients: &[("aten::add_", "add")],
    }
}

fn embedding(script: &mut ScriptBuilder) {
    script.module("Embedding", "torch/nn/modules/sparse.py(189): forward", |script| {
        let backward = Backward::new("EmbeddingBackward0", HIDDEN, |script| {
            let inputs = "bf16[16,559,1024] i64[16,559] =32000 =-1 =False";
            script.op("aten::embedding_dense_backward", inputs, |script| {
                script.take(Use::Temporary, 2 * WORDS * 1024);
                script.set(2 * WORDS * 1024);
                script.launch("embedding_backward");
            });
        });
        let inputs = "bf16[32000,1024] i64[16,559] =-1 =False =False";
        script.grad_op("aten::embedding", inputs, backward.completing("32000,1024"), |script| {
            script.op("aten::reshape", "i64[16,559] =[-1]", |script| {
                script.op("aten::view", "i64[16,559] =[8944]", |_| {});
            });
            script.op("aten::index_select", "bf16[32000,1024] =0 i64[8944]", |script| {
                script.take(Use::Activation, HIDDEN_BYTES);
                script.launch("embedding");
            });
            script.op("aten::view", "bf16[8944,1024] =[16,559,1024]", |_| {});
        });
    });
}

fn positions(script: &mut ScriptBuilder) {
    let forward = "transformers/models/qwen2/modeling_qwen2.py(329): forward";
    script.module("Qwen2RotaryEmbedding", forward, |script| {
        script.op("aten::matmul", "f32[1,32,1] f32[1,1,559]", |script| {
            script.op("aten::bmm", "f32[1,32,1] f32[1,1,559]", |script| {
                script.launch_with("cuLaunchKernel", "sgemm_small", Stream::Compute, "");
            });
        });
        script.op("aten::transpose", "f32[1,32,559] =1 =2", |script| {
            as_strided(script, "f32[1,32,559]", "1,559,32", "17888,1,559");
        });
        script.op("aten::cat", "list(1,559,32;1,559,32) =-1", |script| script.launch("cat_small"));
        for (name, kernel) in [("aten::cos", "cos"), ("aten::sin", "sin")] {
            script.op(name, "f32[1,559,64]", |script| script.launch(kernel));
            script.op("aten::mul", "f32[1,559,64] f64[]", |script| script.launch("mul_small"));
            script.op("aten::to", "f32[1,559,64] =15 =False =False -", |script| {
                script.op("aten::_to_copy", "f32[1,559,64] =15 - - - =False -", |script| {
                    script.op("aten::copy_", "bf16[1,559,64] f32[1,559,64] =False", |script| {
                        script.launch("to_bf16_small");
                    });
                });
            });
        }
    });
}
