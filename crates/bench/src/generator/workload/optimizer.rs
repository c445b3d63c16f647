//! Clipping of gradients, AdamW over lists of tensors, and gradients given back.

use super::super::builder::ScriptBuilder;
use super::super::memory::Use;
use super::decoder::LAYER_PARAMETERS;

/// Parameters that one kernel of the optimizer takes.
const PARAMETERS_PER_KERNEL: usize = 36;

/// The operators of one update, with the number of lists that each gets, its scalars and its kernel.
const UPDATE: [(&str, usize, &str, &str); 9] = [
    ("aten::_foreach_mul_", 1, "=0.99999", "foreach_unary"),
    ("aten::_foreach_lerp_", 2, "=0.1", "foreach_lerp"),
    ("aten::_foreach_mul_", 1, "=0.95", "foreach_unary"),
    ("aten::_foreach_addcmul_", 3, "=0.05", "foreach_pointwise"),
    ("aten::_foreach_sqrt", 1, "", "foreach_sqrt"),
    ("aten::_foreach_div_", 1, "=1", "foreach_unary"),
    ("aten::_foreach_add_", 1, "=1e-08", "foreach_unary"),
    ("aten::_foreach_div_", 1, "=-0.0003", "foreach_unary"),
    ("aten::_foreach_addcdiv_", 3, "=1", "foreach_pointwise"),
];

/// Updates the parameters.
pub(super) fn step(script: &mut ScriptBuilder, layers: u32) {
    let mut parameters = vec!["32000,1024"];
    (0..layers).for_each(|_| parameters.extend(LAYER_PARAMETERS));
    parameters.extend(["1024", "32000,1024"]);
    let list = format!("list({})", parameters.join(";"));
    let kernels = parameters.len().div_ceil(PARAMETERS_PER_KERNEL);
    clip(script, &list, kernels);
    update(script, parameters.len(), &list, kernels);
    zero_gradients(script, parameters.len());
}

fn clip(script: &mut ScriptBuilder, list: &str, kernels: usize) {
    script.python("torch/nn/utils/clip_grad.py(168): clip_grad_norm_", |script| {
        script.python("torch/nn/utils/clip_grad.py(42): _get_total_norm", |script| {
            script.python("torch/utils/_foreach_utils.py(33): _group_tensors_by_device_and_dtype", |_| {});
            script.op("aten::_foreach_norm", &format!("{list} =2 -"), |script| {
                (0..kernels).for_each(|_| script.launch("foreach_norm"));
            });
            script.op("aten::stack", "list(1) =0", |script| {
                script.op("aten::cat", "list(1) =0", |script| script.launch("cat_small"));
            });
            script.op("aten::linalg_vector_norm", "bf16[99] =2 - =False -", |script| script.launch("mean"));
        });
        script.op("aten::clamp", "bf16[] - =1", |script| script.launch("add_scalar"));
        script.op("aten::_foreach_mul_", &format!("{list} bf16[]"), |script| {
            (0..kernels).for_each(|_| script.launch("foreach_unary"));
        });
    });
}

fn update(script: &mut ScriptBuilder, parameters: usize, list: &str, kernels: usize) {
    script.python("torch/optim/lr_scheduler.py(133): wrapper", |script| {
        script.python("torch/optim/optimizer.py(474): wrapper", |script| {
            script.label("Optimizer.step#AdamW.step", String::new(), |script| {
                script.python("torch/optim/adam.py(213): step", |script| {
                    init_group(script, parameters);
                    script.python("torch/optim/adam.py(583): _multi_tensor_adam", |script| {
                        for (name, lists, scalar, kernel) in UPDATE {
                            let inputs = format!("{} {scalar}", vec![list; lists].join(" "));
                            script.python(
                                &format!("<built-in method {}>", name.trim_start_matches("aten::")),
                                |script| {
                                    script.op(name, &inputs, |script| {
                                        (0..kernels).for_each(|_| script.launch(kernel));
                                    });
                                },
                            );
                        }
                    });
                });
            });
        });
    });
}

/// Looks at every parameter, in Python.
fn init_group(script: &mut ScriptBuilder, parameters: usize) {
    script.python("torch/optim/adam.py(140): _init_group", |script| {
        for _ in 0..parameters {
            script.python_leaves(&["<built-in function is_complex>"]);
            script.python_leaves(&["<built-in method append of list object at 0x7d672e1ecec0>"; 2]);
            script.python("torch/_tensor.py(1115): __hash__", |script| {
                script.python_leaves(&["<built-in function id>"]);
            });
            script.python_leaves(&["<built-in method append of list object at 0x7d672e1ed1c0>"; 3]);
        }
    });
}

fn zero_gradients(script: &mut ScriptBuilder, parameters: usize) {
    script.python("torch/optim/optimizer.py(974): zero_grad", |script| {
        script.label("Optimizer.zero_grad#AdamW.zero_grad", String::new(), |script| {
            for _ in 0..parameters {
                script.give_back(Use::Gradient);
            }
        });
    });
}
