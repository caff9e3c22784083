"""Code of the library that runs by other ways than an import statement of the benchmark's."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.matrix.outcome import Outcome, compare
from tests.matrix.ways import MARKERS_FROM, project_of_ways

pytestmark = pytest.mark.processes

WAYS = ("late", *MARKERS_FROM)
REFUSED = {
    "file_of_the_checkout",
    "text_of_the_checkout",
    "only_on_head",
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    # pytest's own folders are too long for the socket of a forkserver below them
    project, environment = project_of_ways(Path(tempfile.mkdtemp(prefix="ways-")))
    return compare(project, environment, WAYS)


@pytest.mark.parametrize("way", WAYS)
def test_no_way_runs_the_wrong_code_in_silence(way: str, outcomes: dict[str, Outcome]) -> None:
    assert outcomes[way].markers == (None if way in REFUSED else (1.0, 2.0)), outcomes[way]
    assert bool(outcomes[way].refusal) == (way in REFUSED)
