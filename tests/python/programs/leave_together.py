"""The end of a job of several ranks: nobody leaves before all have done everything.

A process may abort in gloo whose peer closes its connections meanwhile, or that keeps a group until Python itself ends.
So programs drop what holds a group, such as a wrapped model, and call this last.
"""

import torch.distributed as distributed


def leave_together():
    """Destroys the process group once every rank is here."""
    store = distributed.distributed_c10d._get_default_store()
    # A barrier of gloo may be over for one rank while another is still in it; the store is nobody's connection.
    if store.add("stepscope: here at the end", 1) == distributed.get_world_size():
        store.set("stepscope: all are here", "yes")
    store.wait(["stepscope: all are here"])
    distributed.destroy_process_group()
