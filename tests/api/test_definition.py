"""Benchmark files that something else than perfci runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("decorator", ["perfci.benchmark", "perfci.benchmark(batch=[1])"])
def test_a_benchmark_file_run_by_plain_python_says_what_measures_it(
    tmp_path: Path, decorator: str
) -> None:
    file = tmp_path / "bench_encoder.py"
    file.write_text(f"import perfci\n@{decorator}\ndef encoder(batch=1):\n    return print\n")
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert (
        f"{file}:2: UserWarning: this call measures nothing: use `perfci run -k encoder`\n"
        in done.stderr
    )
