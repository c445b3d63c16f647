//! `Qwen2Attention`: three projections, rotary positions, flash attention, the projection back.

use super::super::autograd::Backward;
use super::super::builder::ScriptBuilder;
use super::super::memory::Use;
use super::linear::{Linear, ROWS, SQUARE};
use super::tensor_ops::{Elementwise, as_strided, contiguous, transpose, view};

/// A tensor by heads; as it comes from a projection, and in memory without gaps.
const HEADS: &str = "bf16[16,16,559,64]";
const STRIDED: &str = "bf16[16,16,559,64/572416,64,1024,1]";
const HEAD_BYTES: u64 = 2 * ROWS * 1024;

/// Calls the module.
pub(super) fn call(script: &mut ScriptBuilder) {
    script.module("Qwen2Attention", "transformers/models/qwen2/modeling_qwen2.py(150): forward", |script| {
        for _ in 0..3 {
            script.python_leaves(&["torch/nn/modules/module.py(1915): __getattr__"]);
            Linear { has_bias: true, ..SQUARE }.call(script);
            script.python("<built-in method view of Tensor object at 0x7d67180cd8b0>", |script| {
                view(script, "aten::view", "16,559,1024", "16,559,16,64");
            });
            script.python("<built-in method transpose of Tensor object at 0x7d67180cd9a0>", |script| {
                transpose(script, "16,559,16,64", "16,16,559,64", "572416,64,1024,1");
            });
        }
        rotary(script);
        read_configuration(script);
        scaled_dot_product(script);
        script.python("<built-in method reshape of Tensor object at 0x7d67180cc910>", |script| {
            script.composite_op("aten::reshape", "bf16[16,559,16,64] =[16,559,-1]", |script| {
                view(script, "aten::view", "16,559,16,64", "16,559,1024");
            });
        });
        script.python_leaves(&["<built-in method contiguous of Tensor object at 0x7d67180cc500>"]);
        SQUARE.call(script);
    });
}

/// Turns queries and keys by their positions.
fn rotary(script: &mut ScriptBuilder) {
    script.python("transformers/models/qwen2/modeling_qwen2.py(68): apply_rotary_pos_emb", |script| {
        for _ in 0..2 {
            script.python("<built-in method unsqueeze of Tensor object at 0x7d67180cdbd0>", |script| {
                script.op("aten::unsqueeze", "bf16[1,559,64] =1", |script| {
                    as_strided(script, "bf16[1,559,64]", "1,1,559,64", "35776,35776,64,1");
                });
            });
        }
        for _ in 0..2 {
            turned("bf16[16,16,559,64/572416,64,1024,1] bf16[1,1,559,64]").call(script);
            rotate_half(script);
            turned("bf16[16,16,559,64] bf16[1,1,559,64]").call(script);
            let sum = Elementwise {
                name: "aten::add",
                inputs: "bf16[16,16,559,64/572416,64,1024,1] bf16[16,16,559,64] =1",
                kernel: "add_strided",
                bytes: HEAD_BYTES,
                node: "AddBackward0",
                result: HEADS,
                gradients: &[],
            };
            sum.call(script);
        }
    });
    script.python("transformers/cache_utils.py(398): update", |script| {
        script.python_leaves(&["<built-in function len>"; 2]);
        script.python_leaves(&["<built-in method append of list object at 0x7d672e1ecec0>"; 2]);
    });
}

fn turned(inputs: &'static str) -> Elementwise {
    let gradients = &[("aten::mul", "mul"), ("aten::add_", "add_strided")];
    let (bytes, node) = (HEAD_BYTES, "MulBackward0");
    Elementwise { name: "aten::mul", inputs, kernel: "mul", bytes, node, result: HEADS, gradients }
}

fn rotate_half(script: &mut ScriptBuilder) {
    script.python("transformers/models/qwen2/modeling_qwen2.py(61): rotate_half", |script| {
        for bounds in ["=3 =0 =32 =1", "=3 =32 =9223372036854775807 =1"] {
            let backward = Backward::new("SliceBackward0", "bf16[16,16,559,32]", |script| {
                script.op("aten::slice_backward", "bf16[16,16,559,32] =[16,16,559,64] =3 =0 =32 =1", |script| {
                    script.op("aten::zeros", "=[16,16,559,64] =15 =0 - -", |script| {
                        script.take(Use::Temporary, HEAD_BYTES);
                        script.op("aten::zero_", HEADS, |script| {
                            script.op("aten::fill_", "bf16[16,16,559,64] =0", |script| script.launch("fill"));
                        });
                    });
                    script.op("aten::copy_", "bf16[16,16,559,32] bf16[16,16,559,32] =False", |script| {
                        script.launch("copy");
                    });
                });
            });
            script.grad_op("aten::slice", &format!("{STRIDED} {bounds}"), backward, |script| {
                as_strided(script, STRIDED, "16,16,559,32", "572416,64,1024,1");
            });
        }
        let negated = Elementwise {
            name: "aten::neg",
            inputs: "bf16[16,16,559,32/572416,64,1024,1]",
            kernel: "neg",
            bytes: HEAD_BYTES / 2,
            node: "NegBackward0",
            result: "bf16[16,16,559,32]",
            gradients: &[("aten::neg", "neg")],
        };
        negated.call(script);
        script.python("<built-in method cat of type object at 0x7d6b7761df60>", |script| {
            let backward = Backward::new("CatBackward0", HEADS, |script| {
                (0..2).for_each(|_| script.op("aten::narrow", "bf16[16,16,559,64] =3 =0 =32", |_| {}));
            });
            script.grad_op("aten::cat", "list(16,16,559,32;16,16,559,32) =-1", backward, |script| {
                script.take(Use::Activation, HEAD_BYTES);
                script.launch("cat");
            });
        });
    });
}

fn read_configuration(script: &mut ScriptBuilder) {
    for _ in 0..3 {
        script.python("transformers/configuration_utils.py(211): __getattribute__", |script| {
            script.python("transformers/configuration_utils.py(358): _attn_implementation", |script| {
                script.python("<built-in function hasattr>", |script| {
                    script.python_leaves(&["transformers/configuration_utils.py(211): __getattribute__"]);
                });
                script.python_leaves(&["transformers/configuration_utils.py(211): __getattribute__"; 2]);
            });
        });
    }
}

fn scaled_dot_product(script: &mut ScriptBuilder) {
    script.python("transformers/integrations/sdpa_attention.py(18): sdpa_attention_forward", |script| {
        script.python_leaves(&["<built-in function hasattr>"]);
        script.python_leaves(&["transformers/integrations/sdpa_attention.py(6): repeat_kv"; 2]);
        (0..3).for_each(|_| contiguous(script, STRIDED, HEADS, HEAD_BYTES));
        script.python("torch/jit/_trace.py(1321): is_tracing", |script| {
            script.python_leaves(&["torch/_jit_internal.py(103): is_scripting"]);
            script.python_leaves(&["<built-in method _is_tracing of PyCapsule object at 0x7d6af4f42d90>"]);
        });
        script.python("<built-in function scaled_dot_product_attention>", |script| {
            let inputs = format!("{HEADS} {HEADS} {HEADS} - =0. =True =0.125 =False");
            script.composite_op("aten::scaled_dot_product_attention", &inputs, flash);
        });
        script.python("<built-in method transpose of Tensor object at 0x7d67180cd9a0>", |script| {
            transpose(script, "16,16,559,64", "16,559,16,64", "572416,64,35776,1");
        });
        contiguous(script, "bf16[16,559,16,64/572416,64,35776,1]", "bf16[16,559,16,64]", HEAD_BYTES);
    });
}

fn flash(script: &mut ScriptBuilder) {
    let strided = "bf16[16,559,16,64/572416,64,35776,1]";
    let backward = Backward::new("ScaledDotProductFlashAttentionBackward0", HEADS, move |script| {
        let inputs =
            format!("{HEADS} {HEADS} {HEADS} {HEADS} {HEADS} f32[16,16,559] - - =559 =559 =0. =True i64[] i64[]");
        script.op("aten::_scaled_dot_product_flash_attention_backward", &inputs, |script| {
            (0..5).for_each(|_| transposed(script));
            script.op("aten::_flash_attention_backward", &inputs, |script| {
                for _ in 0..3 {
                    script.op("aten::empty_like", &format!("{strided} - - - - -"), |script| {
                        script.take(Use::Temporary, HEAD_BYTES);
                    });
                }
                script.call("cudaFuncSetAttribute");
                ["flash_dot", "flash_backward", "flash_convert"].iter().for_each(|key| script.launch(key));
            });
            (0..3).for_each(|_| transposed(script));
        });
    });
    let inputs = format!("{HEADS} {HEADS} {HEADS} =0. =True =False =0.125");
    script.grad_op("aten::_scaled_dot_product_flash_attention", &inputs, backward, |script| {
        (0..3).for_each(|_| transposed(script));
        let inputs = format!("{strided} {strided} {strided} - - =559 =559 =0. =True =False =0.125 - - - -");
        script.op("aten::_flash_attention_forward", &inputs, |script| {
            script.op("aten::empty_like", &format!("{strided} - - - - -"), |script| {
                script.op("aten::empty_strided", "=[16,559,16,64] =[572416,64,35776,1] =15 =0 - -", |script| {
                    script.take(Use::Activation, HEAD_BYTES);
                });
            });
            script.op("aten::empty", "=[16,16,559] =6 =0 - - -", |script| {
                script.take(Use::Activation, 4 * ROWS * 16);
            });
            script.call("cudaStreamIsCapturing");
            (0..2).for_each(|_| script.op("aten::empty", "=[] =4 - - - -", |_| {}));
            script.call("cudaFuncSetAttribute");
            script.launch("flash_forward");
        });
    });
}

fn transposed(script: &mut ScriptBuilder) {
    script.op("aten::transpose", "bf16[16,16,559,64] =1 =2", |script| {
        as_strided(script, HEADS, "16,559,16,64", "572416,64,35776,1");
    });
}
