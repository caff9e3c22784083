"""A case that is the same code on both sides takes one round. One that may differ takes all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.project import NOISE_PASSES, QUICK, Project, rows

BENCHMARK = """\
from pathlib import Path
import perfci
from lib import work

@perfci.benchmark
def counting():
    return work

@perfci.benchmark
def reading():
    text = Path("notes.md").read_text()
    return lambda: len(text)
"""


@pytest.fixture
def settled(project: Project) -> Project:
    for path, text in {
        "pyproject.toml": QUICK + NOISE_PASSES,
        "benchmarks/bench_one.py": BENCHMARK,
        "lib.py": "def work():\n    return sum(range(1000))\n",
        "unused.py": "x = 1\n",
        "notes.md": "one\n",
        "weights.bin": "1",
    }.items():
        project.write(path, text)
    project.commit("base")
    return project


def methods(project: Project, *arguments: str) -> dict[str, str]:
    report = project.report("compare", "HEAD~1", "HEAD", *arguments)
    of = {case: rows(report, case)["latency_p50"] for case in ("counting", "reading")}
    _check(report, of)
    return {case: row["method"] for case, row in of.items()}


def _check(report: dict[str, Any], of: dict[str, dict[str, Any]]) -> None:
    for case, row in of.items():
        same = row["method"] == "same_code"
        assert row["head"]["workers"] == 1 if same else row["head"]["workers"] >= 5
        assert not same or case in report["same_code"]
        assert not same or row["status"] == "unchanged"


def test_what_no_case_uses_costs_one_round(settled: Project) -> None:
    unused = {"unused.py": "x = 2\n", "README.md": "new\n", "weights.bin": "2"}
    settled.commit("other", **unused)
    assert methods(settled) == {"counting": "same_code", "reading": "same_code"}


def test_a_change_that_no_case_uses_is_said_first_and_no_pass_under_strict(
    settled: Project,
) -> None:
    settled.commit("other", **{"unused.py": "x = 2\n", "uv.lock": "", "README.md": "new\n"})
    report = settled.report("compare", "HEAD~1", "HEAD", code=0)
    (finding,) = report["verdict"]["findings"]
    assert finding["code"] == "nothing-exercised"
    assert finding["arguments"] == {"names": "unused.py, uv.lock", "sources": 1, "locks": 1}
    done = settled.perfci("compare", "HEAD~1", "HEAD", "--strict")
    assert done.code == 3
    assert "inconclusive — nothing of this change was exercised" in done.text


def test_a_change_of_prose_alone_is_no_finding(settled: Project) -> None:
    settled.commit("prose", **{"README.md": "new\n", "docs/conf.py": "x = 1\n"})
    report = settled.report("compare", "HEAD~1", "HEAD", "--strict", code=0)
    assert report["verdict"]["findings"] == []


WRITING = """\
from pathlib import Path
import perfci
from lib import work

@perfci.benchmark
def writing():
    Path("out.json").write_text("{}")
    Path("unused.py").write_text("x = 3")
    return work
"""


@pytest.mark.processes
@pytest.mark.usefixtures("single_round")
def test_a_side_that_writes_to_its_sources_is_an_error(settled: Project) -> None:
    settled.commit("writing", **{"benchmarks/bench_one.py": WRITING})
    settled.commit("other", **{"lib.py": "def work():\n    return sum(range(1001))\n"})
    report = settled.report("compare", "HEAD~1", "HEAD", code=3)
    assert report["verdict"]["status"] == "error"
    written = {one["side"]: one for one in report["failures"] if one["case"] == "unused.py"}
    assert set(written) == {"base", "head"}
    assert "`unused.py` of base's tree changed while it was measured" in written["base"]["message"]


@pytest.mark.processes
@pytest.mark.usefixtures("single_round")
def test_without_the_library_that_sees_looks_each_case_is_measured_and_a_note_says_so(
    settled: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFCI_LOOKS", "off")
    settled.commit("other", **{"unused.py": "x = 2\n"})
    report = settled.report("compare", "HEAD~1", "HEAD")
    assert report["same_code"] == []
    assert rows(report, "counting")["latency_p50"]["method"] == "paired_t"
    assert len([note for note in report["notes"] if "PERFCI_LOOKS=off" in note]) == 1


def test_prose_that_a_case_reads_is_its_code(settled: Project) -> None:
    settled.commit("notes", **{"notes.md": "one, two\n"})
    assert methods(settled) == {"counting": "same_code", "reading": "paired_t"}


def test_what_is_imported_is_measured(settled: Project) -> None:
    settled.commit("change", **{"lib.py": "def work():\n    return sum(range(1001))\n"})
    assert "same_code" not in methods(settled).values()


def test_all_measures_everything(settled: Project) -> None:
    settled.commit("other", **{"unused.py": "x = 2\n"})
    assert set(methods(settled, "--all").values()) == {"paired_t"}


LATER = """\
import threading
import time
from pathlib import Path
import perfci
from lib import work

def read():
    return Path("notes.md").read_text()

@perfci.benchmark
def plain():
    return work

@perfci.benchmark
def evicting():
    cache = {}
    def call():
        cache[len(cache)] = read() if len(cache) == 50 else ""
        return work()
    return call

@perfci.benchmark
def importing_later():
    calls = []
    def call():
        calls.append(1)
        if len(calls) == 50:
            import unused
        return work()
    return call

@perfci.benchmark
def reading_in_the_background():
    def later():
        time.sleep(0.1)
        read()
    threading.Thread(target=later, daemon=True).start()
    return work
"""


@pytest.mark.processes
@pytest.mark.usefixtures("single_round")
def test_what_a_case_does_only_after_many_calls_is_seen_however_many_cases_its_file_has(
    settled: Project,
) -> None:
    whole_round = (QUICK + NOISE_PASSES).replace("round_time = 0.01", "round_time = 0.2")
    settled.commit("later", **{"benchmarks/bench_one.py": LATER, "pyproject.toml": whole_round})
    settled.commit("other", **{"unused.py": "x = 2\n", "notes.md": "one, two\n"})
    report = settled.report("compare", "HEAD~1", "HEAD")
    assert report["same_code"] == ["plain"]
    assert rows(report, "plain")["latency_p50"]["head"]["workers"] >= 1
