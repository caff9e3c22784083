"""perfci as a library, as notebooks and scripts call it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import perfci
from perfci.history.store import open_history
from tests.builders.project import Project
from tests.builders.recorded import change, recorded

GOLDEN = Path(__file__).parent.parent / "data" / "golden" / "report.json"


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A history of three runs, and a change that nobody wants in the frame."""
    place = tmp_path / "history.sqlite"
    with open_history(str(place)) as opened:
        opened.record([recorded(2), recorded(1), recorded(3)])
        opened.remember([change()])
    return place


@pytest.mark.processes
def test_two_commits_are_compared_without_a_word(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PERFCI_CACHE_DIR", str(project.cache))
    project.counting(1000)
    project.commit("base")
    project.counting(30_000)
    project.commit("slower")
    heard: list[str] = []
    report = perfci.compare(
        "main~1", "main", repository=project.folder, rounds=2, select="counting",
        progress=heard.append, log_folder=project.folder.parent / "logs",
    )  # fmt: skip
    assert isinstance(report, perfci.Report)
    assert report.head.sha == project.git("rev-parse", "HEAD").strip()
    frame = report.to_frame().set_index(["case", "metric"])
    slower = frame.loc[("counting", "latency_p50")]
    assert slower["head_center"] > 0
    assert "counting: round 1 of 2" in "\n".join(heard)
    assert capfd.readouterr() == ("", "")
    assert (project.folder.parent / "logs").is_dir()


def test_a_check_without_a_baseline_is_an_error_that_says_what_to_do(project: Project) -> None:
    project.counting(1000)
    project.commit("base")
    with pytest.raises(perfci.PerfciError) as refused:
        perfci.check(repository=project.folder)
    assert refused.value.slug == "no-baseline"
    assert "baseline update" in refused.value.advice


@pytest.mark.parametrize(
    "arguments", [{"rounds": 1}, {"budget": "soon"}, {"budget": -1}, {"inject": {"mood": 0.1}},
    {"inject": {"latency": 20.0}}, {"settings": {"quiet": {"pin": 1}}}],
)  # fmt: skip
def test_an_argument_without_sense_is_refused_before_anything_is_measured(
    project: Project, arguments: dict[str, object]
) -> None:
    project.counting(1000)
    project.commit("base")
    with pytest.raises(perfci.PerfciError) as refused:
        perfci.compare("HEAD", ".", repository=project.folder, **arguments)
    assert refused.value.message.startswith("the options: ")


def test_a_report_is_a_row_for_each_comparison() -> None:
    report = perfci.load(GOLDEN)
    assert isinstance(report, perfci.Report)
    frame = report.to_frame()
    assert list(frame["case"]) == [row.case for row in report.results]
    assert frame["ratio"].dtype == frame["base_center"].dtype == "float64"
    assert frame["confirmed"].dtype == "boolean"


def test_a_history_is_a_row_for_each_recorded_value(history: Path) -> None:
    found = perfci.load(history)
    assert isinstance(found, perfci.History)
    frame = found.to_frame()
    with open_history(str(history)) as opened:
        expected = {
            (one.sha, one.environment.key, point.case, point.metric, point.value)
            for one in opened.recorded_runs()
            for point in one.points
        }
    names = ["sha", "environment", "case", "metric", "value"]
    assert set(frame[names].itertuples(index=False, name=None)) == expected
    assert len(frame) == len(found) == len(expected)
    one = frame[(frame["case"] == frame["case"].iloc[0]) & (frame["metric"] == frame["metric"][0])]
    assert one["measured_at"].is_monotonic_increasing
    assert str(frame["committed_at"].dtype).endswith("UTC]")
    assert set(found.environments) == set(frame["environment"])


def test_what_is_nothing_of_ours_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.json").write_text("{}")
    slugs = {
        tmp_path / "missing": "unreadable",
        tmp_path / "empty": "nothing-to-load",
        tmp_path / "text.json": "other-schema",
        "ftp://example.org/report.json": "history-address",
    }
    for place, slug in slugs.items():
        with pytest.raises(perfci.PerfciError) as refused:
            perfci.load(place)
        assert refused.value.slug == slug, place


_ALONE = """
import sys
import perfci
heavy = {"msgspec", "numpy", "pandas", "click", "git", "sqlalchemy", "requests"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
import pkgutil
assert not {one.name for one in pkgutil.iter_modules(perfci.__path__)} & set(perfci.__all__)
from perfci.commands import check, compare, library
assert all(getattr(perfci, name) is getattr(library, name) for name in ("compare", "check", "load"))
assert all(getattr(perfci, name) is not None for name in perfci.__all__)
"""


def test_importing_perfci_imports_little_and_no_module_takes_a_functions_name() -> None:
    subprocess.run([sys.executable, "-c", _ALONE], check=True)
