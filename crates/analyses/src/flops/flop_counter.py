"""Prints flop_counter.tsv: operators, inputs as a trace writes them, and what torch.utils.flop_counter counts.

    python crates/analyses/src/flops/flop_counter.py > crates/analyses/src/flops/flop_counter.tsv

Written with PyTorch 2.13.0. Everything runs on the meta device, which computes shapes only.
"""

import json

import torch
import torch.nn.functional as functional
from torch.utils.flop_counter import FlopCounterMode, flop_registry, sdpa_flop_count

aten = torch.ops.aten


def meta(*shape):
    return torch.empty(*shape, device="meta")


def counted(call):
    mode = FlopCounterMode(display=False)
    with mode:
        call()
    return mode.get_total_flops()


def row(name, dims, values, flops):
    print(f"aten::{name}", *(json.dumps(cell, separators=(",", ":")) for cell in (dims, values)), flops, sep="\t")


def products():
    a, b, batch_a, batch_b = [64, 128], [128, 256], [8, 64, 32], [8, 32, 48]
    row("mm", [a, b], [""] * 2, counted(lambda: torch.mm(meta(*a), meta(*b))))
    values = ["", "", "", "1", "1"]
    row("addmm", [[256], a, b, [], []], values, counted(lambda: torch.addmm(meta(256), meta(*a), meta(*b))))
    row("bmm", [batch_a, batch_b], [""] * 2, counted(lambda: torch.bmm(meta(*batch_a), meta(*batch_b))))
    flops = counted(lambda: torch.baddbmm(meta(8, 64, 48), meta(*batch_a), meta(*batch_b)))
    row("baddbmm", [[8, 64, 48], batch_a, batch_b, [], []], values, flops)
    flops = counted(lambda: functional.linear(meta(4, 16, 128), meta(256, 128), meta(256)))
    row("linear", [[4, 16, 128], [256, 128], [256]], [""] * 3, flops)


def convolutions(x, weight, stride, padding, dilation, transposed, output_padding, groups):
    def texts(*values):
        return [str(value) for value in values]

    rest = stride, padding, dilation, transposed, output_padding, groups
    flops = counted(lambda: aten.convolution(meta(*x), meta(*weight), None, *rest))
    row("convolution", [x, weight] + [[]] * 7, [""] * 3 + texts(*rest), flops)
    if not transposed:
        values = ["", "", *texts(padding, stride, dilation, groups, False, False, True)]
        row("cudnn_convolution", [x, weight] + [[]] * 7, values, flops)
        if len(x) == 4:
            row("conv2d", [x, weight] + [[]] * 5, [""] * 3 + texts(stride, padding, dilation, groups), flops)
    grad = list(aten.convolution(meta(*x), meta(*weight), None, *rest).shape)
    for mask in ([True, True, False], [False, True, True], [True, False, False]):
        tensors = meta(*grad), meta(*x), meta(*weight)
        flops = counted(lambda: aten.convolution_backward(*tensors, [0], *rest, mask))
        row("convolution_backward", [grad, x, weight] + [[]] * 8, [""] * 3 + texts([0], *rest, mask), flops)


def attention():
    query, key, value, grad = [2, 8, 128, 64], [2, 8, 256, 64], [2, 8, 256, 32], [2, 8, 128, 32]
    for kind in ("flash", "efficient", "cudnn"):
        name = f"_scaled_dot_product_{kind}_attention"
        shapes = [query, key, value]
        row(name, shapes, [""] * 3, flop_registry[getattr(aten, name)](*(meta(*s) for s in shapes), out_val=None))
        name, shapes = f"{name}_backward", [grad, *shapes]
        row(name, shapes, [""] * 4, flop_registry[getattr(aten, name)](*(meta(*s) for s in shapes), out_val=None))
    shapes = [query, [2, 2, 256, 64], [2, 2, 256, 64]]
    row("_scaled_dot_product_flash_attention", shapes, [""] * 3, sdpa_flop_count(*shapes))


products()
convolutions([32, 3, 224, 224], [64, 3, 7, 7], [2, 2], [3, 3], [1, 1], False, [0, 0], 1)
convolutions([8, 64, 56, 56], [128, 2, 3, 3], [1, 1], [1, 1], [1, 1], False, [0, 0], 32)
convolutions([8, 64, 28, 28], [64, 64, 3, 3], [1, 1], [2, 2], [2, 2], False, [0, 0], 1)
convolutions([4, 16, 100], [32, 16, 5], [3], [2], [1], False, [0], 1)
convolutions([2, 8, 10, 12, 14], [4, 8, 3, 3, 3], [1, 2, 1], [1, 0, 1], [1, 1, 1], False, [0, 0, 0], 1)
convolutions([8, 64, 14, 14], [64, 32, 4, 4], [2, 2], [1, 1], [1, 1], True, [0, 0], 1)
attention()
