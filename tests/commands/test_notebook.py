"""The notebook of the examples runs, and its committed outputs are those of today."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.lacking import needed

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.slow
def test_the_notebook_runs_and_finds_what_is_planted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbclient, nbformat = needed("nbclient"), needed("nbformat")
    needed("ipykernel")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "PERFCI_CACHE_DIR", "TMPDIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    notebook = nbformat.read(EXAMPLES / "reading_results.ipynb", as_version=4)
    committed = {cell["id"]: shown(cell) for cell in notebook.cells}
    with warnings.catch_warnings():  # of the kernel's client, about its own transport
        warnings.simplefilter("ignore")
        nbclient.NotebookClient(
            notebook, timeout=250, kernel_name="python3",
            resources={"metadata": {"path": str(EXAMPLES)}},
        ).execute()  # fmt: skip
    executed = {cell["id"]: shown(cell) for cell in notebook.cells}
    assert "regressed" in "".join(executed.values())
    of_history = [
        name for name, text in committed.items() if "tokenise" in text or "encode" in text
    ]
    assert len(of_history) == 4
    assert {name: executed[name] for name in of_history} == {
        name: committed[name] for name in of_history
    }
    assert shown(notebook.cells[-1]).startswith("no-baseline\n")


def shown(cell: Any) -> str:
    """Return a cell's outputs as text."""
    outputs = cell.get("outputs", [])
    return "".join(
        str(one.get("data", {}).get("text/plain", one.get("text", ""))) for one in outputs
    )
