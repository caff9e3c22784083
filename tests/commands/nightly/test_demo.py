"""The nightly demo, whole, and the report that it would give on a machine without noise."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from perfci.history.store import open_history
from perfci.model.worker import WorkOrder
from tests.builders.in_process import in_process
from tests.builders.simulated import Simulated

pytestmark = pytest.mark.slow

_MODULES = {"tokenise": "tokenising", "encode": "encoding", "parse": "parsing"}
ROOT = Path(__file__).resolve().parents[3]


def test_the_planted_step_is_told_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """All sixty nights are made: by how much a real machine is off is no matter of the code."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    from nightly.commits import near
    from nightly.odds import changes
    from nightly.replay import SEED

    found = changes(SEED, off=0.0)
    assert {one.series.case for one in found} == {"tokenise", "encode"}
    assert all(one.worse for one in found)
    assert all(near(one.series.case, one.before + 1, one.after + 1) for one in found)
    steps = [one.ratio for one in found if one.series.case == "tokenise"]
    assert all(1.08 < ratio < 1.16 for ratio in steps)


def test_a_step_in_the_place_of_the_ramp_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    from nightly_demo import found_text

    found = {"ratio": 1.114, "case": "encode", "metric": "latency_p50", "kind": "step"}
    assert found_text(found, 39, 40) == (
        "+11.4 % in `encode` latency_p50, a step between commits 39 and 40, for the ramp"
    )
    assert found_text({**found, "kind": "ramp"}, 33, 45).endswith(
        "a ramp between commits 33 and 45"
    )
    assert found_text({**found, "case": "tokenise"}, 23, 24).endswith("between commits 23 and 24")


def costs(order: WorkOrder, _number: int) -> float:
    """Return what a call costs on a machine without noise, in s: the commit says so."""
    module = _MODULES[order.case]
    (line,) = (
        line
        for line in (Path(order.root) / "words" / f"{module}.py").read_text().splitlines()
        if line.startswith("LOOPS")
    )
    return 5e-8 * int(line.rpartition(" ")[2])


def test_the_nightly_demo_names_the_step_and_the_ramp_and_not_the_busy_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script as it is, but for its nights: their workers are simulated."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import nightly_demo

    run, executor, out = nightly_demo.perfci, Simulated(latency=costs), tmp_path / "out"
    environment = {**os.environ, "PERFCI_CACHE_DIR": str(tmp_path / "cache")}

    def perfci(repository: Path, *arguments: str) -> str:
        if arguments[0] != "nightly":
            return run(repository, *arguments)
        done = in_process(arguments, repository, environment, executor)
        assert done.code == 0, done.text
        print(done.out)
        return done.out

    monkeypatch.setattr(nightly_demo, "perfci", perfci)
    monkeypatch.setattr(sys, "argv", ["nightly_demo.py", str(out)])
    code = nightly_demo.main()
    said = capsys.readouterr().out
    assert code == 0, said
    assert "55 of 60 nights are REPLAYED" in said
    trend = json.loads((out / "trend.json").read_text())
    assert {one["case"] for one in trend["changes"]} == {"tokenise", "encode"}
    assert all(one["worse"] for one in trend["changes"])
    assert "That is what was planted." in said  # within two commits of where it was
    assert (out / "site" / "index.html").exists()
    assert "tokenise" in (out / "trend.md").read_text()
    with open_history(str(out / "history.sqlite")) as history:
        sources = [run.source for run in history.recorded_runs()]
    assert (sources.count("nightly"), sources.count("replayed")) == (5, 55)
