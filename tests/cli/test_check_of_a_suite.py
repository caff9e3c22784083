"""``check`` of 20 cases: anchors in pairs, the others by head alone less the day's shift."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfci.model.worker import WorkOrder
from tests.builders.project import Project
from tests.builders.simulated import Simulated

BENCH = """\
import perfci
import lib

@perfci.benchmark(n=list(range(20)))
def work(n):
    return lib.work
"""
LIB = "def work():\n    return sum(range(5000))\n"
SLOW = "work[n=7]"


@pytest.fixture
def workers() -> Simulated:
    return Simulated()


@pytest.fixture
def stored(tmp_path: Path, workers: Simulated) -> Project:
    """A project with a baseline, and a head that says the same in other words."""
    project = Project(tmp_path / "project", workers)
    project.commit("base", **{"lib.py": LIB, "benchmarks/bench_work.py": BENCH})
    assert project.perfci("baseline", "update").code == 0
    project.commit("head", **{"lib.py": f"# works\n{LIB}"})
    return project


def slow(workers: Simulated, *, day: float = 1.0, head: float = 1.0, case: str = "") -> None:
    """Make today slower by ``day``, and head by ``head``, in one ``case`` or in all."""

    def latency(order: WorkOrder, _: int) -> float:
        changed = order.side == "head" and case in order.case
        return 1e-4 * day * (head if changed else 1.0)

    workers.latency = latency


def methods(report: dict) -> dict[str, str]:
    return {r["case"]: r["method"] for r in report["results"] if r["metric"] == "latency_p50"}


@pytest.mark.parametrize("day", [1.0, 1.04, 0.96])
def test_the_same_code_passes_on_any_day(stored: Project, workers: Simulated, day: float) -> None:
    slow(workers, day=day * 1.01)  # a call takes 1e-6 s more than its loops
    report = stored.report("check", code=0)
    assert report["verdict"]["status"] == "pass"
    assert list(methods(report).values()).count("paired_t") <= 8
    (note,) = (note for note in report["notes"] if "Today this machine is" in note)
    assert "against the baseline of 1 session" in note
    said, word = note.split("machine is ")[1].split(" % ")
    assert float(said) == pytest.approx(100 * abs(day - 1), abs=0.4)
    assert day == 1.0 or word.startswith("slower" if day > 1.0 else "faster")
    screened = [row for row in report["results"] if row["anchors"]]
    assert {row["status"] for row in screened if row["gate"] == "fail"} <= {
        "unchanged",
        "inconclusive",
    }
    assert all(row["welch_p"] is not None for row in screened)


@pytest.mark.parametrize("case", [SLOW, ""])
@pytest.mark.parametrize("day", [1.0, 1.04])
def test_what_is_slower_fails_by_pairs(
    stored: Project, workers: Simulated, day: float, case: str
) -> None:
    slow(workers, day=day * 1.01, head=1.1, case=case)
    report = stored.report("check", code=1)
    regressed = {row["case"] for row in report["results"] if row["status"] == "regressed"}
    assert regressed == ({SLOW} if case else set(methods(report)))
    assert {methods(report)[name] for name in regressed} == {"paired_t"}


@pytest.mark.parametrize("seconds", [1e6, 0.2, 2.0])
@pytest.mark.parametrize("case", [SLOW, "work[n=2]"])
def test_a_case_that_hangs_or_is_far_slower_does_not_pass_as_the_budget_ends(
    stored: Project, workers: Simulated, case: str, seconds: float
) -> None:
    slow(workers, head=seconds / 1e-4, case=case)
    path = stored.folder.parent / "r.json"
    done = stored.perfci("check", "--budget", "40s", "--json", str(path))
    assert done.code in {1, 3}, done.text
    report = json.loads(path.read_text())
    failed = {failure["case"] for failure in report["failures"]}
    named = {found["case"] for found in report["verdict"]["findings"]}
    assert case in failed | named


def test_sessions_of_other_commits_hide_no_regression(stored: Project, workers: Simulated) -> None:
    """Eleven cases get 3.5 % faster with each commit, and then 12 % slower again."""

    def measure(base: float, head: float) -> None:
        def latency(order: WorkOrder, _: int) -> float:
            factor = base if order.side == "base" else head
            return 1.01e-4 * (factor if "n=1" in order.case else 1.0)

        workers.latency = latency

    for step in range(1, 5):
        measure(0.965 ** (step - 1), 0.965**step)
        stored.commit(f"faster {step}", **{"lib.py": f"# {step}\n{LIB}"})
        stored.report("check", code=0)
        assert stored.perfci("baseline", "update").code == 0
    stored.commit("slower", **{"lib.py": f"# slower\n{LIB}"})
    measure(0.965**4, 1.12 * 0.965**4)
    report = stored.report("check", code=1)
    regressed = {row["case"] for row in report["results"] if row["status"] == "regressed"}
    assert regressed == {name for name in methods(report) if "n=1" in name}


def test_cases_of_a_second_commit_are_decided_like_all_others(
    stored: Project, workers: Simulated
) -> None:
    assert stored.perfci("baseline", "update", "-k", "n=7]").code == 0
    stored.commit("slower", **{"lib.py": f"# slower\n{LIB}"})
    slow(workers, day=1.01, head=1.2, case=SLOW)
    report = stored.report("check", code=1)
    assert {row["case"] for row in report["results"] if row["status"] == "regressed"} == {SLOW}


@pytest.mark.parametrize("damaged", ["", "[]", '{"commit": "x"}'])
def test_a_damaged_cache_keeps_no_sessions(stored: Project, damaged: str) -> None:
    stored.report("check", code=0)
    (path,) = stored.cache.rglob("alike.json")
    path.write_text(damaged)
    assert stored.perfci("baseline", "update").code == 0


def test_a_noisy_machine_measures_pairs_only(stored: Project, workers: Simulated) -> None:
    workers.spread = 0.15
    report = stored.report("check")
    assert set(methods(report).values()) == {"paired_t"}
    assert not any("Today" in note for note in report["notes"])


def test_an_update_keeps_the_sessions_of_a_commit_that_a_check_found_alike(
    stored: Project, workers: Simulated
) -> None:
    def sessions() -> set[int]:
        files = (stored.folder / "baselines").glob("*/work*.json")
        return {len(json.loads(path.read_text())["sessions"]) for path in files}

    stored.report("check", code=0)
    assert stored.perfci("baseline", "update").code == 0
    assert sessions() == {2}
    stored.commit("unchecked", **{"lib.py": f"# worked\n{LIB}"})
    assert stored.perfci("baseline", "update").code == 0
    assert sessions() == {1}
    stored.commit("slower", **{"lib.py": f"# slow\n{LIB}"})
    slow(workers, head=1.1, case=SLOW)
    stored.report("check", code=1)
    assert stored.perfci("baseline", "update").code == 0
    assert sessions() == {1, 2}
