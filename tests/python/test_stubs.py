"""The typed stubs say what is there at run time."""

import re
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_stubs_agree_with_the_package(tmp_path):
    # It looks at modules too. The libraries that results go to need not be installed.
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nignore_missing_imports = True\ndisable_error_code = attr-defined\n")
    command = [sys.executable, "-m", "mypy.stubtest", "stepscope", "--concise", "--mypy-config-file", config]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    lines = (result.stdout + result.stderr).splitlines()
    assert not any(line.startswith("error:") for line in lines), result.stdout + result.stderr
    # These have no stubs; the library of files is no module.
    submodule = r"stepscope\.(_hook|_inject|_recorder|_recording|_facts|_autostart|_say|_options|_ring|_sampling|_steps|__main__|compat|lightning|profiler|ray|transformers|libstepscope_files|libstepscope_preload)\b"
    wrong = [line for line in lines if line.startswith("stepscope.") and not re.match(submodule, line)]
    assert wrong == []


def test_a_program_that_uses_results_is_checked(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import stepscope\n"
        "run = stepscope.open('runs/a')\n"
        "result = run.operators(rank=0, group_by='shapes')\n"
        "rows = result['results']\n"
        "reveal_type(result)\n"
        "run.operators(rnak=0)\n"
    )
    command = [sys.executable, "-m", "mypy", program]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600).stdout
    assert 'Revealed type is "stepscope._result.Result"' in said
    assert 'Unexpected keyword argument "rnak"' in said
