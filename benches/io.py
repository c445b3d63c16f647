"""What recording calls on files costs: Stepscope and DFTracer in turn, against nothing.

Run by ``cargo xtask bench io``. A program in C makes one kind of call many times; each row is what one call takes, in ns of
wall time, the quickest of some rounds: without a recorder, recorded, and with a recorder that was told to leave the file out.
DFTracer takes part where ``--dftracer`` names a Python that has it.

With ``--epoch`` it is an epoch over as many JPEGs instead, decoded by four workers, which needs torchvision: not recorded,
recorded without files, as by default, and with ``--io``, in turn; each as a ratio to the one without files of its round.

With ``--summary`` DFTracer records four processes that read as many samples together, and what is timed is
``stepscope analyze io_summary`` of its folder.
"""

import argparse
import csv
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORKLOADS = {
    "pread, 0 bytes": ("pread0", 1),
    "pread, 1 byte": ("pread1", 1),
    "pread, 4 KiB": ("pread4096", 1),
    "pread, 1 byte, 4 threads": ("pread1", 4),
    "open, read, close": ("open", 1),
    "open, read, close, 4 threads": ("open", 4),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1_000_000, help="calls of a thread; a fifth as many opens")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dftracer", help="a Python that has dftracer")
    parser.add_argument("--epoch", type=int, metavar="IMAGES", help="measure an epoch over this number of images")
    parser.add_argument("--summary", type=int, metavar="SAMPLES", help="measure io_summary of a trace of DFTracer")
    arguments = parser.parse_args()
    if arguments.epoch:
        epochs(arguments)
        return
    if arguments.summary:
        summary(arguments)
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        program = folder / "calls"
        subprocess.run(["cc", "-O2", "-o", program, HERE / "io" / "calls.c", "-lpthread"], check=True)
        (folder / "data").mkdir()
        (folder / "data" / "file").write_bytes(bytes(1 << 20))
        print(f"{'ns a call':32} {'nothing':>9} {'recorded':>9} {'left out':>9} {'dftracer':>9}  longest 64 calls, ms")
        for name, (workload, threads) in WORKLOADS.items():
            calls = arguments.calls // (5 if workload == "open" else 1)
            command = [program, folder / "data" / "file", workload, str(threads), str(calls)]
            rounds = [measured(command, folder, arguments.dftracer) for _ in range(arguments.rounds)]
            print(line(name, rounds), flush=True)
    print(machine())


def machine():
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors, Linux {platform.release()}"


EPOCHS = {"without files": ["--no-io"], "default": [], "--io": ["--io"]}


def epochs(arguments):
    """Epochs over a folder of images, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        make_images(folder / "images", arguments.epoch)
        command = [sys.executable, HERE / "io" / "epoch.py", folder / "images", "4"]
        record = [Path(sys.executable).with_name("stepscope"), "record", "--output", folder / "run"]
        ways = {"not recorded": command}
        ways |= {way: [*record, *options, "--", *command] for way, options in EPOCHS.items()}
        rounds = []
        for at in range(arguments.rounds):
            # Each way comes first in turn: what comes first may find the processor cooler, or the cache colder.
            order = [*ways][at % len(ways) :] + [*ways][: at % len(ways)]
            results = {}
            for way in order:
                results[way] = epoch(ways[way])
                subprocess.run(["rm", "-rf", folder / "run"], check=True)
            rounds.append(results)
        print(
            f"{'':16} {'epoch, s':>9} {'CPU, s':>9}  ratio of wall time, of CPU time: median (half of the rounds lie between)"
        )
        for way in ways:
            medians = [statistics.median(results[way][at] for results in rounds) for at in range(2)]
            ratios = [[results[way][at] / results["without files"][at] for results in rounds] for at in range(2)]
            texts = [f"{statistics.median(of):.4f} ({' to '.join(map('{:.4f}'.format, half(of)))})" for of in ratios]
            print(f"{way:16} {medians[0]:9.3f} {medians[1]:9.3f}  {texts[0]}, {texts[1]}")
    print(machine())


def summary(arguments):
    """Summaries of one trace that DFTracer wrote: the seconds, CPU seconds and the most memory of each."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        program = folder / "many_files"
        subprocess.run(["cc", "-O2", "-o", program, HERE / "io" / "many_files.c"], check=True)
        (folder / "data").mkdir()
        (folder / "trace").mkdir()
        environment = os.environ | dftracer_environment(arguments.dftracer, folder)
        environment["DFTRACER_LOG_FILE"] = str(folder / "trace" / "t")
        words = [program, folder / "data", "4000", "4", str(arguments.summary // 4)]
        subprocess.run([*map(str, words)], env=environment, check=True)
        command = [str(Path(sys.executable).with_name("stepscope")), "analyze", "io_summary", folder / "trace", "--csv"]
        for at in range(arguments.rounds):
            start = time.perf_counter()
            child = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True)
            rows = list(csv.DictReader(child.stdout))
            _, status, usage = os.wait4(child.pid, 0)
            seconds = time.perf_counter() - start
            if status or not rows:
                raise SystemExit(f"{command}: status {status}")
            if at == 0:
                print(f"{rows[0]['count']} calls")
            cpu = usage.ru_utime + usage.ru_stime
            print(f"{seconds:.2f} s, CPU {cpu:.2f} s, {usage.ru_maxrss / 1024:.0f} MiB", flush=True)
    print(machine())


def half(values):
    """Between these lie the middle half of the values."""
    lower, _, upper = statistics.quantiles(values, n=4)
    return lower, upper


def make_images(folder, count):
    """JPEGs of 500 x 375 pixels, about 40 KB each, in ten classes."""
    from PIL import Image

    random.seed(0)
    for at in range(count):
        # Noise that is enlarged has detail, as a photograph does, but not in each pixel.
        noise = Image.frombytes("RGB", (125, 94), random.randbytes(125 * 94 * 3)).resize((500, 375), Image.BICUBIC)
        (folder / str(at % 10)).mkdir(parents=True, exist_ok=True)
        noise.save(folder / str(at % 10) / f"{at}.jpg", quality=85)


def epoch(command):
    """The seconds of the epoch, and the CPU seconds of all processes."""
    program = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    printed = program.stdout.read()
    _, status, usage = os.wait4(program.pid, 0)
    if status:
        raise SystemExit(f"{command}: status {status}")
    return json.loads(printed.splitlines()[-1])["seconds"], usage.ru_utime + usage.ru_stime


def measured(command, folder, dftracer):
    """One round: each way once."""
    stepscope = [Path(sys.executable).with_name("stepscope"), "record", "--io"]
    run = ["--output", folder / "run", "--"]
    ways = {
        "nothing": (command, {}),
        "recorded": ([*stepscope, *run, *command], {}),
        "left out": ([*stepscope, "--io-exclude", folder / "data", *run, *command], {}),
    }
    if dftracer:
        ways["dftracer"] = (command, dftracer_environment(dftracer, folder))
    results = {}
    for way, (words, environment) in ways.items():
        done = subprocess.run(
            [*map(str, words)], env={**os.environ, **environment}, capture_output=True, text=True, check=True
        )
        results[way] = json.loads(done.stdout.splitlines()[-1])
        subprocess.run(["rm", "-rf", folder / "run", *folder.glob("dftracer*")], check=True)
    return results


def dftracer_environment(python, folder):
    """As DFTracer's own documentation has a program in C recorded, with metadata of each call."""
    pattern = "os.path.dirname(dftracer.__file__) + '/lib*/libdftracer_preload.so'"
    find = f"import dftracer, glob, os; print(glob.glob({pattern})[0])"
    library = subprocess.run([python, "-c", find], capture_output=True, text=True, check=True).stdout.strip()
    return {
        "LD_PRELOAD": library,
        "DFTRACER_ENABLE": "1",
        "DFTRACER_INIT": "PRELOAD",
        "DFTRACER_LOG_FILE": str(folder / "dftracer"),
        "DFTRACER_DATA_DIR": str(folder / "data"),
        "DFTRACER_INC_METADATA": "1",
    }


def line(name, rounds):
    cells = [f"{name:32}"]
    longest = []
    for way in ("nothing", "recorded", "left out", "dftracer"):
        found = [results[way] for results in rounds if way in results]
        cells.append(f"{min(of['ns'] for of in found):9.1f}" if found else f"{'-':>9}")
        longest.append(f"{max(of['longest_64_ms'] for of in found):.2f}" if found else "-")
    return " ".join(cells) + "  " + " ".join(longest)


if __name__ == "__main__":
    main()
