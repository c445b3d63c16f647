"""Which rank the others wait for: a job of two ranks of Gloo, one of which is late each time."""

import runs

TIMES = 10
PROGRAM = f"""
import os, sys, time, torch, torch.distributed as dist
begun = os.pipe()
child = os.fork()
rank = int(child == 0)
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
values = torch.ones(1000)
for _ in range({TIMES}):
    if rank == 0:
        os.write(begun[1], b".")
    else:
        # The other one has come: from then on it waits.
        os.read(begun[0], 1)
        time.sleep(0.05)
    dist.all_reduce(values)
dist.destroy_process_group()
if rank == 0:
    os.waitpid(child, 0)
"""


def test_the_rank_that_comes_late_is_the_one_that_holds_the_other_up(tmp_path):
    run = tmp_path / "run"
    runs.record(run, runs.script(PROGRAM, tmp_path / "store"))
    late, waiting = runs.analyze("stragglers", run)["results"]
    assert (late["rank"], waiting["rank"]) == (1, 0)
    for row in (late, waiting):
        assert (row["ranks"], row["calls"]) == (2, TIMES)
        assert row["total_ns"] == row["transfer_ns"] + row["waiting_ns"]
    # On a busy machine the other rank can be late too, but not by as much in all.
    assert late["held_up_ns"] > waiting["held_up_ns"] and late["last_calls"] > TIMES / 2
    # Of two ranks, what one holds the other up is what the other waits.
    assert late["held_up_ns"] == waiting["waiting_ns"] and waiting["held_up_ns"] == late["waiting_ns"]
    (alone,) = runs.analyze("stragglers", run, "--rank", "0")["results"]
    assert alone == waiting
