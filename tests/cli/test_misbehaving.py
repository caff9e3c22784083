"""Benchmarks that misbehave: each is a failure with a reason, and the others continue."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.builders.project import NOISE_PASSES, Project, rows

pytestmark = pytest.mark.processes

FILES = Path(__file__).parent.parent / "data" / "misbehaving"

FAILURES = [
    ("crashes", "SIGSEGV", "setup", "crashed with SIGSEGV"),
    ("hangs", "timeout", "setup", "no answer within 2 s"),
    ("killed", "SIGKILL", "setup", "memory"),
    ("lingers", "SIGSEGV", "setup", "crashed with SIGSEGV"),
    ("killed_in_real_time", "SIGRTMIN+6", "setup", "crashed with SIGRTMIN+6"),
    ("takes_all_memory", "MemoryError", "setup", "bench_takes_all_memory.py:8"),
    ("exits", "SystemExit", "setup", "bench_exits.py:7"),
    ("leaves_a_child", "left_processes", "done", "left 1 process"),
    ("closes_descriptors", "closed_pipe", "setup", "file descriptors"),
    ("returns_nothing", "nothing_returned", "setup", "bench_returns_nothing.py:4"),
    ("returns_a_number", "not_callable", "setup", "42"),
    ("raises_late", "StopIteration", "warmup", "bench_raises_late.py:7"),
]


TWO = ("--rounds", "2")
"""Enough where it is asked who fails, and not what got slower."""

SOUND = """\
def prepare():
    pass

call = die = wait = prepare
"""
UNSOUND = """\
import os
import signal
import time

def prepare():
    raise RuntimeError("boom")

call = prepare

def die():
    os.kill(os.getpid(), signal.SIGSEGV)

def wait():
    time.sleep(600)
"""


def with_file(project: Project, name: str) -> Project:
    """Add the misbehaving file to a project that has a well-behaved one."""
    project.counting(1000)
    (project.folder / "benchmarks" / f"bench_{name}.py").write_text(
        (FILES / f"bench_{name}.py").read_text()
    )
    with (project.folder / "pyproject.toml").open("a") as file:
        file.write('memory_limit = "1GiB"\n' if name == "takes_all_memory" else "")
        file.write(NOISE_PASSES)
    project.commit(name)
    return project


@pytest.fixture(scope="module")
def all_at_once(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of one session with every file of FAILURES, each case called as its file."""
    project = Project(tmp_path_factory.mktemp("misbehaving") / "project")
    project.counting(1000)
    for name, *_ in FAILURES:
        text = (FILES / f"bench_{name}.py").read_text()
        project.write(f"benchmarks/bench_{name}.py", text.replace("misbehaving(", f"{name}("))
    with (project.folder / "pyproject.toml").open("a") as file:
        file.write('memory_limit = "1GiB"\n')
        file.write(NOISE_PASSES)
    project.commit("all of them")
    # as base does: not head's doing
    return project.report("compare", "HEAD", "HEAD", "--same", code=0)


@pytest.mark.parametrize(("name", "kind", "stage", "message"), FAILURES)
def test_it_fails_with_a_reason(
    all_at_once: dict[str, Any], name: str, kind: str, stage: str, message: str
) -> None:
    failures = {one["side"]: one for one in all_at_once["failures"] if one["case"] == name}
    assert set(failures) == {"base", "head"}
    for failure in failures.values():
        assert (failure["kind"], failure["stage"]) == (kind, stage), failure
        assert message in failure["message"]
    assert rows(all_at_once, name)["latency_p50"]["status"] == "failed"


def test_the_others_go_on(all_at_once: dict[str, Any]) -> None:
    assert {one["case"] for one in all_at_once["failures"]} == {name for name, *_ in FAILURES}
    for case in ("steady", "counting"):
        row = rows(all_at_once, case)["latency_p50"]
        assert min(row[side]["workers"] for side in ("base", "head")) >= 5
        assert row["status"] not in {"failed", "new", "removed", "not_comparable"}


@pytest.mark.torch
def test_an_output_on_another_device_fails_with_a_reason(project: Project) -> None:
    with_file(project, "another_device")
    options = ("--same", "--rounds", "2", "-k", "misbehaving")
    report = project.report("compare", "HEAD", "HEAD", *options)
    told = {(one["kind"], one["stage"]) for one in report["failures"]}
    assert told == {("wrong_device", "first_call")}
    assert all("meta" in one["message"] for one in report["failures"])


def test_what_fails_on_head_only_is_an_error_and_the_others_go_on(project: Project) -> None:
    base = with_file(project, "fails_with_its_library").commit("base", **{"kind.py": SOUND})
    project.commit("head", **{"kind.py": UNSOUND})
    report = project.report("compare", base, "HEAD", "--all", *TWO, code=3)
    failures = {one["case"]: (one["side"], one["stage"], one["kind"]) for one in report["failures"]}
    assert failures == {
        "in_setup": ("head", "setup", "RuntimeError"),
        "in_a_call": ("head", "first_call", "RuntimeError"),
        "by_a_signal": ("head", "setup", "SIGSEGV"),
        "by_hanging": ("head", "setup", "timeout"),
    }
    for case in failures:
        assert rows(report, case)["latency_p50"]["status"] == "failed"
        assert any(one.startswith(f"{case}: head failed") for one in report["verdict"]["reasons"])
    assert report["verdict"]["status"] == "error"
    assert rows(report, "steady")["latency_p50"]["base"]["workers"] == 2


def test_nonsense_on_the_pipe_of_results_fails_its_own_case(project: Project) -> None:
    with_file(project, "speaks_nonsense")
    report = project.report("compare", "HEAD", "HEAD", "--same", *TWO)
    failed = {failure["case"]: failure for failure in report["failures"]}
    assert {failure["kind"] for failure in failed.values()} == {"protocol"}, failed
    cases = {row["case"] for row in report["results"]}
    assert set(failed) == cases - {"counting", "steady"}
    assert len(failed) == 14
    assert rows(report, "steady")["latency_p50"]["base"]["workers"] == 2


def test_numbers_beyond_computing_cost_no_session(project: Project) -> None:
    with_file(project, "gives_enormous_numbers")
    report = project.report("compare", "HEAD", "HEAD", "--same", code=0)
    assert not report["failures"]
    found = rows(report, "enormous")
    for name in ("largest", "smallest", "exactly"):
        assert any(one["code"] == "out-of-range" for one in found[name]["findings"])
    assert rows(report, "steady")["latency_p50"]["base"]["workers"] >= 5


def test_nonsense_instead_of_a_discovery_fails_its_own_file(project: Project) -> None:
    with_file(project, "speaks_nonsense")
    say = (FILES / "bench_speaks_nonsense.py").read_text().partition("@perfci")[0]
    for number, line in enumerate(('{"say": "discovery"}', '{"say": "imported"}')):
        project.write(f"benchmarks/bench_{number}.py", f"{say}say({line.encode()!r})\n")
    project.write("benchmarks/bench_red.py", 'raise ValueError("\\x1b]0;title\\x07\\x1b[31mred")\n')
    project.commit("nonsense")
    done = project.perfci("list").without_traceback()
    assert done.code == 3
    assert "steady" in done.out
    assert done.err.count(": protocol: ") == 2
    assert "ValueError: benchmarks/bench_red.py:1: red" in done.err
    assert "\x1b" not in done.text


def test_too_little_time_to_import_is_not_called_a_broken_import(project: Project) -> None:
    project.counting(1000)
    project.commit("base")
    done = project.perfci(
        "compare", "HEAD", "HEAD", "--same", "--budget", "0.001s"
    ).without_traceback()
    assert done.code == 3
    assert "in the time there was" in done.err
    assert "Raise --budget" in done.err
    assert "Fix the import" not in done.err


def test_sys_exit_on_import_fails_its_file_only(project: Project) -> None:
    with_file(project, "exits_on_import")
    report = project.report("compare", "HEAD", "HEAD", "--same", *TWO)
    assert {failure["kind"] for failure in report["failures"]} == {"SystemExit"}
    assert {failure["case"] for failure in report["failures"]} == {
        "benchmarks/bench_exits_on_import.py"
    }
    assert "latency_p50" in rows(report, "steady")


def test_endless_printing_neither_blocks_nor_fills_the_disk(
    project: Project, tmp_path: Path
) -> None:
    with_file(project, "prints_without_end")
    logs = tmp_path / "logs"
    report = project.report("compare", "HEAD", "HEAD", "--same", *TWO, "--log-dir", str(logs))
    assert rows(report, "misbehaving")["latency_p50"]["base"]["workers"] == 2
    kept = list((logs / "workers").glob("misbehaving*"))
    assert kept
    assert max(path.stat().st_size for path in kept) < 300_000
    assert re.search("bytes left out", kept[0].read_text())


def test_changing_directory_changes_nothing(project: Project) -> None:
    with_file(project, "changes_directory")
    report = project.report("compare", "HEAD", "HEAD", "--same", *TWO)
    assert not report["failures"]
    assert rows(report, "well_behaved")["latency_p50"]["base"]["workers"] == 2


def test_slower_than_the_whole_budget_is_inconclusive_and_says_so(project: Project) -> None:
    with_file(project, "too_slow")
    report = project.report(
        "compare", "HEAD", "HEAD", "--same", "-k", "slow", "--budget", "4s", code=3
    )
    row = rows(report, "slow")["latency_p50"]
    assert row["status"] == "inconclusive"
    assert "budget" in " ".join(row["warnings"])
    assert any("--budget" in note for note in report["notes"])
    assert report["verdict"]["status"] == "error"  # nothing at all was measured


def test_no_process_is_left_behind(project: Project) -> None:
    with_file(project, "leaves_a_child")
    project.perfci("compare", "HEAD", "HEAD", "--same", "-k", "misbehaving")
    assert not list(project.cache.glob("session-*"))
    left = [entry.name for entry in Path("/proc").iterdir() if _works_in(entry, project.cache)]
    assert not left


@pytest.mark.torch
def test_a_model_that_would_need_unpickling_is_refused(project: Project) -> None:
    import torch

    model, inputs = project.folder / "model.pt", project.folder / "inputs.pt"
    torch.save(torch.nn.Linear(2, 2), model)
    torch.save(torch.ones(1, 2), inputs)
    with (project.folder / "pyproject.toml").open("a") as file:
        file.write(
            '[[tool.perfci.saved]]\nname = "saved"\nmodel_path = "model.pt"\n'
            'inputs_path = "inputs.pt"\n'
        )
        file.write(NOISE_PASSES)
    project.counting(1000)
    project.commit("saved")
    report = project.report("compare", "HEAD", "HEAD", "--same", code=0)
    assert {failure["case"] for failure in report["failures"]} == {"saved[mode=eager]"}
    assert "allow_pickle" in report["failures"][0]["message"]
    assert rows(report, "steady")["latency_p50"]["base"]["workers"] >= 5


def _works_in(process: Path, folder: Path) -> bool:
    """Whether it was started there, as a benchmark's children are; the folder may be gone."""
    try:
        return str((process / "cwd").readlink()).startswith(str(folder))
    except OSError:  # no process, or it has ended, or is another user's
        return False
