"""A notebook is executed, with cells that are recorded, and their reports are in it."""

import html
import re

import pytest
import runs

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")


def executed(folder, *cells):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, timeout=300, allow_errors=True, resources={"metadata": {"path": folder}})
    client.execute()
    return [cell.outputs for cell in notebook.cells]


def pages_in(outputs):
    found = [output.data.get("text/html", "") for output in outputs if output.output_type == "display_data"]
    return [html.unescape(page) for text in found for page in re.findall(r'srcdoc="([^"]*)"', text)]


def test_cells_are_recorded_and_reported(tmp_path):
    _, first, seen, failed, wrong, after = executed(
        tmp_path,
        "%load_ext stepscope",
        "%%stepscope -o first --shapes\nimport torch\nx = torch.erfinv(torch.zeros(4))\nprint('said')",
        "x.sum().item()",
        "%%stepscope -o failed\ntorch.digamma(torch.zeros(4))\nraise RuntimeError('on purpose')",
        "%%stepscope --nothing\nraise RuntimeError('is not run')",
        "'runs on'",
    )
    assert any(output.output_type == "stream" and output.text == "said\n" for output in first)
    (page,) = pages_in(first)
    assert "aten::erfinv" in page and "</html>" in page
    # What a recorded cell has made is there in the next.
    assert seen[0].data["text/plain"] == "0.0"
    rows = runs.rows(tmp_path / "first")
    assert runs.named(rows, "aten::erfinv")[0]["inputs"] is not None
    (page,) = pages_in(failed)
    assert "aten::digamma" in page
    assert any("on purpose" in str(output) for output in failed)
    assert "unrecognized arguments: --nothing" in str(wrong) and "is not run" not in str(wrong)
    assert after[0].data["text/plain"] == "'runs on'"
