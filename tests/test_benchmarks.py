"""The programs of ``benchmarks/`` are importable and have a help. CI runs few of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OTHERS = ("peers/work/", "itself/", "corpus/kinds/")
"""Benchmarks of perfci and of other tools, which are no programs."""
TRY_ALL = """\
import contextlib, importlib, io, runpy, sys
from pathlib import Path

for path in map(Path, sys.argv[1:]):
    out = io.StringIO()
    try:
        text = path.read_text(encoding="utf-8")
        if "ArgumentParser(" in text and "__main__" in text:
            sys.argv, sys.path[0] = [path.name, "--help"], str(path.parent)
            with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
                runpy.run_path(str(path), run_name="__main__")
            assert out.getvalue().startswith("usage: "), "no help"
        else:
            sys.path[0] = "."
            importlib.import_module(".".join(path.with_suffix("").parts))
    except Exception as error:
        print(f"{path}: {error!r}")
"""


@pytest.mark.torch
def test_each_program_is_importable_and_has_help() -> None:
    programs = sorted(
        path
        for path in (ROOT / "benchmarks").rglob("*.py")
        if not any(part in path.as_posix() for part in OTHERS)
    )
    assert len(programs) > 30
    names = [str(path.relative_to(ROOT)) for path in programs]
    tried = subprocess.run(
        [sys.executable, "-c", TRY_ALL, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    # other tools are installed for their comparisons alone
    others = ("asv", "otava", "pyperf", "ruptures")
    failed = [
        line
        for line in tried.stdout.splitlines()
        if not any(f"No module named '{other}" in line for other in others)
    ]
    assert not failed
