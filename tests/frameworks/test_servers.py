"""Inference servers as they are started by people: the commands in the first lines of the example, asked over HTTP."""

import collections
import json
import os
import shlex
import signal
import socket
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import runs

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "frameworks" / "tiny_llama.py"
PYTHON = os.environ.get("STEPSCOPE_SERVERS_PYTHON", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="STEPSCOPE_SERVERS_PYTHON names no Python that has the servers"),
]

#: Words of a prompt, and how many tokens are asked for: before the window, together in it, and after it.
BEFORE, TOGETHER, AFTER = (5, 4), ((9, 6), (17, 3)), (11, 5)


class Server:
    """A server that is being recorded, and what it has answered."""

    def __init__(self, url, generate):
        self.url, self._generate, self.answers = url, generate, []

    def wait(self, process):
        """Until it answers."""
        while process.poll() is None:
            try:
                return self.get("/health")
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        raise AssertionError("the server has ended")

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=120) as answer:
            return answer.read()

    def post(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method="POST")
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read()

    def generate(self, words, tokens):
        """Have ``tokens`` made from a prompt of ``words`` words; gives how many tokens the server read in and made."""
        prompt = " ".join(f"w{11 * words + 3 + word}" for word in range(words))
        path, body, usage = self._generate(prompt, tokens)
        usage = usage(json.loads(self.post(path, body)))
        self.answers.append(usage)
        return usage


def of_vllm(prompt, tokens):
    def usage(answer):
        return answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]

    return "/v1/completions", {"prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "temperature": 0}, usage


def of_sglang(prompt, tokens):
    def usage(answer):
        about = answer["meta_info"]
        return about["prompt_tokens"] - about["cached_tokens"], about["completion_tokens"]

    sampling = {"max_new_tokens": tokens, "ignore_eos": True, "temperature": 0}
    return "/generate", {"text": prompt, "sampling_params": sampling}, usage


SERVERS = {"vllm": (of_vllm, None), "sglang": (of_sglang, {"output_dir": "traces", "activities": ["CPU"]})}


@pytest.fixture(scope="module")
def folder_of_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    runs.execute(*runs.forked(EXAMPLE, "tiny-llama"), cwd=folder)
    return folder


@pytest.fixture(scope="module", params=SERVERS)
def served(request, tmp_path_factory, folder_of_model):
    """The folder of a recorded server of the example's model, its name, and what it has answered."""
    name, folder = request.param, tmp_path_factory.mktemp(request.param)
    generate, window = SERVERS[name]
    (folder / "tiny-llama").symlink_to(folder_of_model / "tiny-llama")
    command = next(text for text in EXAMPLE.read_text().split("``")[1::2] if f" {name}" in text.replace(".", " "))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*shlex.split(command), "--host", "127.0.0.1", "--port", port]
    path = f"{Path(PYTHON).parent}{os.pathsep}{os.environ['PATH']}"
    environment = runs.environment(HF_HUB_OFFLINE=1, VLLM_NO_USAGE_STATS=1, PATH=path)
    command[:2] = [runs.COMMAND, "record", "-o", "run"]
    options = {"cwd": folder, "env": environment}
    with (folder / "log").open("w") as log, runs.started(*command, stdout=log, stderr=log, **options) as process:
        server = Server(f"http://127.0.0.1:{port}", generate)
        server.wait(process)
        server.generate(*BEFORE)
        server.post("/start_profile", window)
        with ThreadPoolExecutor(len(TOGETHER)) as clients:
            list(clients.map(lambda request: server.generate(*request), TOGETHER))
        server.post("/stop_profile")
        server.generate(*AFTER)
        # As Ctrl-C in a terminal.
        os.killpg(process.pid, signal.SIGINT)
        process.wait(120)
    return name, folder, server.answers


def passes(path, requests=None):
    """What each step says of itself: the kind of its pass, its requests and its tokens. Of a run, those that the tests
    asked for: the last ones, which continue as many requests as ``requests``."""
    rows = [row for row in runs.analyze("step_breakdown", path)["results"] if row["step"] is not None]
    found = [(row["iteration"], row["requests"], row["tokens"]) for row in rows]
    if requests is not None:
        before = next(at for at in range(len(found)) if sum(each[1] for each in found[at:]) == requests)
        found = found[before:]
    return found


def test_each_pass_is_a_step_with_its_requests_and_tokens(served):
    """Also while no window is open, when the server itself labels nothing."""
    _, folder, answers = served
    read_in, made = (sum(numbers) for numbers in zip(*answers))
    # A prompt is read in by a pass, which makes the first token; each further token is a pass of its own.
    found = passes(folder / "run", made)
    assert sum(tokens for *_, tokens in found) == read_in + made - len(answers)
    assert {kind for kind, *_ in found} <= {"prefill", "decode", "mixed"}
    (words, tokens), (last_words, last_tokens) = BEFORE, AFTER
    assert found[:tokens] == [("prefill", 1, words), *[("decode", 1, 1)] * (tokens - 1)]
    assert found[-last_tokens:] == [("prefill", 1, last_words), *[("decode", 1, 1)] * (last_tokens - 1)]


def test_a_window_has_the_passes_between_its_two_calls(served):
    """The trace that the server writes, which is ours by the switch."""
    _, folder, answers = served
    (trace,) = (path for path in (folder / "traces").glob("*.gz") if "async_llm" not in path.name)
    of_run = passes(folder / "run", sum(made for _, made in answers))
    assert passes(trace) == of_run[BEFORE[1] : -AFTER[1]]


PHASES = {
    "vllm": ("gpu_model_runner: forward", "gpu_model_runner: sample"),
    "sglang": ("scheduler.run_batch", "scheduler.process_batch_result"),
}


def test_phases_are_labelled_and_waiting_for_requests_is_not(served):
    name, folder, answers = served
    labels = collections.Counter(row["name"] for row in runs.rows(folder / "run") if row["kind"] == "label")
    passes_of_run = len(passes(folder / "run"))
    assert {labels[phase] for phase in PHASES[name]} == {passes_of_run}
    assert not {"scheduler.idle", "scheduler.recv_requests"} & labels.keys()
