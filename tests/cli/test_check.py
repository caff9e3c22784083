"""``perfci baseline`` and ``perfci check``: stored, believed only where they may be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfci.model.words import words
from perfci.verdict.case_comparisons import LEFT_OUT
from tests.builders.project import NOISE_PASSES, QUICK, Project, rows

CASES = ("steady", "counting")


@pytest.fixture
def stored(project: Project) -> Project:
    """A project whose first commit is stored as the baseline."""
    project.counting(1000)
    project.commit("base")
    done = project.perfci("baseline", "update")
    assert done.code == 0, done.text
    return project


def baseline_of(project: Project, case: str) -> Path:
    """Return the file of one case's baseline."""
    (path,) = (project.folder / "baselines").glob(f"*/{case}-*.json")
    return path


def slow_down(project: Project) -> None:
    """Make head so slow that five workers on a busy machine can't miss it."""
    project.counting(30_000)
    project.commit("slower")


def scale_baseline(stored: Project, factor: float, *cases: str) -> None:
    """Multiply the stored times: with a small factor, all that is measured now looks slow."""
    for one in cases:
        path = baseline_of(stored, one)
        kept = json.loads(path.read_text())
        for session in kept["sessions"]:
            for worker in session["workers"]:
                for name in worker["values"]:
                    if name.startswith(("latency", "cold_start")):
                        worker["values"][name] *= factor
        path.write_text(json.dumps(kept))


def three_sessions(stored: Project, *cases: str) -> None:
    """Have the baseline three sessions whose times lie 1 % apart: one shows no regression."""
    for case in cases:
        path = baseline_of(stored, case)
        kept = json.loads(path.read_text())
        kept["sessions"] *= 3
        path.write_text(json.dumps(kept))
        kept = json.loads(path.read_text())
        for number, session in enumerate(kept["sessions"]):
            for worker in session["workers"]:
                for name in worker["values"]:
                    if name.startswith(("latency", "cold_start")):
                        worker["values"][name] *= 0.99 + 0.01 * number
        path.write_text(json.dumps(kept))


def test_the_same_commit_passes(stored: Project) -> None:
    report = stored.report("check", code=0)
    assert report["verdict"]["status"] in {"pass", "inconclusive"}
    assert {row["method"] for row in report["results"]} & {"welch_t", "paired_t"}


def test_a_slowed_commit_fails_by_pairs(stored: Project) -> None:
    slow_down(stored)
    report = stored.report("check", code=1)
    slow = rows(report, "counting")["latency_p50"]
    assert slow["status"] == "regressed"
    assert slow["method"] == "paired_t"
    assert slow["confirmed"] is True
    assert report["base"]["rev"] == f"baseline of {report['base']['sha'][:12]}"
    assert (slow["welch_p"] < 0.01, slow["cohens_d"] > 0.8) == (True, True)
    assert "2 cases measured in pairs with the baseline's commit." in report["notes"]


def test_cases_of_different_commits_are_each_measured_with_their_own(
    stored: Project,
) -> None:
    stored.commit("nothing new")
    done = stored.perfci("baseline", "update", "-k", "steady")
    assert done.code == 0
    assert len({json.loads(baseline_of(stored, one).read_text())["sha"] for one in CASES}) == 2
    scale_baseline(stored, 1 / 30, *CASES)
    three_sessions(stored, *CASES)
    stored.write("pyproject.toml", QUICK + NOISE_PASSES)
    report = stored.report("check", "--no-confirm", code=1)
    assert {rows(report, one)["latency_p50"]["confirmed"] for one in CASES} == {False}
    report = stored.report("check")
    for one in CASES:
        row = rows(report, one)["latency_p50"]
        assert (row["status"], row["confirmed"]) == ("unchanged", True)


def test_a_suspect_whose_commit_is_gone_stays_unconfirmed(stored: Project) -> None:
    scale_baseline(stored, 1 / 30, *CASES)
    three_sessions(stored, *CASES)
    path = baseline_of(stored, "steady")
    stored_sha = json.loads(path.read_text())["sha"]
    path.write_text(path.read_text().replace(stored_sha, "0" * 40))
    report = stored.report("check", code=1)
    assert rows(report, "steady")["latency_p50"]["confirmed"] is False
    assert rows(report, "counting")["latency_p50"]["confirmed"] is True
    assert any("000000000000 isn't in this clone" in note for note in report["notes"])


def test_without_confirmation_the_verdict_says_so(stored: Project) -> None:
    three_sessions(stored, *CASES)
    slow_down(stored)
    report = stored.report("check", "--no-confirm", code=1)
    assert rows(report, "counting")["latency_p50"]["confirmed"] is False
    assert "unconfirmed" in " ".join((*report["verdict"]["reasons"], *report["notes"])).lower()


def test_updating_the_same_commit_adds_a_session(stored: Project) -> None:
    assert stored.perfci("baseline", "update", "-k", "steady").code == 0
    kept = json.loads(baseline_of(stored, "steady").read_text())
    assert len(kept["sessions"]) == 2
    assert len(json.loads(baseline_of(stored, "counting").read_text())["sessions"]) == 1


def test_a_new_benchmark_is_new_and_a_gone_one_removed(stored: Project) -> None:
    text = "import perfci\n\n@perfci.benchmark\ndef fresh():\n    return int\n"
    (stored.folder / "benchmarks" / "bench_counting.py").unlink()
    stored.write("benchmarks/bench_fresh.py", text)
    report = stored.report("check")
    statuses = {row["case"]: row["status"] for row in report["results"]}
    assert statuses == {"fresh": "new", "steady": "removed", "counting": "removed"}


def test_a_changed_benchmark_is_not_comparable(stored: Project) -> None:
    with (stored.folder / "benchmarks" / "bench_counting.py").open("a") as file:
        file.write("\n# another meaning\n")
    report = stored.report("check")
    assert {row["status"] for row in report["results"]} == {"not_comparable"}
    assert report["verdict"]["status"] == "inconclusive"


def test_a_baseline_of_another_environment_is_no_baseline(stored: Project) -> None:
    (folder,) = (p for p in (stored.folder / "baselines").iterdir() if p.is_dir())
    with (stored.folder / "pyproject.toml").open("a") as file:
        file.write("[tool.perfci.quiet]\nmalloc = false\n")
    done = stored.perfci("check", "--no-strict").without_traceback()
    assert done.code == 2
    assert "[no-baseline]" in done.err
    assert f"there are those of {folder.name}" in done.err


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"schema": 1', '"schema": 99'),
        lambda text: text.replace('"latency_p50": ', '"latency_p50": NaN, "x": ', 1),
        lambda text: "",
    ],
    ids=["truncated", "newer schema", "NaN", "empty"],
)
def test_a_damaged_baseline_is_an_error_and_never_no_baseline(stored: Project, damage) -> None:
    path = baseline_of(stored, "steady")
    path.write_text(damage(path.read_text()))
    done = stored.perfci("check").without_traceback()
    assert done.code == 4, done.text
    assert path.name in done.err


def test_list_show_diff_and_remove(stored: Project) -> None:
    listed = stored.perfci("baseline", "list").out
    key = listed.splitlines()[0]
    assert "steady" in listed
    assert "latency_p50" in stored.perfci("baseline", "show", "steady").out
    same = stored.perfci("baseline", "diff", key, key)
    assert same.code == 0
    assert "+0.0 %" in same.out
    assert stored.perfci("baseline", "remove", key, "steady").code == 0
    assert "steady" not in stored.perfci("baseline", "list").out
    nowhere = stored.perfci("baseline", "diff", key, "nope")
    assert "no baselines of environment nope" in nowhere.without_traceback().err
    unknown = stored.perfci("baseline", "show", "stedy").without_traceback()
    assert unknown.code == 2


def test_a_dirty_tree_is_no_baseline(stored: Project) -> None:
    stored.counting(50)
    done = stored.perfci("baseline", "update", ".").without_traceback()
    assert done.code == 2
    assert "HEAD" in done.err


def test_a_gating_metric_that_the_baseline_has_and_head_no_longer_reports_is_told(
    project: Project,
) -> None:
    source = (
        "import lib\nimport perfci\n\n"
        "@perfci.benchmark(metrics=lib.METRICS)\ndef work():\n    return int\n"
    )
    project.write("benchmarks/bench_work.py", source)
    project.commit("base", **{"lib.py": 'METRICS = ["latency_p50", "peak_host_memory"]'})
    assert project.perfci("baseline", "update", "--rounds", "2").code == 0
    project.commit("head", **{"lib.py": 'METRICS = ["peak_host_memory"]'})
    report = project.report("check", "--rounds", "2", "--no-confirm")
    row = rows(report, "work")["latency_p50"]
    assert (row["status"], row["warnings"]) == ("removed", [words(LEFT_OUT)])
    assert f"warning: work: latency_p50 ({words(LEFT_OUT)})" in report["verdict"]["reasons"]
