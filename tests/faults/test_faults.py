"""A few failures of each command that writes; ``python -m tests.faults`` tries all of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.faults.campaign import Campaign, built
from tests.faults.scenarios import SCENARIOS

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("shim"))


@pytest.mark.parametrize("name", ["report as html", "history import", "trend"])
def test_nothing_is_lost_doubled_or_hidden_on_a_failing_disk(
    name: str, library: Path, tmp_path: Path
) -> None:
    outcome = Campaign(SCENARIOS[name], library, tmp_path / "runs").run(most=2, seed=1)
    assert outcome.tried == 2
    assert not outcome.faults


def test_a_lost_file_is_a_fault(library: Path, tmp_path: Path) -> None:
    campaign = Campaign(SCENARIOS["report as csv"], library, tmp_path / "runs")
    shutil.rmtree(tmp_path / "runs" / "first")
    (tmp_path / "runs" / "first").mkdir()
    (tmp_path / "runs" / "first" / "out").write_text("half of")
    assert {fault.what for fault in campaign.run(most=1, seed=1).faults} >= {
        "out is neither what it was nor what it should be"
    }
