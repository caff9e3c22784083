"""A suite of asv, measured as it is: real sessions of a real repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.measure.selection import written_in
from tests.builders.project import QUICK, Project, rows

pytest.importorskip("asv_runner", reason="asv_runner is not installed")
pytest.importorskip("pympler", reason="pympler is not installed")
pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("single_round")]

CONFIGURATION = """\
{
    // as asv reads it: with comments
    "version": 1,
    "project": "lib",
    "benchmark_dir": "suite",
}
"""
SUITE = """\
from lib import VALUES, work
from .shared import numbers


class TimeWork:
    params = [["a b", "c"], [10, 2000]]
    param_names = ["kind", "size"]
    skip_params = [("c", 2000)]

    def setup(self, kind, size):
        self.values = list(range(size))

    def time_work(self, kind, size):
        assert kind in {"a b", "c"}
        return work(self.values)


class TimeUsedUp:
    number = 1
    open = 0

    def setup(self):
        assert not self.open
        self.open, self.values = 1, numbers()

    def time_pop(self):
        self.values.pop()
        assert not self.values

    def teardown(self):
        assert not self.values
        self.open = 0


class Cached:
    unit = "things"

    def setup_cache(self):
        with open("made.txt", "a") as file:
            file.write("once")
        return {"made": 1}

    def track_cached(self, made):
        with open("made.txt") as file:
            assert file.read() == "once"
        return made["made"] + len(VALUES)


class Others:
    def mem_values(self):
        return list(VALUES)

    def peakmem_values(self):
        return bytearray(len(VALUES))

    def timeraw_import(self):
        return "assert lib.VALUES; assert 'perfci' not in sys.modules", "import lib, sys"


def time_not_here():
    pass


def _absent():
    raise NotImplementedError("no card")


time_not_here.setup = _absent
"""


@pytest.fixture
def suite(project: Project) -> Project:
    project.write("pyproject.toml", QUICK)
    project.write("bench/asv.conf.json", CONFIGURATION)
    project.write("bench/suite/__init__.py", "")
    project.write("bench/suite/shared.py", "def numbers():\n    return [1]\n")
    project.write("bench/suite/cases.py", SUITE)
    text = "VALUES = list(range({}))\n\n\ndef work(values):\n    return [v for v in values] * {}\n"
    project.commit("base", **{"lib.py": text.format(1000, 1)})
    project.commit("slower", **{"lib.py": text.format(1100, 20)})
    return project


def test_the_suite_that_asvs_configuration_names_is_found_and_measured(suite: Project) -> None:
    listed = suite.perfci("list").without_traceback()
    assert "cases.TimeWork.time_work[kind=a_b,size=10]" in listed.out, listed.text
    assert "bench/suite/cases.py:13" in listed.out
    report = suite.report("compare", "HEAD~1", "HEAD", "--budget", "5m", code=None)
    assert not report["failures"], report["failures"]
    assert report["skipped"] == {
        "cases.TimeWork.time_work[kind=c,size=2000]": "the suite skips these parameters",
        "cases.time_not_here": "its setup raised NotImplementedError('no card')",
    }
    time = rows(report, "cases.TimeWork.time_work[kind=a_b,size=2000]")["latency_p50"]
    assert time["head"]["center"] > 0
    assert rows(report, "cases.TimeUsedUp.time_pop")["latency_p50"]["base"]["center"] > 0
    assert rows(report, "cases.Others.timeraw_import")["latency_p50"]["base"]["center"] > 0
    value = rows(report, "cases.Cached.track_cached")
    assert value.keys() == {"value"}
    assert [value["value"][side]["center"] for side in ("base", "head")] == [1001, 1101]
    assert (value["value"]["unit"], value["value"]["status"]) == ("things", "regressed")
    size = rows(report, "cases.Others.mem_values")
    assert (size.keys(), size["object_size"]["status"]) == ({"object_size"}, "regressed")
    assert rows(report, "cases.Others.peakmem_values").keys() == {"peak_host_memory"}


def test_a_python_without_asv_runner_is_told_what_to_install(
    suite: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys\nsys.modules['asv_runner'] = None\n")
    suite.write("pyproject.toml", QUICK + 'pass_env = ["PYTHONPATH"]\n')
    monkeypatch.setenv("PYTHONPATH", str(hidden))
    listed = suite.perfci("list").without_traceback()
    assert listed.code == 2
    assert "bench/suite/ is a suite of asv" in listed.text
    assert "-m pip install asv_runner" in listed.text


def test_what_a_suite_names_is_read_without_importing_it(suite: Project) -> None:
    """Base's files are read so: what head no longer has is removed."""
    root = suite.folder
    written = written_in(root, [str(root / "bench/suite/cases.py")])["bench/suite/cases.py"]
    assert {name: each.metrics for name, each in written.items()} == {
        "cases.Cached.track_cached": (),
        "cases.time_not_here": None,
        "cases.TimeWork.time_work": None,
        "cases.TimeUsedUp.time_pop": None,
        "cases.Others.mem_values": (),
        "cases.Others.peakmem_values": ("peak_host_memory",),
        "cases.Others.timeraw_import": None,
    }
