"""The example trains: its loss falls."""

import re

import pytest


@pytest.mark.slow
def test_the_loss_falls(checkout, python):
    printed = python(checkout / "examples" / "gpt" / "train.py", "--steps", 30, "--device", "cpu").stdout
    losses = [float(loss) for loss in re.findall(r"loss (\d+\.\d+)", printed)]
    assert losses[-1] < losses[0] - 1.0, printed
