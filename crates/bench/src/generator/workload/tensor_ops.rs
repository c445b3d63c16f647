//! Operators that many parts of the model are made of.

use super::super::autograd::Backward;
use super::super::builder::ScriptBuilder;
use super::super::memory::Use;

/// A view with other strides, of whatever operator is around it.
pub(super) fn as_strided(script: &mut ScriptBuilder, of: &str, sizes: &str, strides: &str) {
    script.op("aten::as_strided", &format!("{of} =[{sizes}] =[{strides}] -"), |_| {});
}

/// `tensor.view(…)`, or `name` for another operator that only changes sizes.
pub(super) fn view(script: &mut ScriptBuilder, name: &str, from: &'static str, to: &'static str) {
    let node = if name == "aten::_unsafe_view" { "UnsafeViewBackward0" } else { "ViewBackward0" };
    let backward = Backward::new(node, &format!("bf16[{to}]"), move |script| {
        script.op("aten::reshape", &format!("bf16[{to}] =[{from}]"), |script| {
            script.op("aten::view", &format!("bf16[{to}] =[{from}]"), |_| {});
        });
    });
    script.grad_op(name, &format!("bf16[{from}] =[{to}]"), backward, |_| {});
}

/// `tensor.transpose(1, 2)` of a tensor of four dimensions with these sizes; sizes and strides of the result.
pub(super) fn transpose(script: &mut ScriptBuilder, from: &'static str, sizes: &'static str, strides: &'static str) {
    let backward = Backward::new("TransposeBackward0", &format!("bf16[{sizes}]"), move |script| {
        script.op("aten::transpose", &format!("bf16[{sizes}] =1 =2"), |script| {
            as_strided(script, &format!("bf16[{sizes}]"), from, strides);
        });
    });
    script.grad_op("aten::transpose", &format!("bf16[{from}] =1 =2"), backward, |script| {
        as_strided(script, &format!("bf16[{from}]"), sizes, strides);
    });
}

/// An operator that runs one kernel over every element and keeps its result.
pub(super) struct Elementwise {
    pub(super) name: &'static str,
    pub(super) inputs: &'static str,
    pub(super) kernel: &'static str,
    /// Of the result.
    pub(super) bytes: u64,
    pub(super) node: &'static str,
    /// The result, and its gradient, in the notation of inputs.
    pub(super) result: &'static str,
    /// Operators and kernels of the backward pass.
    pub(super) gradients: &'static [(&'static str, &'static str)],
}

impl Elementwise {
    /// Calls it.
    pub(super) fn call(self, script: &mut ScriptBuilder) {
        script.grad_op(self.name, self.inputs, self.backward(), |script| {
            script.take(Use::Activation, self.bytes);
            script.launch(self.kernel);
        });
    }

    /// Calls it; after its backward the gradient of a parameter of these sizes is whole.
    pub(super) fn call_with_parameter(self, script: &mut ScriptBuilder, sizes: &str) {
        script.grad_op(self.name, self.inputs, self.backward().completing(sizes), |script| {
            script.take(Use::Activation, self.bytes);
            script.launch(self.kernel);
        });
    }

    fn backward(&self) -> Backward {
        let (gradients, result, bytes) = (self.gradients, self.result, self.bytes);
        Backward::new(self.node, result, move |script| {
            for (name, kernel) in gradients {
                script.op(name, &format!("{result} {result}"), |script| {
                    script.take(Use::Temporary, bytes);
                    script.launch(kernel);
                });
            }
        })
    }
}

/// `tensor.to(dtype)`: a copy with another type of elements. `from` and `to` are tensors in the notation of inputs.
pub(super) fn to_type(
    script: &mut ScriptBuilder,
    from: &'static str,
    to: &'static str,
    bytes: u64,
    kernels: [&'static str; 2],
) {
    let backward =
        Backward::new("ToCopyBackward0", to, move |script| copy_of(script, to, from, bytes, kernels[1], true));
    script.composite_op("aten::to", &format!("{from} ={} =False =False -", type_number(to)), |script| {
        script.grad_op("aten::_to_copy", &format!("{from} ={} - - - =False -", type_number(to)), backward, |script| {
            copy_of(script, from, to, bytes, kernels[0], false);
        });
    });
}

fn copy_of(script: &mut ScriptBuilder, from: &str, to: &str, bytes: u64, kernel: &str, is_gradient: bool) {
    script.op("aten::empty_strided", &format!("{} =0 - =False", sizes_of(to)), |script| {
        script.take(if is_gradient { Use::Temporary } else { Use::Activation }, bytes);
    });
    script.op("aten::copy_", &format!("{to} {from} =False"), |script| script.launch(kernel));
}

/// `tensor.contiguous()` of a tensor that is not.
pub(super) fn contiguous(script: &mut ScriptBuilder, from: &'static str, to: &'static str, bytes: u64) {
    script.python("<built-in method contiguous of Tensor object at 0x7d67180cc500>", |script| {
        let backward = Backward::new("CloneBackward0", to, |_| {});
        script.composite_op("aten::contiguous", &format!("{from} =0"), |script| {
            script.grad_op("aten::clone", &format!("{from} =0"), backward, |script| {
                script.op("aten::empty_like", &format!("{from} =15 =0 - - =0"), |script| {
                    script.op("aten::empty", &format!("{} =0 - - =0", sizes_of(to)), |script| {
                        script.take(Use::Activation, bytes);
                    });
                });
                script.op("aten::copy_", &format!("{to} {from} =False"), |script| script.launch("copy"));
            });
        });
    });
}

/// The sizes of a tensor as a list of scalars, and the number of its type.
fn sizes_of(tensor: &str) -> String {
    let sizes = tensor.split(['[', '/', ']']).nth(1).unwrap_or_default();
    format!("=[{sizes}] ={}", type_number(tensor))
}

/// The number that PyTorch has for a tensor's type of elements.
fn type_number(tensor: &str) -> u32 {
    if tensor.starts_with("f32") { 6 } else { 15 }
}
