"""Each way to write a benchmark wrongly is answered with its place and what to write instead."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.worker.driver import Bench

WRONG = sorted((Path(__file__).parent.parent / "data" / "wrong").glob("bench_*.py"))


@pytest.mark.parametrize("path", WRONG, ids=[path.stem.removeprefix("bench_") for path in WRONG])
def test_it_is_told_with_file_and_line(bench: Bench, path: Path) -> None:
    shutil.copy(path, bench.folder)
    found = bench.discover()
    (failure,) = found["failures"]
    assert not found["cases"]
    assert failure["kind"] == "BenchmarkError"
    lines = path.read_text().splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if text.startswith("@perfci.benchmark"))
    message, advice = failure["message"].split("\n", 1)
    assert message.startswith(f"benchmarks/{path.name}:{line}: ")
    assert advice


def test_every_check_of_a_definition_has_a_wrong_file() -> None:
    assert len(WRONG) >= 19
