"""The same calls under torch.profiler and under Stepscope, with inputs of every kind; prints torch.profiler's FLOPs.

Usage: shapes.py FOLDER. Writes FOLDER/torch.json and FOLDER/torch-keywords.json, records FOLDER/run and
FOLDER/run-keywords.
"""

import json
import sys
import warnings

import torch
import torch.nn.functional as F
from stepscope.profiler import profile
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

warnings.simplefilter("ignore")
torch.set_num_threads(1)

DTYPES = [
    dtype for dtype in vars(torch).values() if isinstance(dtype, torch.dtype) and not str(dtype).startswith("torch.q")
]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 16)
        self.attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)
        self.convolution = torch.nn.Conv2d(1, 4, 3, padding=1, stride=2)
        self.norm = torch.nn.BatchNorm2d(4)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(96, 32), torch.nn.GELU(), torch.nn.Linear(32, 50))

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        x = self.norm(self.convolution(x.unsqueeze(1)))
        return self.mlp(F.dropout(x.flatten(1)[:, :96], 0.1))


def train():
    torch.manual_seed(0)
    model = Model()
    adam, sgd = torch.optim.AdamW(model.parameters(), foreach=True), torch.optim.SGD(model.parameters(), foreach=False)
    tokens = torch.randint(0, 50, (3, 12))
    scores = model(tokens)
    loss = F.cross_entropy(scores, tokens[:, 0]) + F.mse_loss(scores, torch.zeros_like(scores)) * 0.5
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in (adam, sgd):
        optimizer.step()
        optimizer.zero_grad()


def scalars():
    for value in (1.5, 0.1, -0.0, 1e10, 1e300, 5e-324, float("nan"), float("-inf"), 2**62, -1, True, 1 - 0.1j):
        torch.full((2, 3), value, dtype=torch.complex128)
    torch.arange(0, 10, 3, dtype=torch.int16, device="cpu")
    torch.linspace(0, 1, 5)


def lists():
    x = torch.ones(2, 3)
    torch.cat([x, x.t().contiguous().view(2, 3)], 1)
    torch.stack([x, x], dim=-1)
    torch._foreach_add([x, x.t(), torch.tensor(1.0)], 2.0)
    torch._foreach_mul([x, x.t()], [2.0, 3.0])
    x[torch.tensor([0, 1]), None, :2]
    x[:, None]
    torch.split(x, [1, 1])
    torch.sum(x, dim=[])
    torch.zeros([1] * 31).reshape([1] * 30)
    F.pad(x, (1, 0, 2, 3), mode="constant", value=None)
    F.interpolate(x[None, None], scale_factor=(2.0, 1.5), mode="bilinear")
    torch.einsum("ij,ij->i", x, x)
    torch.div(x, 2, rounding_mode="floor")


def views():
    x = torch.arange(720.0).view(1, 2, 3, 4, 5, 6)
    x.permute(5, 3, 1, 0, 2, 4)[::2, 1:, ..., 2].add(1)
    x[0, 0, 0].expand(7, 4, 5, 6).sum()
    torch.as_strided(x, (3, 3), (1, 0), 2).mul(2)
    torch.empty(0, 4).sum()
    torch.tensor(3.0).neg()


def types():
    for dtype in DTYPES:
        torch.empty(2, dtype=dtype).view(-1)
    torch.ones(2, 3, dtype=torch.bfloat16) @ torch.ones(3, 2, dtype=torch.bfloat16)
    torch.ones(3, dtype=torch.complex64).conj().mul(1j)
    torch.ones(3, dtype=torch.uint8).to(torch.half, non_blocking=True, copy=True).eq(1)
    torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8).dequantize()


def odd_tensors():
    """Those without strides, or whose sizes do not stand in the tensor."""
    x = torch.eye(3)
    x.to_sparse().add(x.to_sparse()).to_dense()
    x.to_sparse_csr().to_dense()
    if torch.backends.mkldnn.is_available():
        x.to_mkldnn().relu().to_dense()
    torch.empty(3, 2, device="meta").add(1)
    torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]).mul(2)
    torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged).mul(2)
    torch.vmap(lambda row: row.mul(2).sum())(x)
    F.conv2d(x[None, None], torch.ones(1, 1, 2, 2), None)
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        mode.from_tensor(torch.ones(6, 4), symbolic_context=SYMBOLIC).add(1)
        torch.empty(2, 3).add(1)
    make_functional(x)


def make_functional(x):
    """A wrapper that keeps its sizes in the tensor that it wraps."""
    torch._enable_functionalization(reapply_views=True)
    try:
        torch._to_functional_tensor(x).add(1)
    finally:
        torch._disable_functionalization()


def ranges():
    with torch.profiler.record_function("with arguments", "1, 2"):
        pass
    with torch.profiler.record_function("without"):
        pass


def products():
    train()
    x = torch.ones(4, 6, dtype=torch.bfloat16)
    (x @ x.t() + 1).mul(x[:, :4])
    torch.addmm(torch.ones(3), torch.ones(2, 4), torch.ones(4, 3), beta=2, alpha=3)
    torch.bmm(torch.ones(5, 2, 3), torch.ones(5, 3, 4))
    torch.baddbmm(torch.ones(5, 1, 4), torch.ones(5, 2, 3), torch.ones(5, 3, 4))
    F.conv2d(torch.ones(2, 4, 9, 9), torch.ones(6, 2, 3, 3), stride=2, padding=1, dilation=2, groups=2)


def everything():
    for part in (train, scalars, lists, views, types, odd_tensors, ranges):
        part()


def keywords():
    """A range as compiled kernels have it; PyTorch only tells of these while its own profiler runs."""
    values = {"stream": 0, "grid": "grid(1,)", "kernel_file": "a.py", "ok": True, "names": ["a", "b"], "share": 1.5}
    values.update({"a name that is longer than others": "and so is what it stands for", "quoted": 'a"b'})
    with torch._C._profiler._RecordFunctionFast("fused", [torch.ones(2, 3), 1, [torch.ones(1)]], values):
        pass


def under_torch(part, path):
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True, with_flops=True) as prof:
        part()
    prof.export_chrome_trace(path)
    return {average.key: average.flops for average in prof.key_averages() if average.flops}


SYMBOLIC = StatelessSymbolicContext([DimDynamic.DYNAMIC, DimDynamic.STATIC])
folder = sys.argv[1]
everything()
everything()
under_torch(everything, f"{folder}/torch.json")
flops = under_torch(products, f"{folder}/torch-flops.json")
with profile(run=f"{folder}/run", record_shapes=True):
    everything()
with profile(run=f"{folder}/run-flops", with_flops=True):
    products()
with profile(run=f"{folder}/run-keywords", record_shapes=True):
    under_torch(keywords, f"{folder}/torch-keywords.json")
print(json.dumps(flops))
