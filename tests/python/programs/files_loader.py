"""Trains on samples that each lie in a file of their own, read by two workers of a DataLoader: `files_loader.py STEPS`."""

import sys
import tempfile
from pathlib import Path

import torch


class Files(torch.utils.data.Dataset):
    """One sample a file."""

    def __init__(self, folder, count):
        self.paths = [folder / f"sample_{at:03}.bin" for at in range(count)]
        for path in self.paths:
            path.write_bytes(torch.rand(64).numpy().tobytes())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, at):
        return torch.frombuffer(bytearray(self.paths[at].read_bytes()), dtype=torch.float32)


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = torch.nn.Linear(64, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        samples = Files(Path(folder), 4 * int(sys.argv[1]))
        for batch in torch.utils.data.DataLoader(samples, batch_size=4, num_workers=2):
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
