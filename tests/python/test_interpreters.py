"""Sub-interpreters: the recorder says that it is not for them."""

import sys

import runs


def test_a_sub_interpreter_is_refused(tmp_path):
    text = """
import sys
import _xxsubinterpreters as interpreters
from stepscope import _recorder
code = f"import sys; sys.path = {sys.path!r}; from stepscope import _recorder"
try:
    error = interpreters.run_string(interpreters.create(), code)
except Exception as raised:
    error = raised
print("sub-interpreters" in str(error))
"""
    if sys.version_info >= (3, 13):
        text = text.replace("_xxsubinterpreters", "_interpreters")
    assert runs.execute(*runs.new_script(text)).stdout == "True\n"
