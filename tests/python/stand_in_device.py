"""A device that PyTorch can initialise where there is none: lines at the beginning of a program."""

DEVICE = """
import sys
import torch

torch._C._cuda_init = lambda: None
own = [call for call in torch.cuda._queued_calls if not call[0].__module__.startswith("torch")]
torch.cuda._queued_calls[:] = own  # PyTorch's would ask the device what it is able to.
torch.cuda.synchronize = lambda device=None: None
torch.cuda.is_current_stream_capturing = lambda: False
"""
