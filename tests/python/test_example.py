"""The example trains: its loss falls."""

import re

import pytest
import runs


@pytest.mark.slow
def test_the_loss_falls(checkout, python):
    train = [checkout / "examples" / "gpt" / "train.py", "--steps", 16, "--device", "cpu"]
    printed = python(*train, env=runs.environment()).stdout
    losses = [float(loss) for loss in re.findall(r"loss (\d+\.\d+)", printed)]
    assert losses[-1] < losses[0] - 1.0, printed
