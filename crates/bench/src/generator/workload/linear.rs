//! `torch.nn.Linear`: with a bias as `addmm`, without as `matmul`.

use super::super::autograd::Backward;
use super::super::builder::ScriptBuilder;
use super::super::kernels::Stream;
use super::super::memory::Use;
use super::tensor_ops::{as_strided, view};

/// Rows of the matrix that every layer works on: batch times length.
pub(super) const ROWS: u64 = 8944;

/// A layer of this kind.
#[derive(Clone, Copy)]
pub(super) struct Linear {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) has_bias: bool,
    /// Sizes of its input and output, as a model passes them and as a matrix.
    pub(super) input: [&'static str; 2],
    pub(super) output: [&'static str; 2],
    pub(super) kernel: &'static str,
}

/// A square layer of the attention.
pub(super) const SQUARE: Linear = Linear {
    from: 1024,
    to: 1024,
    has_bias: false,
    input: ["16,559,1024", "8944,1024"],
    output: ["16,559,1024", "8944,1024"],
    kernel: "gemm",
};

impl Linear {
    /// Calls the module.
    pub(super) fn call(self, script: &mut ScriptBuilder) {
        script.module("Linear", "torch/nn/modules/linear.py(124): forward", |script| {
            script.python_leaves(&["torch/nn/modules/module.py(1915): __getattr__"; 2]);
            script.python("<built-in function linear>", |script| {
                let Self { from, to, has_bias, input, .. } = self;
                let bias = if has_bias { format!("bf16[{to}]") } else { "-".into() };
                script.composite_op(
                    "aten::linear",
                    &format!("bf16[{}] bf16[{to},{from}] {bias}", input[0]),
                    |script| {
                        self.transpose_weight(script);
                        if has_bias { self.addmm(script) } else { self.matmul(script) }
                    },
                );
            });
        });
    }

    fn transpose_weight(self, script: &mut ScriptBuilder) {
        let Self { from, to, .. } = self;
        let backward = Backward::new("TBackward0", &format!("bf16[{from},{to}/1,{from}]"), move |script| {
            transposed(script, &format!("bf16[{from},{to}/1,{from}]"), to, from);
        });
        script.grad_op(
            "aten::t",
            &format!("bf16[{to},{from}]"),
            backward.completing(&format!("{to},{from}")),
            |script| {
                transpose_inner(script, &format!("bf16[{to},{from}]"), from, to);
            },
        );
    }

    fn addmm(self, script: &mut ScriptBuilder) {
        let Self { from, to, input, output, .. } = self;
        script.op("aten::reshape", &format!("bf16[{}] =[{}]", input[0], input[1]), |script| {
            script.op("aten::view", &format!("bf16[{}] =[{}]", input[0], input[1]), |_| {});
        });
        let backward = Backward::new("AddmmBackward0", &format!("bf16[{}]", output[1]), move |script| {
            self.gradients(script);
            script.op("aten::sum", &format!("bf16[{}] =[0] =True -", output[1]), |script| {
                script.take(Use::Temporary, 2 * to);
                script.launch("sum");
            });
            script.op("aten::view", &format!("bf16[1,{to}] =[{to}]"), |_| {});
        });
        let inputs = format!("bf16[{to}] bf16[{}] bf16[{from},{to}/1,{from}] =1 =1", input[1]);
        script.grad_op("aten::addmm", &inputs, backward.completing(&to.to_string()), |script| self.multiply(script));
        view(script, "aten::view", output[1], output[0]);
    }

    fn matmul(self, script: &mut ScriptBuilder) {
        let Self { from, to, input, output, .. } = self;
        script.composite_op("aten::matmul", &format!("bf16[{}] bf16[{from},{to}/1,{from}]", input[0]), |script| {
            script.composite_op("aten::reshape", &format!("bf16[{}] =[{}]", input[0], input[1]), |script| {
                view(script, "aten::view", input[0], input[1]);
            });
            let backward = Backward::new("MmBackward0", &format!("bf16[{}]", output[1]), move |script| {
                self.gradients(script);
            });
            let inputs = format!("bf16[{}] bf16[{from},{to}/1,{from}]", input[1]);
            script.grad_op("aten::mm", &inputs, backward, |script| self.multiply(script));
            view(script, "aten::_unsafe_view", output[1], output[0]);
        });
    }

    /// The calls of cuBLAS around a multiplication.
    fn multiply(self, script: &mut ScriptBuilder) {
        script.take(Use::Activation, 2 * ROWS * self.to);
        script.call("cudaFuncGetAttributes");
        script.set(4);
        (0..3).for_each(|_| script.call("cudaFuncSetAttribute"));
        script.launch_with("cudaLaunchKernelExC", self.kernel, Stream::Compute, "");
    }

    /// Gradients of weight and input.
    fn gradients(self, script: &mut ScriptBuilder) {
        let Self { from, to, input, output, .. } = self;
        transposed(script, &format!("bf16[{}]", output[1]), to, ROWS);
        script.op("aten::mm", &format!("bf16[{to},{ROWS}/1,{to}] bf16[{}]", input[1]), |script| {
            script.take(Use::Temporary, 2 * from * to);
            script.set(4);
            script.launch_with("cudaLaunchKernelExC", "gemm_weight", Stream::Compute, "");
        });
        transposed(script, &format!("bf16[{to},{from}]"), from, to);
        transposed(script, &format!("bf16[{from},{to}/1,{from}]"), to, from);
        script.op("aten::mm", &format!("bf16[{}] bf16[{to},{from}]", output[1]), |script| {
            script.take(Use::Temporary, 2 * ROWS * from);
            script.set(4);
            script.launch_with("cudaLaunchKernelExC", "gemm_input", Stream::Compute, "");
        });
    }
}

/// `tensor.t()` below autograd; sizes of the result.
fn transposed(script: &mut ScriptBuilder, of: &str, rows: u64, columns: u64) {
    script.op("aten::t", of, |script| transpose_inner(script, of, rows, columns));
}

fn transpose_inner(script: &mut ScriptBuilder, of: &str, rows: u64, columns: u64) {
    script.op("aten::transpose", &format!("{of} =0 =1"), |script| {
        as_strided(script, of, &format!("{rows},{columns}"), &format!("1,{rows}"));
    });
}
