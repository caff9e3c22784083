"""A session's rules, whatever its workers are: who is measured next, and what ends it."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest

from perfci.model.worker import WorkOrder
from tests.builders.project import Project, rows
from tests.builders.simulated import Simulated

SLOW = """\
import time
import perfci

@perfci.benchmark
def slow():
    time.sleep(30)
    return int
"""
HITS = """\
import os
import perfci

@perfci.benchmark
def hits():
    value = float(os.environ["HITS"])
    return int, perfci.metric("hits", lambda: value, gate="fail")
"""
OTHER = """\
import perfci

@perfci.benchmark
def other_{number}():
    return int
"""
SAME = ("compare", "HEAD", "HEAD", "--allow-same-commit")


def undecided(work: WorkOrder, number: int) -> float:
    """Rounds 5 % up and down: nine of them leave it open at 5 %, and a few more might not."""
    return 0.01 * math.exp(0.05 * (-1) ** number * (work.side == "head"))


@pytest.fixture
def workers() -> Simulated:
    return Simulated()


@pytest.fixture
def project(tmp_path: Path, workers: Simulated) -> Project:
    project = Project(tmp_path / "project", workers)
    project.counting(1000)
    project.commit("base")
    return project


def allow(project: Project, *, most: int) -> None:
    path = project.folder / "pyproject.toml"
    path.write_text(path.read_text().replace("max_rounds = 9", f"max_rounds = {most}"))


def test_a_decided_case_gets_its_least_rounds(project: Project, workers: Simulated) -> None:
    workers.spread = 0.0005
    project.report(*SAME, "--rounds", "6", code=0)
    assert workers.started == {
        (case, side): 6 for case in ("counting", "steady") for side in ("base", "head")
    }


@pytest.mark.parametrize(("of_head", "measured"), [(0.0, 2), (747.0, 5)])
def test_growth_is_measured_until_the_workers_of_both_sides_agree(
    project: Project, workers: Simulated, of_head: float, measured: int
) -> None:
    """Two that agree by luck say nothing of a leak: seen, 0 on base and 747 on head of no leak."""
    asked: list[str] = []

    def growth(order: WorkOrder) -> float:
        asked.append(order.side)
        return of_head if order.side == "head" else 0.0

    workers.growth = growth
    report = project.report(*SAME, "--rounds", "6", "-k", "steady", code=0)
    assert asked.count("base") == asked.count("head") == measured
    (row,) = (row for row in report["results"] if row["metric"] == "memory_growth")
    assert row["method"] == "exact"
    assert row["status"] == ("regressed" if of_head else "unchanged")


def test_a_side_alone_measures_growth_as_often_as_decides(
    project: Project, workers: Simulated
) -> None:
    asked: list[str] = []
    workers.growth = lambda order: float(asked.append(order.side) or 0)
    project.report("run", "--rounds", "6", "-k", "steady", code=0)
    assert asked == ["head"] * 5


def test_an_undecided_case_gets_more_rounds_but_no_more_than_the_most(
    project: Project, workers: Simulated
) -> None:
    allow(project, most=9)
    workers.latency = undecided
    project.report(*SAME, "-k", "steady", "--rounds", "5")
    assert workers.started["steady", "head"] == 9


def test_an_undecided_metric_of_the_benchmark_gets_more_rounds_and_does_not_pass(
    project: Project, workers: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    def before(work: WorkOrder, number: int) -> None:
        monkeypatch.setenv("HITS", str(undecided(work, number) ** 2.3))

    allow(project, most=9)
    workers.spread, workers.before = 0.0005, before
    project.commit(**{"benchmarks/bench_hits.py": HITS})
    report = project.report(*SAME, "-k", "hits", "--rounds", "5")
    assert workers.started["hits", "head"] > 5
    (reason,) = report["verdict"]["reasons"]
    assert (report["verdict"]["status"], "hits" in reason) == ("inconclusive", True)


def test_one_fork_server_of_a_file_gives_the_least_rounds_and_a_second_one_the_others(
    project: Project, workers: Simulated
) -> None:
    project.report(*SAME, "--rounds", "5", code=0)
    assert workers.servers == 1
    project.report(*SAME, "--rounds", "5", "--keep-bursts", str(project.folder.parent), code=0)
    assert workers.servers == 1 + 2


def test_each_of_many_files_has_its_least_rounds_from_one_fork_server(
    project: Project, workers: Simulated
) -> None:
    many = {f"benchmarks/bench_{n}.py": OTHER.format(number=n) for n in range(6)}
    project.commit("many", **many)
    project.report(*SAME, "-k", "other", "--rounds", "5", code=0)
    assert workers.servers == 6
    assert all(workers.started[f"other_{n}", "head"] == 5 for n in range(6))


def test_a_case_that_no_round_left_could_decide_gets_none_and_is_named(
    project: Project, workers: Simulated
) -> None:
    allow(project, most=9)
    workers.latency = lambda work, number: (
        0.01 * (1 + 0.2 * ((3 * number + 2 * (work.side == "head")) % 5))
    )
    report = project.report(*SAME, "--rounds", "5", "-k", "steady")
    assert workers.started["steady", "head"] == 5
    (note,) = [note for note in report["notes"] if "Not measured further" in note]
    assert "--budget nor `max_rounds`" in note
    assert "steady (latency_p50" in note


def test_all_cases_get_their_minimum_before_any_gets_more(
    project: Project, workers: Simulated
) -> None:
    allow(project, most=7)
    order: list[str] = []
    workers.latency = undecided
    workers.before = lambda work, _: order.append(work.case) if work.side == "head" else None
    project.report(*SAME, "--rounds", "5")
    assert sorted(order[:10]) == ["counting"] * 5 + ["steady"] * 5
    assert len(order) == 14


def test_the_side_that_starts_first_alternates(project: Project, workers: Simulated) -> None:
    allow(project, most=5)
    order: list[str] = []
    workers.before = lambda work, _: order.append(work.side)
    project.report(*SAME, "-k", "steady", "--rounds", "5")
    firsts = order[::2]
    assert len(firsts) == 5
    assert all(one != other for one, other in pairwise(firsts)), firsts


def test_the_budget_ends_it_and_every_round_is_whole(project: Project, workers: Simulated) -> None:
    allow(project, most=99)
    workers.spread = 0.05
    began = workers.time
    options = ("--budget", "6s", "--rounds", "5")
    report = project.report(*SAME, *options)
    assert workers.time - began < 6.5
    assert any("--budget" in note for note in report["notes"])
    assert 5 <= workers.started["steady", "head"] < 99
    for (case, side), started in workers.started.items():
        assert rows(report, case)["latency_p50"][side]["workers"] == started, "started in vain"


@pytest.mark.parametrize("budget_s", [29, 31, 33])
def test_no_round_begins_that_would_outlast_the_budget(
    project: Project, workers: Simulated, budget_s: int
) -> None:
    project.commit("slow", **{"benchmarks/bench_slow.py": SLOW.replace("30", "3")})
    began = workers.time
    report = project.report(*SAME, "-k", "slow", "--budget", f"{budget_s}s", "--rounds", "99")
    assert budget_s - 12 < workers.time - began < budget_s  # two sides of 3 s each, and the rest
    measured = rows(report, "slow")["latency_p50"]["head"]["workers"]
    assert workers.started["slow", "head"] == measured > 2


def test_a_minimum_that_the_budget_cut_names_the_case(project: Project) -> None:
    allow(project, most=9)
    report = project.report(*SAME, "--budget", "1.0s", "--rounds", "9")
    assert any("fewer rounds than the minimum" in note for note in report["notes"])


@pytest.mark.parametrize(
    ("error", "said"),
    [(KeyboardInterrupt(), "Interrupted"), (OSError(28, "No space left"), "No space left")],
)
def test_what_ends_it_early_leaves_a_report_of_what_was_measured(
    project: Project, workers: Simulated, error: BaseException, said: str
) -> None:
    def at_the_third(work: WorkOrder, number: int) -> None:
        if number == 3:
            raise error

    workers.before = at_the_third
    report = project.report(*SAME, code=3)
    assert report["interrupted"]
    assert any(said in note for note in report["notes"])
    counted = {
        rows(report, case)["latency_p50"]["head"]["workers"] for case in ("counting", "steady")
    }
    assert counted == {2}


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (OSError(28, "No space left"), 3)]
)
def test_ctrl_c_before_the_first_round_is_exit_code_130(
    project: Project, workers: Simulated, error: BaseException, code: int
) -> None:
    def at_once(*_: object) -> None:
        raise error

    workers.before = at_once
    assert project.report(*SAME, code=code)["interrupted"]


def test_a_side_that_fails_ends_its_case_alone(project: Project, workers: Simulated) -> None:
    def fails(work: WorkOrder, number: int) -> tuple[str, str] | None:
        failing = (work.case, work.side) == ("steady", "head") and number >= 2
        return ("RuntimeError", "boom") if failing else None

    workers.before = fails
    report = project.report(*SAME, code=3)
    assert [(one["case"], one["side"], one["kind"]) for one in report["failures"]] == [
        ("steady", "head", "RuntimeError")
    ]
    assert workers.started["steady", "base"] == 2
    assert rows(report, "counting")["latency_p50"]["head"]["workers"] >= 5


def test_one_that_takes_too_long_is_a_timeout_and_its_time_is_gone(
    project: Project, workers: Simulated
) -> None:
    project.commit("slow", **{"benchmarks/bench_slow.py": SLOW})
    began = workers.time
    report = project.report(*SAME, "-k", "slow")
    assert {(one["side"], one["kind"]) for one in report["failures"]} == {
        ("base", "timeout"),
        ("head", "timeout"),
    }
    assert report["failures"][0]["message"] == "no answer within 20 s: `timeout` of [tool.perfci]"
    assert workers.time - began >= 2 * 20


@pytest.mark.parametrize("side", ["base", "head"])
@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("kind", ["OutOfMemoryError", "OSError", "SIGKILL", "exit"])
def test_a_side_that_works_only_while_the_other_is_gone_is_measured_in_turns_with_it(
    project: Project, workers: Simulated, side: str, at: int, kind: str
) -> None:
    """A port, a lock, a card: the side that starts second fails, in whichever round."""

    def taken(work: WorkOrder, number: int) -> tuple[str, str] | None:
        crowded = work.side == side and workers.alive == 2 and number >= at
        return (kind, "it is taken") if crowded else None

    workers.before = taken
    report = project.report(*SAME, "-k", "steady", "--rounds", "5", code=0)
    assert report["failures"] == []
    row = rows(report, "steady")["latency_p50"]
    assert row["base"]["workers"] == row["head"]["workers"] == 5
    (note,) = [note for note in report["notes"] if "one at a time" in note]
    assert f"{side} failed in start ({kind}): it is taken" in note


@pytest.mark.parametrize("fork", ["true", "false"])
def test_alternate_sides_live_one_at_a_time_in_turns_abba(
    project: Project, workers: Simulated, fork: str
) -> None:
    path = project.folder / "pyproject.toml"
    path.write_text(f'{path.read_text()}residency = "alternate"\nquiet.fork = {fork}\n')
    workers.latency = lambda work, _: 0.002 if work.side == "head" else 0.001
    report = project.report(*SAME, "--rounds", "5", "-k", "steady", code=1)
    assert workers.at_once == 1
    assert workers.begun[:8] == ["base", "head", "head", "base"] * 2
    row = rows(report, "steady")["latency_p50"]
    assert (row["status"], round(row["ratio"], 1)) == ("regressed", 2.0)


def test_a_side_that_has_no_memory_before_the_other_is_there_fails_alone(
    project: Project, workers: Simulated
) -> None:
    started: list[str] = []

    def first(work: WorkOrder, number: int) -> tuple[str, str] | None:
        started.append(work.side)
        return ("OutOfMemoryError", "out of memory") if len(started) == 1 else None

    workers.before = first
    report = project.report(*SAME, "-k", "steady")
    assert [(one["side"], one["kind"]) for one in report["failures"]] == [
        ("base", "OutOfMemoryError")
    ]


def test_a_side_that_has_no_memory_alone_either_is_to_blame(
    project: Project, workers: Simulated
) -> None:
    large = "OutOfMemoryError", "out of memory"
    workers.before = lambda work, _: large if work.side == "head" else None
    report = project.report(*SAME, "-k", "steady", code=3)
    assert [(one["side"], one["kind"]) for one in report["failures"]] == [
        ("head", "OutOfMemoryError")
    ]


@pytest.mark.parametrize(("of_base", "of_head"), [(0, 1), (1, 1)])
def test_bursts_delayed_on_head_alone_are_found_and_kept_in_the_tail(
    project: Project, workers: Simulated, of_base: int, of_head: int
) -> None:
    """A thread of head's that takes the core slows one burst of each block: they were excluded."""
    path = project.folder / "pyproject.toml"
    path.write_text(path.read_text().replace("round_time = 0.01", "round_time = 0.1"))
    workers.delayed = lambda order: of_head if order.side == "head" else of_base
    report = project.report(*SAME, "--rounds", "5", "-k", "steady")
    of_case = rows(report, "steady")
    tail = {name: of_case[name] for name in ("latency_p95", "latency_mean")}
    codes = {name: [one["code"] for one in row["findings"]] for name, row in tail.items()}
    known = [one for one in report["findings"] if one["code"] == "delayed-more-cases"]
    if of_base == of_head:
        assert known == []
        assert "delayed-more" not in {code for found in codes.values() for code in found}
        assert tail["latency_mean"]["ratio"] < 1.01
        return
    assert known[0]["arguments"] == {"cases": "steady"}
    assert all("delayed-more" in found for found in codes.values())
    assert tail["latency_p95"]["ratio"] > 2.5
    assert tail["latency_mean"]["ratio"] > 1.05
    assert of_case["latency_p50"]["ratio"] < 1.01


@pytest.mark.parametrize(("of_main", "code"), [(10_000, 1), (30_000, 0), (60_000, 0)])
def test_a_report_always_says_that_base_has_commits_which_head_lacks(
    project: Project, of_main: int, code: int
) -> None:
    """Main was repaired, or slowed down as much as head: what is compared isn't head's change."""
    project.counting(10_000 if code == 0 else 30_000)
    parted = project.commit("parted")
    project.git("switch", "--quiet", "--create", "feature")
    project.counting(30_000)
    project.commit("own", **{"note.py": "NOTE = 1\n"})
    project.git("switch", "--quiet", "main")
    project.counting(of_main)
    project.commit("main's")
    options = ("-k", "counting", "--all")
    report = project.report("compare", "main", "feature", *options, code=code)
    (note,) = [text for text in report["notes"] if "lacks" in text]
    assert note.startswith("main has 1 commit that feature lacks")
    assert "`perfci compare main...feature`" in note
    project.git("switch", "--quiet", "feature")
    (note,) = [text for text in project.report("compare", "main")["notes"] if "lacks" in text]
    assert "`perfci compare main...`" in note
    for sides in (("main...feature",), ("main...",), ("main...feature", "feature"), (parted,)):
        alone = project.report("compare", *sides, *options, code=1 - code)
        assert alone["base"]["sha"] == parted
        assert alone["head"]["sha"] == project.head()
        assert not [text for text in alone["notes"] if "lacks" in text]


def test_revisions_without_a_common_commit_have_no_fork_point(project: Project) -> None:
    project.git("switch", "--quiet", "--orphan", "other")
    project.commit("other")
    done = project.perfci("compare", "main...other")
    assert done.code == 2
    assert "main and other have no common ancestor" in done.err
