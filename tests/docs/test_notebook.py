"""The notebook runs from top to bottom, and is committed without outputs."""

import json

import pytest
from pages import ROOT

NOTEBOOK = ROOT / "examples" / "tour.ipynb"


def test_the_notebook_has_no_outputs():
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 5
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)


@pytest.mark.slow
def test_the_notebook_runs(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    pictures = [o for o in outputs if "image/png" in o.get("data", {})]
    assert len(pictures) >= 4
