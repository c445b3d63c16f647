"""How long a run of many ranks takes to open from an object store: a new process each time, with nothing in its cache.

Run by ``cargo xtask bench stores``. The traces of a job are generated once and put into an S3 server on loopback, which
``stores/server.py`` is. The first reader makes their summaries and keeps them there; each row behind it is a reader who finds
them. A server whose answers take as long as those of a store that is far away takes part in turn: ``--delay-ms``.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

SERVER = Path(__file__).resolve().parent / "stores" / "server.py"
JOB = "s3://runs/job"
REPORT = ["report", JOB]
COMMANDS = {
    "report": REPORT,
    "ranks_overview": ["analyze", "ranks_overview", JOB],
    "stragglers": ["analyze", "stragglers", JOB],
}
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=3, help="of each trace, of six collectives each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--delay-ms", default="0,30", help="how much later answers come")
    arguments = parser.parse_args()
    folder = Path(os.environ.get("STEPSCOPE_BENCH", "target/bench")) / "stores"
    traces = made(folder, arguments.ranks, arguments.steps)
    print(f"{'':32} {'median s':>9} {'least':>7} {'most':>7} {'CPU s':>7}  asked for")
    for delay_ms in map(float, arguments.delay_ms.split(",")):
        with served(delay_ms) as address:
            put(address, traces)
            print(line(f"{delay_ms:.0f} ms: the first report", address, REPORT, 1), flush=True)
            for name, command in COMMANDS.items():
                print(line(f"{delay_ms:.0f} ms: {name}", address, command, arguments.rounds), flush=True)
    print(f"{os.cpu_count()} processors, {platform.processor() or platform.machine()}, Linux {platform.release()}")


def made(folder, ranks, steps):
    """The traces of a job, made once."""
    traces = folder / f"traces-{ranks}-{steps}"
    if not traces.exists():
        program = os.environ["STEPSCOPE_BENCH_PROGRAM"]
        folder.mkdir(parents=True, exist_ok=True)
        sizes = ["--linear", str(ranks), "--steps", str(steps)]
        command = [program, "ranks", "--only", "linear", *sizes, "--keep", "--folder", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        # Kept where the program has opened them; those of objects are others.
        shutil.rmtree(folder / "linear" / ".stepscope", ignore_errors=True)
        (folder / "linear").rename(traces)
    files = [path for path in traces.iterdir() if path.is_file()]
    print(f"{len(files):,} traces, {sum(path.stat().st_size for path in files) / 1e6:.0f} MB")
    return traces


@contextlib.contextmanager
def served(delay_ms):
    with subprocess.Popen(
        [sys.executable, SERVER, "--delay-ms", str(delay_ms)], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def request(url, **options):
    # Without the proxy that there may be for the world outside.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, **options)) as answer:
        return answer.read()


def put(address, traces):
    paths = [path for path in traces.iterdir() if path.is_file()]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        sent = (
            threads.submit(request, f"{address}/runs/job/{path.name}", data=path.read_bytes(), method="PUT")
            for path in paths
        )
        for each in [*sent]:
            each.result()


def line(name, address, command, count):
    """A row: how long a command takes in new processes, and what each of them asks the store for."""
    rounds = []
    for _ in range(count):
        request(f"{address}/asked")
        rounds.append(opened(address, command))
        asked = json.loads(request(f"{address}/asked"))
    walls, cpus = zip(*rounds)
    numbers = (statistics.median(walls), min(walls), max(walls), statistics.median(cpus))
    sent = asked.pop("bytes")
    asked = ", ".join(f"{number:,} {method}" for method, number in sorted(asked.items()))
    times = f"{numbers[0]:9.2f} {numbers[1]:7.2f} {numbers[2]:7.2f} {numbers[3]:7.2f}"
    return f"{name:32} {times}  {asked}: {sent / 1e6:.1f} MB"


def opened(address, command):
    """The seconds that a new process takes, and those of its processors."""
    program = os.environ.get("STEPSCOPE") or Path(sys.executable).with_name("stepscope")
    with tempfile.TemporaryDirectory() as cache:
        here = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "AWS_ENDPOINT_URL": address, "XDG_CACHE_HOME": cache}
        start, before = time.perf_counter(), os.times()
        done = subprocess.run([program, *command], capture_output=True, text=True, env={**os.environ, **KEYS, **here})
        wall_s, after = time.perf_counter() - start, os.times()
    if done.returncode:
        raise SystemExit(done.stderr)
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return wall_s, cpu_s


if __name__ == "__main__":
    main()
