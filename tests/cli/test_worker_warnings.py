"""Workers' warnings are in every report, and shown as untrusted text."""

from __future__ import annotations

import pytest

from perfci.commands.run_to_report import warning_notes
from perfci.model.measuring import WorkerOutput
from tests.builders.project import Project
from tests.verdict.workers import worker

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("single_round")]

UNCHECKED = """\
import perfci
from perfci.collector import Work

Odd = type("<img src=x>\\n::error::@everyone", (), {})

@perfci.benchmark
def unchecked():
    return Work(lambda: sum(range(300)), accuracy=lambda: (Odd(), Odd()))
"""


@pytest.mark.torch
def test_an_output_that_cannot_be_checked_is_told_and_stays_text(project: Project) -> None:
    project.commit("benchmarks", **{"benchmarks/bench_one.py": UNCHECKED})
    comment = project.folder.parent / "comment.md"
    path = project.folder.parent / "report.json"
    done = project.perfci(
        "run", "--markdown", str(comment), "--json", str(path)
    ).without_traceback()
    (note,) = [line for line in done.text.splitlines() if "could not be checked" in line]
    assert note.startswith("note: unchecked: the output could not be checked: ")
    assert not any(line.startswith("::") for line in done.text.splitlines())
    written = comment.read_text()
    assert "could not be checked" in written
    assert "<img" not in written
    assert "@everyone" not in written


def warned(side: str, name: str, *warnings: str) -> WorkerOutput:
    return worker(side, 1, {}, case=name, warnings=warnings)


def test_a_warning_is_noted_once_with_its_cases_and_heads_own_first() -> None:
    outputs = [
        warned("base", "a", "both", "base's"),
        *(warned("head", "a", "both", "head's") for _ in range(3)),
        *(warned("head", name, "head's") for name in "bcde"),
    ]
    assert warning_notes(outputs) == (
        "a, b, c and 2 more, on head: head's.",
        "a, on both sides: both.",
        "a, on base: base's.",
    )


def test_of_one_side_alone_no_side_is_named() -> None:
    assert warning_notes([warned("head", "a", "odd")]) == ("a: odd.",)


def test_neither_many_nor_long_warnings_fill_a_report() -> None:
    notes = warning_notes([warned("head", "a", *(f"{n}" + "x" * 10_000 for n in range(1000)))])
    assert len(notes) == 21
    assert notes[-1] == "Workers gave 980 more warnings."
    assert max(map(len, notes)) < 400
