"""Prints work.tsv: operators, inputs as a trace writes them, operations, and bytes as PyTorch's own results have them.

    python crates/analyses/src/flops/work.py > crates/analyses/src/flops/work.tsv

Written with PyTorch 2.13.0 on the meta device, which computes shapes only. Bytes are those of every input and of every
result, told by the tensors themselves; inputs of which only the shape matters are left out by name. Operations are by
hand, from the results' sizes, or by `torch.utils.flop_counter`.
"""

import json
from math import prod

import torch
from torch.utils.flop_counter import FlopCounterMode

aten = torch.ops.aten
TYPES = {
    torch.float32: "float",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.int64: "long int",
    torch.int32: "int",
    torch.int8: "signed char",
    torch.bool: "bool",
    torch.float8_e4m3fn: "c10::Float8_e4m3fn",
}
SCALAR_TYPES = {torch.bfloat16: 15, torch.float16: 5, torch.float32: 6}


def meta(*shape, dtype=torch.float32):
    return torch.empty(*shape, dtype=dtype, device="meta")


def is_tensors(value):
    return isinstance(value, (list, tuple)) and len(value) > 0 and isinstance(value[0], torch.Tensor)


def dims(value):
    if isinstance(value, torch.Tensor):
        return list(value.shape)
    return [list(tensor.shape) for tensor in value] if is_tensors(value) else []


def type_name(value):
    if isinstance(value, torch.Tensor):
        return TYPES[value.dtype]
    return "TensorList" if is_tensors(value) else "" if value is None else "Scalar"


def text(value):
    if value is None or isinstance(value, torch.Tensor) or is_tensors(value):
        return ""
    return str(SCALAR_TYPES[value] if isinstance(value, torch.dtype) else value)


def size(value):
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    return sum(map(size, value)) if isinstance(value, (list, tuple)) else 0


def row(name, arguments, flops, results, not_read=()):
    """`flops` may be a function of the first result."""
    first = results[0] if isinstance(results, (list, tuple)) else results
    flops = flops(first) if callable(flops) else flops
    cells = ([convert(argument) for argument in arguments] for convert in (dims, type_name, text))
    read = sum(size(argument) for at, argument in enumerate(arguments) if at not in not_read)
    cells = (json.dumps(cell, separators=(",", ":")) for cell in cells)
    print(f"aten::{name}", *cells, flops, read + size(results), sep="\t")


def call(name, *arguments, flops, overload="default", not_read=()):
    operator = getattr(getattr(aten, name), overload)
    by_name = [argument.name if argument.kwarg_only else None for argument in operator._schema.arguments]
    plain = [value for value, name in zip(arguments, by_name) if not name]
    results = operator(*plain, **{name: value for value, name in zip(arguments, by_name) if name})
    row(name, arguments, flops, results, not_read)


def counted(function):
    mode = FlopCounterMode(display=False)
    with mode:
        function()
    return mode.get_total_flops()


def products():
    half = torch.bfloat16
    a, b = meta(64, 128, dtype=half), meta(128, 256, dtype=half)
    call("mm", a, b, flops=counted(lambda: a @ b))
    call("addmm", meta(256, dtype=half), a, b, 1, 1, flops=counted(lambda: a @ b))
    batch = meta(8, 64, 32), meta(8, 32, 48)
    call("baddbmm", meta(8, 64, 48), *batch, 1, 1, flops=counted(lambda: torch.bmm(*batch)))
    # A linear layer is composite on this device: its result by hand.
    row("linear", [a, meta(256, 128, dtype=half), meta(256, dtype=half)], 2 * 64 * 128 * 256, meta(64, 256, dtype=half))
    eight = meta(64, 128, dtype=torch.float8_e4m3fn), meta(256, 128, dtype=torch.float8_e4m3fn).t()
    scaled = [*eight, meta(()), meta(()), meta(256, dtype=half), None, torch.bfloat16]
    row("_scaled_mm", scaled, 2 * 64 * 128 * 256, meta(64, 256, dtype=half), not_read=(2, 3))


def grouped_products():
    half, offsets = torch.bfloat16, meta(4, dtype=torch.int32)
    one = 2 * 64 * 32 * 48
    rows, columns = meta(64, 32, dtype=half), meta(32, 48, dtype=half)
    row("_grouped_mm", [rows, meta(4, 32, 48, dtype=half), offsets, None, None], one, meta(64, 48, dtype=half))
    row("_grouped_mm", [meta(4, 64, 32, dtype=half), columns, offsets, None, None], one, meta(64, 48, dtype=half))
    row("_grouped_mm", [rows, columns, offsets, None, None], one, meta(4, 64, 48, dtype=half))
    each = meta(4, 64, 32, dtype=half), meta(4, 32, 48, dtype=half)
    row("_grouped_mm", [*each, None, None, torch.float32], counted(lambda: torch.bmm(*each)), meta(4, 64, 48))


def transposed_convolutions():
    x, weight = meta(8, 64, 14, 14), meta(64, 32, 4, 4)
    arguments = None, [2, 2], [1, 1], [1, 1], True, [1, 1], 2
    flops = counted(lambda: aten.convolution(x, weight, *arguments))
    call("convolution", x, weight, *arguments, flops=flops)
    result = aten.convolution(x, weight, *arguments)
    cudnn = [x, weight, [1, 1], [1, 1], [2, 2], [1, 1], 2, False, False, True]
    row("cudnn_convolution_transpose", cudnn, flops, result)
    row("miopen_convolution_transpose", [x, weight, meta(64), *cudnn[2:9]], flops, result)
    call("convolution", meta(2, 3, 9, 9), meta(4, 3, 3, 3), meta(4), [1, 1], [0, 0], [1, 1], False, [0, 0], 1,
         flops=2 * 2 * 4 * 27 * 49)


def pooling():
    x, half = meta(2, 3, 17, 20), meta(3, 17, 20, dtype=torch.float16)
    for case in ([3, 3], [2, 2], [1, 1], [1, 1], False), ([3, 3], [2, 2], [1, 1], [1, 1], True), \
            ([2], [], [0], [1], False), ([2, 3], [3, 2], [0, 1], [2, 1], True), ([4, 4], [4, 4], [2, 2], [1, 1], True):
        window = prod(case[0]) ** (2 if len(case[0]) == 1 else 1)
        for tensor in x, half:
            call("max_pool2d_with_indices", tensor, *case, flops=lambda result: window * result.numel())
            average = case[0], case[1], case[2], case[4], True, None
            call("avg_pool2d", tensor, *average, flops=lambda result: window * result.numel())
        results = aten.max_pool2d_with_indices(x, *case)
        grads = torch.empty_like(results[0]), x, *case, results[1]
        call("max_pool2d_with_indices_backward", *grads, flops=results[0].numel(), not_read=(1,))
        result = aten.avg_pool2d(x, *average)
        grads = torch.empty_like(result), x, average[0], average[1] or average[0], *average[2:]
        call("avg_pool2d_backward", *grads, flops=window * result.numel(), not_read=(1,))
    volume = meta(2, 3, 9, 10, 11)
    call("max_pool3d_with_indices", volume, [2, 3, 2], [2, 2, 2], [1, 1, 1], [1, 1, 1], True,
         flops=lambda result: 12 * result.numel())
    call("_adaptive_avg_pool2d", meta(2, 3, 12, 8), [3, 4], flops=2 * 3 * 12 * 8)
    # Windows of 7 into 3 reach over 0..3, 2..5 and 4..7: nine elements.
    call("_adaptive_avg_pool2d", meta(2, 3, 7, 8), [3, 8], flops=2 * 3 * 9 * 8)
    call("_adaptive_avg_pool2d_backward", meta(2, 3, 3, 8), meta(2, 3, 7, 8), flops=2 * 3 * 9 * 8, not_read=(1,))


def interpolation():
    x = meta(2, 3, 8, 10)
    call("upsample_nearest2d", x, [16, 20], None, None, flops=0)
    call("upsample_bilinear2d", x, [13, 17], False, None, None, flops=lambda result: 8 * result.numel())
    call("upsample_bicubic2d", x, [16, 20], True, None, None, flops=lambda result: 32 * result.numel())
    call("upsample_trilinear3d", meta(1, 2, 4, 4, 4), [8, 8, 8], False, None, None, None,
         flops=lambda result: 16 * result.numel())
    grad = meta(2, 3, 16, 20)
    call("upsample_nearest2d_backward", grad, [16, 20], [2, 3, 8, 10], None, None, flops=grad.numel())
    call("upsample_bilinear2d_backward", grad, [16, 20], [2, 3, 8, 10], False, None, None, flops=8 * grad.numel())


def losses():
    x, target, each = meta(32, 10), meta(32, 10), 320
    call("mse_loss", x, target, 1, flops=3 * each)
    call("mse_loss", x, target, 0, flops=2 * each)
    call("smooth_l1_loss", x, target, 2, 1.0, flops=5 * each)
    call("binary_cross_entropy", x, target, meta(32, 10), 1, flops=9 * each)
    call("mse_loss_backward", meta(()), x, target, 1, flops=3 * each)
    call("binary_cross_entropy_backward", meta(()), x, target, None, 1, flops=5 * each)


def normalizations():
    x, stat = meta(4, 16, 128, dtype=torch.bfloat16), meta(4, 16, 1)
    weight, bias = meta(128, dtype=torch.bfloat16), meta(128, dtype=torch.bfloat16)
    for mask in [True, True, True], [True, False, False], [False, True, True]:
        layer = x, x, [128], stat, stat, weight, bias, mask
        written = [grad for grad, is_asked in zip((x, weight, bias), mask) if is_asked]
        row("native_layer_norm_backward", layer, 10 * x.numel(), written, not_read=(6,))
    image, channel = meta(8, 16, 5, 5), meta(16)
    batch = image, image, channel, channel, channel, channel, channel, True, 1e-5, [True, True, True]
    call("native_batch_norm_backward", *batch, flops=10 * image.numel())


def orders():
    x = meta(6, 40, 5, dtype=torch.float16)
    call("sort", x, 1, False, flops=0)
    call("topk", x, 7, 1, True, True, flops=0)
    call("topk", x, 2, -1, True, True, flops=0)
    call("flip", x, [0], flops=0)
    call("cumsum", meta(6, 40), 1, None, flops=240)


def look_ups():
    x, index = meta(20, 30), meta(5, 30, dtype=torch.int64)
    call("scatter", x, 0, index, meta(5, 30), overload="src", flops=0)
    call("scatter_add", x, 0, index, meta(5, 30), flops=150)
    call("scatter", x, 0, index, 1.0, overload="value", flops=0)
    rows = meta(7, dtype=torch.int64)
    call("index_add", x, 0, rows, meta(7, 30), 1, flops=210)
    # In place, only what is written moves; a sum is read first.
    row("scatter_", [x, 0, index, meta(5, 30)], 0, meta(5, 30), not_read=(0,))
    row("scatter_add_", [x, 0, index, meta(5, 30)], 150, [meta(5, 30), meta(5, 30)], not_read=(0,))
    row("index_copy_", [x, 0, rows, meta(7, 30)], 0, meta(7, 30), not_read=(0,))
    # As much is read as is written.
    row("index_select", [x, 1, rows], 0, [meta(20, 7), meta(20, 7)], not_read=(0,))
    offsets = meta(4, dtype=torch.int64)
    bag = [x, rows, offsets, False, 0, False, None, False, -1]
    row("_embedding_bag", bag, 7 * 30, [meta(7, 30), meta(4, 30)], not_read=(0,))
    bag[7] = True
    row("_embedding_bag", bag, 7 * 30, [meta(7, 30), meta(3, 30)], not_read=(0,))


def recurrent():
    """Operations as counted in the products that a network is made of where no library has it in one."""
    steps, batch, inputs, hidden = 7, 3, 10, 16
    for layers, is_bidirectional, projected in (1, False, 0), (2, False, 0), (2, True, 0), (1, True, 8):
        network = torch.nn.LSTM(inputs, hidden, layers, bidirectional=is_bidirectional, proj_size=projected)
        x = torch.zeros(steps, batch, inputs)
        with torch.backends.mkldnn.flags(enabled=False), torch.no_grad():
            flops = counted(lambda: network(x))
            output, states = network(x)
        weights = [parameter.detach() for parameter in network.parameters()]
        rest = layers, False, 0.0, True, is_bidirectional, [], None
        arguments = [x, weights, 4, None, *states, 2, hidden, projected, *rest]
        row("_cudnn_rnn", arguments, flops, [output, *states])
        if projected == 0:
            row("miopen_rnn", [*arguments[:3], *states, 2, hidden, *rest], flops, [output, *states])
        buffer = torch.zeros(sum(weight.numel() for weight in weights))
        grads = [*arguments[:3], buffer, *states, output, output, *states, *arguments[6:15], None, torch.zeros(100)]
        for is_of_weights in True, False:
            mask = [True, True, True, is_of_weights]
            written = [x, *states, *([buffer] if is_of_weights else [])]
            row("_cudnn_rnn_backward", [*grads, mask], flops * (1 + is_of_weights), written, not_read=(1,))
    cell = meta(8, 64), meta(8, 64), meta(8, 16), None, None
    row("_thnn_fused_lstm_cell", cell, 22 * 128, [meta(8, 16), meta(8, 16), meta(8, 64)])
    cell = meta(8, 48), meta(8, 48), meta(8, 16), None, None
    row("_thnn_fused_gru_cell", cell, 16 * 128, [meta(8, 16), meta(8, 80)])


def packed_attention():
    """Three sequences of 128 queries and 256 keys, laid one behind the other."""
    half = torch.bfloat16
    query, key, value = meta(384, 8, 64, dtype=half), meta(768, 2, 64, dtype=half), meta(768, 2, 32, dtype=half)
    lengths, result = meta(4, dtype=torch.int32), meta(384, 8, 32, dtype=half)
    flops = 3 * 8 * 2 * 128 * 256 * (64 + 32)
    packed = [query, key, value, lengths, lengths, 128, 256, 0.0, False, False]
    row("_flash_attention_forward", packed, flops, result, not_read=(4,))
    packed = [query[None], key[None], value[None], None, lengths, lengths, 128, 256, 0.0, 0]
    row("_efficient_attention_forward", packed, flops, result, not_read=(4, 5))
    grads = [result, query, key, value, result, None, lengths, lengths, 128, 256, 0.0, False]
    flops = 3 * 8 * 2 * 128 * 256 * (3 * 64 + 2 * 32)
    row("_flash_attention_backward", grads, flops, [query, key, value], not_read=(6, 7))


def optimizers():
    """Bytes are unknown: a trace does not say what lists of tensors hold."""
    tensors = [meta(30, 20), meta(20)]
    for name, flops in ("_fused_adam_", 13), ("_fused_adamw_", 14), ("_fused_sgd_", 4), ("_fused_adagrad_", 7):
        cells = ([convert(argument) for argument in [tensors] * 3] for convert in (dims, type_name, text))
        print(f"aten::{name}", *(json.dumps(cell, separators=(",", ":")) for cell in cells), flops * 620, "-", sep="\t")


products()
grouped_products()
transposed_convolutions()
pooling()
interpolation()
losses()
normalizations()
orders()
look_ups()
recurrent()
packed_attention()
optimizers()
