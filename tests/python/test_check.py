"""``stepscope check``, as a pipeline reads it: the numbers counted again, and the XML as another program parses it."""

import json
import math
import os
import shutil
import signal

import junitparser
import pytest
import runs


@pytest.fixture
def recorded(checkout):
    """A run that was recorded of a training."""
    return checkout / "tests" / "fixtures" / "gpt-cpu"


def step_rows(stepscope, run):
    rows = json.loads(stepscope("analyze", "step_breakdown", run, "--json").stdout)["results"]
    return [row for row in rows if row["step"] is not None and row["is_complete"] and row["source"] != "whole"]


def measured(stepscope, run, *names):
    """What ``check`` measures of these numbers, by name; limits that hold whatever comes out."""
    units = {"steps": "", "input_wait_ratio": "%"}
    budgets = [f"--budget={name} >= 0{units.get(name, 'ns')}" for name in names]
    told = json.loads(stepscope("check", run, "--json", *budgets).stdout)
    return {check["metric"]: check["measured"] for check in told["checks"]}


def test_numbers_of_steps_are_those_of_the_steps(recorded, stepscope):
    rows = step_rows(stepscope, recorded)
    steps = sorted(row["total_ns"] for row in rows)
    waits = sum(row["dataloader_ns"] for row in rows)
    assert len(steps) >= 10
    nearest = {percent: steps[math.ceil(len(steps) * percent / 100) - 1] for percent in (50, 90)}
    assert measured(
        stepscope, recorded, "steps", "step_mean", "step_min", "step_p50", "step_p90", "step_max", "input_wait_ratio"
    ) == {
        "steps": len(steps),
        "step_mean": sum(steps) // len(steps),
        "step_min": steps[0],
        "step_p50": nearest[50],
        "step_p90": nearest[90],
        "step_max": steps[-1],
        "input_wait_ratio": pytest.approx(waits / sum(steps)),
    }


def test_a_pipeline_reads_the_checks_as_tests(recorded, stepscope, tmp_path):
    file = tmp_path / "check.xml"
    budgets = ["--budget=step_max < 1h", "--budget=step_p50 < 1ns", "--budget=idle_ratio < 10%"]
    ended = stepscope("check", recorded, *budgets, "--against", recorded, "--junit", file, code=3)
    assert "2 of 4 checks hold: 1 fails, 1 is not judged" in ended.stdout
    report = junitparser.JUnitXml.fromfile(str(file))
    assert (report.tests, report.failures, report.errors, report.skipped) == (4, 1, 1, 0)
    [suite] = report
    assert (suite.name, suite.tests, suite.failures, suite.errors) == ("gpt-cpu", 4, 1, 1)
    cases = {case.name: case for case in suite}
    assert list(cases) == [
        "step_max < 1 h",
        "step_p50 < 1 ns",
        "idle_ratio < 10 %",
        "step_ns <= +3 % against gpt-cpu",
    ]
    assert [case.is_passed for case in cases.values()] == [True, False, False, True]
    [fails] = cases["step_p50 < 1 ns"].result
    assert isinstance(fails, junitparser.Failure)
    assert (fails.type, fails.message) == ("fails", fails.text)
    [not_judged] = cases["idle_ratio < 10 %"].result
    assert isinstance(not_judged, junitparser.Error)
    assert not_judged.message == "no work of a device was recorded"
    assert {case.classname for case in cases.values()} == {"stepscope.check"}


def test_names_of_any_characters_stay_xml(recorded, stepscope, tmp_path):
    run = tmp_path / 'a <b> & "c" \x1b[31m ü'
    shutil.copytree(recorded, run)
    file = tmp_path / "check.xml"
    stepscope("check", run, "--budget", "steps > 0", "--junit", file)
    [suite] = junitparser.JUnitXml.fromfile(str(file))
    assert '<b> & "c"' in suite.name and suite.name.endswith("ü")


def test_a_run_that_is_still_recorded_is_refused(tmp_path, stepscope):
    run, counters = tmp_path / "run", tmp_path / "counters"
    command = [runs.COMMAND, "record", "-o", run, "--", *runs.new_program("killed.py", counters)]
    with runs.started(*command) as process:
        pid = int(process.stdout.readline().split()[1])
        process.stdout.readline()
        try:
            ended = stepscope("check", run, "--budget", "steps > 0", code=1)
        finally:
            os.kill(pid, signal.SIGKILL)
            process.communicate(timeout=600)
    assert "still being recorded" in ended.stderr
    assert "hint:" in ended.stderr
