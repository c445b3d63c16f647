//! The loss: cross entropy over all words, and its value read on the host at the end of the step.

use super::super::autograd::Backward;
use super::super::builder::ScriptBuilder;
use super::super::kernels::Stream;
use super::super::memory::Use;
use super::decoder::WORDS;
use super::linear::ROWS;
use super::tensor_ops::{to_type, view};

const SCORES: &str = "f32[8944,32000]";
const SCORES_BYTES: u64 = 4 * ROWS * WORDS;

/// Computes the loss.
pub(super) fn forward(script: &mut ScriptBuilder) {
    script.python("transformers/loss/loss_utils.py(37): ForCausalLMLoss", |script| {
        script.python("<built-in method view of Tensor object at 0x7d67180cd8b0>", |script| {
            view(script, "aten::view", "16,559,32000", "8944,32000");
        });
        script.python("<built-in method float of Tensor object at 0x7d67180cd9a0>", |script| {
            to_type(script, "bf16[8944,32000]", SCORES, SCORES_BYTES, ["to_float", "to_bf16"]);
        });
        script.python("torch/nn/functional.py(3402): cross_entropy", |script| {
            script.python("<built-in function cross_entropy_loss>", |script| {
                let inputs = "f32[8944,32000] i64[8944] - =1 =-100 =0.";
                script.composite_op("aten::cross_entropy_loss", inputs, |script| {
                    log_softmax(script);
                    negative_log_likelihood(script);
                });
            });
        });
    });
}

fn log_softmax(script: &mut ScriptBuilder) {
    let backward = Backward::new("LogSoftmaxBackward0", SCORES, |script| {
        let inputs = format!("{SCORES} {SCORES} =1 =6");
        script.op("aten::_log_softmax_backward_data", &inputs, |script| {
            script.take(Use::Temporary, SCORES_BYTES);
            script.launch("log_softmax_backward");
        });
    });
    script.composite_op("aten::log_softmax", "f32[8944,32000] =1 -", |script| {
        script.grad_op("aten::_log_softmax", "f32[8944,32000] =1 =False", backward, |script| {
            script.take(Use::Activation, SCORES_BYTES);
            script.launch("log_softmax");
        });
    });
}

fn negative_log_likelihood(script: &mut ScriptBuilder) {
    let backward = Backward::new("NllLossBackward0", "f32[]", |script| {
        let inputs = "f32[] f32[8944,32000] i64[8944] - =1 =-100 f32[]";
        script.op("aten::nll_loss_backward", inputs, |script| {
            script.take(Use::Temporary, SCORES_BYTES);
            script.set(SCORES_BYTES);
            script.launch("nll_loss_backward");
        });
    });
    script.composite_op("aten::nll_loss_nd", "f32[8944,32000] i64[8944] - =1 =-100", |script| {
        script.composite_op("aten::nll_loss", "f32[8944,32000] i64[8944] - =1 =-100", |script| {
            let inputs = "f32[8944,32000] i64[8944] - =1 =-100";
            script.grad_op("aten::nll_loss_forward", inputs, backward, |script| {
                script.take(Use::Activation, 8);
                script.launch("nll_loss");
            });
        });
    });
}

/// Reads its value: the host waits for the device.
pub(super) fn read(script: &mut ScriptBuilder) {
    script.python("<built-in method item of Tensor object at 0x7d67180cc6e0>", |script| {
        script.op("aten::item", "f32[]", |script| {
            script.op("aten::_local_scalar_dense", "f32[]", |script| {
                script.copy("Memcpy DtoH (Device -> Pinned)", 4, 1, Stream::Compute);
                script.synchronize();
            });
        });
    });
}
