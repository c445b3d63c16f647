"""torch.profiler is the oracle: of the same calls, Stepscope records the same dims, types, strides and values."""

import json
from collections import Counter
from types import SimpleNamespace

import pytest
import runs

LISTS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
# What either profiler writes beside inputs.
OTHERS = ("External id", "Record function id", "Ev Idx", "Sequence number", "Fwd thread id", "Stepscope")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes")
    flops = json.loads(runs.execute(*runs.program("shapes.py", folder)).stdout)
    return SimpleNamespace(folder=folder, run=folder / "run", flops=flops)


def slices(trace):
    """The operators and labels of a trace in Chrome's format: (name, the four lists, inputs with names)."""
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    for event in events:
        if event.get("ph") == "X" and event.get("cat") in ("cpu_op", "user_annotation"):
            arguments = event["args"]
            keywords = {key: value for key, value in arguments.items() if key not in (*LISTS, *OTHERS)}
            yield (
                event["name"],
                *(json.dumps(arguments.get(key)) for key in LISTS),
                json.dumps(keywords, sort_keys=True),
            )


def ours(run):
    """The slices of a run as Stepscope exports them."""
    trace = run.with_name(run.name + ".json")
    runs.stepscope("convert", run, "-o", trace, "--force")
    return Counter(slices(trace))


def test_the_same_inputs_as_often(recorded):
    theirs, found = Counter(slices(recorded.folder / "torch.json")), ours(recorded.run)
    assert sum(theirs.values()) > 2000
    assert len({dims for _, dims, *_ in theirs}) > 250
    # A tensor of functionalization wraps the one that has the sizes: only its own function could tell them.
    inside = ("aten::add", "[[3, 3], [], []]", '["float", "long int", "Scalar"]', "[[3, 1], [], []]")
    wrapper = ("aten::add", "[[], [], []]", '["", "long int", "Scalar"]', "[[], [], []]")
    behind = ('["", "", "1"]', "{}")
    assert theirs - found == Counter([(*inside, *behind)])
    assert found - theirs == Counter([(*wrapper, *behind)])


def test_inputs_of_every_kind_were_compared(recorded):
    """The oracle's own output has what this test is about."""
    theirs = list(slices(recorded.folder / "torch.json"))
    types = {name for slice_ in theirs for name in json.loads(slice_[2]) or ()}
    assert {"", "Scalar", "ScalarList", "TensorList", "c10::BFloat16", "c10::complex<float>", "c10::quint8"} <= types
    assert {"bool", "unsigned char", "c10::Half", "c10::Float8_e4m3fn", "long unsigned int"} <= types
    values = {value for slice_ in theirs for value in json.loads(slice_[4]) or ()}
    assert {"1.-0.10000000000000001j", "nan", "1.0000000000000001e+300", "True", "[]"} <= values


def test_inputs_with_names(recorded):
    theirs = Counter(slices(recorded.folder / "torch-keywords.json"))
    found = ours(recorded.folder / "run-keywords")
    (kernel,) = theirs - found
    (our_kernel,) = found - theirs
    assert (kernel[:-1], json.loads(kernel[-1])["quoted"]) == (our_kernel[:-1], "None")
    # torch.profiler leaves out texts with quotation marks.
    assert {**json.loads(kernel[-1]), "quoted": 'a"b'} == json.loads(our_kernel[-1])


def test_the_same_operations(recorded):
    rows = runs.analyze("operators", recorded.folder / "run-flops")["results"]
    found = {row["name"]: row["flops"] for row in rows if row["name"] in recorded.flops}
    # An operator inside one of its kind is counted with that one, and as one operation by torch.profiler, which looks at
    # its first input alone: here a number.
    pairs = runs.with_parents(runs.ops(recorded.folder / "run-flops"))
    inside = [row for parent, row in pairs if parent and (parent["name"], row["name"]) == ("aten::mul_", "aten::mul")]
    found["aten::mul"] += len(inside)
    assert found == recorded.flops
    assert {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::conv2d", "aten::add"} < set(found)


def test_rows_have_inputs_and_overloads(recorded):
    rows = runs.ops(recorded.run)
    (add,) = [row for row in runs.named(rows, "aten::_foreach_add") if row["overload"] == "Scalar"]
    inputs = json.loads(add["inputs"])
    assert inputs["dims"] == [[[2, 3], [3, 2], []], []]
    assert inputs["strides"] == [[[3, 1], [1, 3], []], []]
    assert (inputs["types"], inputs["concrete"]) == (["TensorList", "Scalar"], ["", "2."])
    (label,) = runs.named(rows, "without")
    assert (label["inputs"], label["overload"]) == (None, None)


def test_operators_are_grouped_by_their_shapes(recorded):
    rows = runs.analyze("operators", recorded.run, "--group-by", "shapes")["results"]
    counts = Counter(row["name"] for row in rows)
    assert counts["aten::addmm"] > 1


def test_without_the_option_nothing_is_known_of_inputs(tmp_path):
    run = tmp_path / "run"
    runs.record(run, runs.script("import torch; torch.ones(2) + 1"))
    rows = runs.ops(run)
    assert [row["inputs"] for row in rows] == [None] * len(rows)
    assert {row["overload"] for row in runs.named(rows, "aten::add")} == {"Tensor"}


def test_the_command_line_records_shapes_in_every_process(tmp_path):
    run = tmp_path / "run"
    program = (
        "import torch, os, threading\n"
        "work = lambda: torch.ones(2, 3).mul(torch.ones(3))\n"
        "work()\n"
        "thread = threading.Thread(target=work); thread.start(); thread.join()\n"
        "pid = os.fork()\n"
        "work()\n"
        "os.waitpid(pid, 0) if pid else None\n"
    )
    runs.stepscope("record", "--shapes", "-o", run, "--", *runs.script(program))
    products = runs.named(runs.ops(run), "aten::mul")
    assert {json.dumps(json.loads(row["inputs"])["dims"]) for row in products} == {"[[2, 3], [3]]"}
    assert (len(products), len({row["pid"] for row in products})) == (4, 2)


def test_inputs_that_cannot_be_proven_are_refused_and_the_rest_is_recorded(tmp_path):
    """A PyTorch whose values differ from what the probe passed."""
    run = tmp_path / "run"
    program = (
        "import sys, torch\n"
        "from stepscope import _shapes\n"
        "full = torch.full\n"
        "torch.full = lambda sizes, value, **options: full(sizes, 2.5 if value == 1.5 else value, **options)\n"
        "from stepscope.profiler import profile\n"
        "with profile(run=sys.argv[1], record_shapes=True):\n"
        "    torch.ones(2)\n"
    )
    result = runs.execute(*runs.script(program, run))
    assert "not recording shapes in process" in result.stderr
    rows = runs.named(runs.ops(run), "aten::ones")
    assert [row["inputs"] for row in rows] == [None]
    assert "shapes" in json.dumps(runs.findings(run)["capture.option_not_recorded"])


def test_no_tensor_is_kept(tmp_path):
    program = (
        "import sys, gc, weakref, torch\n"
        "from stepscope.profiler import profile\n"
        "with profile(run=sys.argv[1], record_shapes=True):\n"
        "    x = torch.ones(1000)\n"
        "    torch.stack([x, x])\n"
        "    seen = weakref.ref(x)\n"
        "    del x\n"
        "    assert seen() is None\n"
    )
    runs.execute(*runs.script(program, tmp_path / "run"))
