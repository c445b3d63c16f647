"""CUDA graphs: two are captured once and replayed, one of them twice a step."""

from contextlib import contextmanager

from gpu.workloads import Unavailable

STEPS = 5
EXPECTED = ("kernels", "durations", "launch shapes", "graph nodes", "streams", "calls", "clock")


@contextmanager
def ready(torch, device):
    if device != "cuda":
        raise Unavailable("CUDA graphs need a GPU")
    torch.manual_seed(0)
    weights = torch.randn(256, 256, device=device)
    x = torch.randn(256, 256, device=device)

    def long():
        y = x
        for _ in range(5):
            y = torch.relu(y @ weights)
        return y

    def short():
        return (x + 1).mul(2)

    graphs = [_captured(torch, work) for work in (long, short)]

    def step():
        graphs[0].replay()
        graphs[1].replay()
        graphs[1].replay()

    yield step


def _captured(torch, work):
    # Libraries choose their workspaces in calls that are not captured.
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        work()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        # Kept with the graph: a replay writes there.
        graph.result = work()
    return graph
