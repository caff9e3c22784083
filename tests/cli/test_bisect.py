"""``perfci bisect`` as users run it: real repositories, simulated workers."""

from __future__ import annotations

import json
import shlex
from typing import Any

import jsonschema
import pytest

from perfci.commands.revisions import sides_of_report
from perfci.history.store import open_history
from perfci.model.run import Point
from perfci.model.worker import WorkOrder
from tests.builders.project import Project, rows
from tests.builders.recorded import recorded
from tests.builders.simulated import Simulated
from tests.schemas import schemas

BENCHMARK = """\
import perfci
from lib import work

@perfci.benchmark
def counting():
    return work
"""
COUNTED = """\
import lib
import perfci

@perfci.benchmark
def counted():
    return (lambda: None), perfci.metric("things", lambda: float(lib.COUNT), exact=True)
"""
WORK = "def work():\n    return sum(range({}))\n"


def history(project: Project, loops: list[int | str]) -> list[str]:
    """Commit a library for each: how much its ``work`` costs, or text that can't be imported."""
    project.write("benchmarks/bench_counting.py", BENCHMARK)
    return [
        project.commit(
            f"number {number}",
            **{
                "lib.py": one if isinstance(one, str) else WORK.format(one),
                "n.md": str(number),
            },
        )
        for number, one in enumerate(loops)
    ]


def bisected(project: Project, *arguments: str, code: int = 0) -> dict[str, Any]:
    path = project.folder.parent / "bisection.json"
    done = project.perfci("bisect", *arguments, "--json", str(path)).without_traceback()
    assert done.code == code, done.text
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schemas()["bisection.schema.json"]).validate(found)
    return found


def shas(culprit: dict[str, Any]) -> list[str]:
    return [one["sha"] for one in culprit["commits"]]


def test_the_slower_commit_is_found_with_its_size_and_a_line_that_replays_it(
    project: Project,
) -> None:
    made = history(project, [1000] * 6 + [1100] * 7)
    found = bisected(project, f"{made[0]}..{made[-1]}")
    (culprit,) = found["culprits"]
    assert shas(culprit) == [made[6]]
    assert culprit["commits"][0]["subject"] == "number 6"
    assert culprit["ratio_lo"] < 1.0 + 100 * 20e-9 / 21e-6 < culprit["ratio_hi"]
    assert (culprit["improved"], culprit["found"]) == (False, True)
    assert culprit["probability"] >= 0.99
    sides = f"{made[6][:10]}^ {made[6][:10]} --benchmarks-of {made[-1][:10]}"
    assert culprit["replay"] == f"perfci compare {sides} -k counting"
    assert (found["metric"], found["commits"], found["ended"]) == ("latency_p50", 12, "done")
    assert found["comparisons"] <= 8
    report = project.report(*culprit["replay"].split()[1:])
    assert 1.08 < rows(report, "counting")["latency_p50"]["ratio"] < 1.11


def test_a_benchmark_newer_than_the_culprit_measures_it_again_and_so_does_the_report(
    project: Project,
) -> None:
    made = [
        project.commit(f"number {number}", **{"lib.py": WORK.format(loops), "n.md": str(number)})
        for number, loops in enumerate([1000, 1000, 1500, 1500])
    ]
    project.write("benchmarks/bench_counting.py", BENCHMARK)
    newest = project.commit("the benchmark")
    (culprit,) = bisected(project, f"{made[0]}..{newest}")["culprits"]
    assert shas(culprit) == [made[2]]
    report = project.report(*culprit["replay"].split()[1:], code=None)
    row = rows(report, "counting")["latency_p50"]
    assert 1.4 < row["ratio"] < 1.6
    assert report["benchmarks_of"] == newest
    again = project.report(*row["replay"].split()[1:], code=None)
    assert again["benchmarks_of"] == newest
    path = project.folder.parent / "report.json"
    assert sides_of_report(path).benchmarks_of == newest


def test_commits_that_cannot_be_imported_are_skipped_and_the_answer_is_a_range(
    project: Project,
) -> None:
    broken = "raise ImportError('half done')\n"
    made = history(project, [1000, 1000, broken, broken, 1500])
    found = bisected(project, f"{made[0]}..{made[-1]}")
    (culprit,) = found["culprits"]
    assert shas(culprit) == made[2:5]
    assert culprit["found"]
    assert culprit["replay"].startswith(f"perfci compare {made[1][:10]} {made[4][:10]} ")
    skipped = {one["commit"]["sha"]: one["why"] for one in found["skipped"]}
    assert set(skipped) == set(made[2:4])
    assert all("half done" in why for why in skipped.values())


def test_two_changes_in_one_range_are_both_found(project: Project) -> None:
    made = history(project, [1000] * 2 + [1300] * 3 + [1000] * 2 + [1600] * 2)
    found = bisected(project, f"{made[0]}..{made[-1]}")
    assert [shas(one) for one in found["culprits"]] == [[made[2]], [made[5]], [made[7]]]
    assert [one["improved"] for one in found["culprits"]] == [False, True, False]


def test_a_merge_is_named_and_its_branch_is_a_range_of_its_own(project: Project) -> None:
    made = history(project, [1000, 1000])
    project.git("checkout", "--quiet", "-b", "topic")
    topic = [
        project.commit(f"topic {number}", **{"lib.py": WORK.format(loops), "topic": str(number)})
        for number, loops in enumerate([1000, 1000, 1400, 1400])
    ]
    project.git("checkout", "--quiet", "main")
    project.commit("meanwhile", other="x")
    project.git("merge", "--quiet", "--no-ff", "topic", "--message", "merge")
    merge = project.git("rev-parse", "HEAD").strip()
    project.commit("after", other="y")
    (culprit,) = bisected(project, f"{made[0]}..main")["culprits"]
    assert shas(culprit) == [merge]
    (culprit,) = bisected(project, f"{merge}^1..{merge}^2")["culprits"]
    assert shas(culprit) == [topic[2]]


def test_an_exact_count_is_searched_for_as_a_difference(project: Project) -> None:
    made = []
    for number, count in enumerate([3, 3, 5]):
        project.write("benchmarks/bench_counted.py", COUNTED)
        lines = f"COUNT = {count}\nNUMBER = {number}\n"
        made.append(project.commit(f"number {number}", **{"lib.py": lines}))
    asked = (f"{made[0]}..{made[-1]}", "--metric", "things")
    found = bisected(project, *asked)
    (culprit,) = found["culprits"]
    assert shas(culprit) == [made[2]]
    assert (culprit["ratio"], culprit["difference"]) == (None, 2.0)
    assert (culprit["difference_lo"], culprit["difference_hi"]) == (2.0, 2.0)


def test_a_killed_search_goes_on_where_it_ended(project: Project) -> None:
    made = history(project, [1000] * 3 + [1500] * 3)
    asked = (f"{made[0]}..{made[-1]}", "-k", "counting")

    class Killed(BaseException):
        pass

    def die(order: WorkOrder, number: int) -> None:
        if number > 12:
            raise Killed

    project.executor = Simulated(before=die)
    with pytest.raises(Killed):
        project.perfci("bisect", *asked, "--restart")
    resumed = project.executor = Simulated()
    finished = bisected(project, *asked)
    assert [shas(one) for one in finished["culprits"]] == [[made[3]]]
    measured = sum(count for (_, side), count in resumed.started.items() if side == "head")
    assert 0 < measured < finished["rounds"]
    again = project.executor = Simulated()
    assert bisected(project, *asked) == finished
    assert not again.started


def test_a_range_in_which_nothing_moved_is_no_answer(project: Project) -> None:
    made = history(project, [1000] * 4)
    done = project.perfci("bisect", f"{made[0]}..{made[-1]}").without_traceback()
    assert done.code == 3, done.text
    assert "[nothing-moved]" in done.err


def test_an_ended_budget_says_how_far_it_came(project: Project) -> None:
    """A session that time cut short is no reason to skip its commit."""
    made = history(project, [1000] * 8 + [1500] * 8)
    asked = f"{made[0]}..{made[-1]}"
    bisected(project, asked)
    assert isinstance(project.executor, Simulated)
    needed_s = project.executor.time - Simulated().time
    budget = f"{0.5 * needed_s}s"
    project.executor = Simulated()
    found = bisected(project, asked, "--restart", "--budget", budget, code=3)
    assert (found["ended"], found["skipped"]) == ("budget", [])
    assert set(made[7:9]) & {sha for one in found["culprits"] for sha in shas(one)}
    assert bisected(project, asked)["ended"] == "done"


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (("main",), "bad-range"),
        (("main..main",), "bad-range"),
        (("main..main~3",), "bad-range"),
        (("nowhere..main",), "bad-rev"),
        (("beside..main",), "unrelated-commits"),
        (("main~3..main", "--metric", "lateny"), "unknown-metric"),
        (("main~3..main", "-k", "nothing"), "nothing-selected"),
    ],
)
def test_wrong_requests_are_refused(
    project: Project, arguments: tuple[str, ...], slug: str
) -> None:
    history(project, [1000, 1000, 1000, 1500])
    project.git("checkout", "--quiet", "--orphan", "beside")
    project.commit("a history of its own")
    project.git("checkout", "--quiet", "main")
    done = project.perfci("bisect", *arguments).without_traceback()
    assert (done.code, f"[{slug}]" in done.err) == (2, True), done.text


def test_damaged_state_is_named_and_restart_helps(project: Project) -> None:
    made = history(project, [1000, 1500])
    bisected(project, f"{made[0]}..{made[-1]}")
    (state,) = project.cache.glob("*/bisect/*.json")
    state.write_text('{"good": [')
    done = project.perfci("bisect", f"{made[0]}..{made[-1]}")
    assert (done.code, "[damaged-file]" in done.err) == (4, True), done.text
    bisected(project, f"{made[0]}..{made[-1]}", "--restart")


def test_a_change_of_the_trend_is_searched_for_between_its_commits(project: Project) -> None:
    made = history(project, [1000] * 14 + [1500] * 14)
    place = str(project.folder.parent / "history.sqlite")
    with open_history(place) as opened:
        opened.record(
            [
                recorded(
                    number,
                    sha=sha,
                    points=(Point("counting", "latency_p50", "s", level),),
                )
                for number, sha in enumerate(made)
                for level in [(1.0 if number < 14 else 1.5) * (1.0 + 0.001 * (number % 3))]
            ]
        )
    trend = project.folder.parent / "trend.json"
    project.perfci("trend", "--history", place, "--json", str(trend))
    (event,) = json.loads(trend.read_text(encoding="utf-8"))["events"]
    perfci, bisect, *arguments = shlex.split(event["bisect"])
    assert (perfci, bisect) == ("perfci", "bisect")
    found = bisected(project, *arguments)
    (culprit,) = found["culprits"]
    assert shas(culprit) == [made[14]]
    assert (found["case"], found["metric"]) == ("counting", "latency_p50")
    assert found["commits"] < 28
