//! `Qwen2RMSNorm`: the norm in single precision, step by step.

use super::super::autograd::Backward;
use super::super::builder::ScriptBuilder;
use super::super::memory::Use;
use super::linear::ROWS;
use super::tensor_ops::{Elementwise, to_type};

const HALF: &str = "bf16[16,559,1024]";
const FULL: &str = "f32[16,559,1024]";
const MEAN: &str = "f32[16,559,1]";
const FULL_BYTES: u64 = 4 * ROWS * 1024;
const MEAN_BYTES: u64 = 4 * ROWS;

/// Calls the module.
pub(super) fn call(script: &mut ScriptBuilder) {
    script.module("Qwen2RMSNorm", "transformers/models/qwen2/modeling_qwen2.py(218): forward", |script| {
        script.python("<built-in method to of Tensor object at 0x7d67180cc190>", |script| {
            to_type(script, HALF, FULL, FULL_BYTES, ["to_float", "to_bf16"]);
        });
        script.python("<built-in method pow of Tensor object at 0x7d67180cc140>", square);
        script.python("<built-in method mean of Tensor object at 0x7d67180cc9b0>", mean);
        small("aten::add", "f32[16,559,1] f64[] =1", "add_scalar", "AddBackward0", &[]).call(script);
        script.python("<built-in method rsqrt of type object at 0x7d6b7761df60>", |script| {
            let gradients = &[("aten::pow", "rsqrt"), ("aten::mul", "rsqrt"), ("aten::mul", "rsqrt")];
            small("aten::rsqrt", "f32[16,559,1]", "rsqrt", "RsqrtBackward0", gradients).call(script);
        });
        let scaled = Elementwise {
            name: "aten::mul",
            inputs: "f32[16,559,1024] f32[16,559,1]",
            kernel: "mul_float",
            bytes: FULL_BYTES,
            node: "MulBackward0",
            result: FULL,
            gradients: &[("aten::mul", "mul_float"), ("aten::mul", "mul_float"), ("aten::sum", "mean")],
        };
        scaled.call(script);
        script.python_leaves(&["torch/nn/modules/module.py(1915): __getattr__"]);
        script.python("<built-in method to of Tensor object at 0x7d67180cc190>", |script| {
            to_type(script, FULL, HALF, FULL_BYTES / 2, ["to_bf16", "to_float"]);
        });
        let weighted = Elementwise {
            name: "aten::mul",
            inputs: "bf16[1024] bf16[16,559,1024]",
            kernel: "mul",
            bytes: FULL_BYTES / 2,
            node: "MulBackward0",
            result: HALF,
            gradients: &[("aten::mul", "mul"), ("aten::mul", "mul"), ("aten::sum", "sum")],
        };
        weighted.call_with_parameter(script, "1024");
    });
}

/// An operator on one number a row.
fn small(
    name: &'static str,
    inputs: &'static str,
    kernel: &'static str,
    node: &'static str,
    gradients: &'static [(&'static str, &'static str)],
) -> Elementwise {
    Elementwise { name, inputs, kernel, bytes: MEAN_BYTES, node, result: MEAN, gradients }
}

fn square(script: &mut ScriptBuilder) {
    let backward = Backward::new("PowBackward0", FULL, |script| {
        for (name, kernel) in [("aten::pow", "pow"), ("aten::mul", "mul_float"), ("aten::mul", "mul_float")] {
            script.op(name, "f32[16,559,1024] =2", |script| {
                script.take(Use::Temporary, FULL_BYTES);
                script.launch(kernel);
            });
        }
    });
    script.grad_op("aten::pow", "f32[16,559,1024] =2", backward, |script| {
        script.op("aten::result_type", "f32[16,559,1024] =2", |_| {});
        script.op("aten::to", "f32[16,559,1024] =6 =False =False -", |_| {});
        script.take(Use::Activation, FULL_BYTES);
        script.launch("pow");
    });
}

fn mean(script: &mut ScriptBuilder) {
    let backward = Backward::new("MeanBackward1", MEAN, |script| {
        script.op("aten::expand", "f32[16,559,1] =[16,559,1024] =False", |script| {
            script.op("aten::as_strided", "f32[16,559,1] =[16,559,1024] =[559,1,0] -", |_| {});
        });
        script.op("aten::div", "f32[16,559,1024/559,1,0] =1024", |script| {
            script.take(Use::Temporary, FULL_BYTES);
            script.launch("mul_float");
        });
    });
    script.grad_op("aten::mean", "f32[16,559,1024] =[-1] =True -", backward, |script| {
        script.take(Use::Activation, MEAN_BYTES);
        script.launch("mean");
    });
}
