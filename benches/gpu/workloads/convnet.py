"""A training step of a small residual network: convolutions, batch norm, SGD with momentum."""

from contextlib import contextmanager

STEPS = 5
EXPECTED = (
    "ops",
    "kernels",
    "durations",
    "launch shapes",
    "occupancy",
    "launching ops",
    "streams",
    "calls",
    "clock",
    "devices",
)


@contextmanager
def ready(torch, device):
    torch.manual_seed(0)
    # The search for the fastest algorithm could end differently in each process.
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    model = _network(torch).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(16, 3, 32, 32, device=device)
    classes = torch.randint(10, (16,), device=device)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), classes).backward()
        optimizer.step()

    yield step


def _network(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
            self.first_norm = nn.BatchNorm2d(width)
            self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
            self.second_norm = nn.BatchNorm2d(width)

        def forward(self, x):
            inside = torch.relu(self.first_norm(self.first(x)))
            return torch.relu(x + self.second_norm(self.second(inside)))

    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        *(Block(32) for _ in range(4)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
