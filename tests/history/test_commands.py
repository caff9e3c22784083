"""``perfci history`` and ``--record``, as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfci.history.interchange import from_lines
from perfci.history.store import open_history
from tests.builders.project import Project
from tests.builders.recorded import THERE, change, in_order, recorded

FOREIGN = Path(__file__).parent.parent / "data" / "foreign"


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A history with two nights here and one elsewhere and a change."""
    place = str(tmp_path / "history.sqlite")
    with open_history(place) as history:
        history.record([recorded(1), recorded(2), recorded(3, THERE)])
        history.remember([change()])
    return place


def test_run_and_compare_record_what_they_measured(project: Project, tmp_path: Path) -> None:
    project.counting(1000)
    base = project.commit("The base: ünïcode")
    project.counting(1200)
    project.git("switch", "--quiet", "--create", "feature")
    head = project.commit("Slower")
    place = str(tmp_path / "h.sqlite")
    ran = project.perfci("run", "main", "--record", "-q", PERFCI_HISTORY=place)
    assert ran.code == 0, ran.text
    compared = project.perfci(
        "compare", "main", ".", "--record", "--history", place, RUNNER_NAME="lab-7"
    )
    assert "recorded 2 runs in" in compared.err
    with open_history(place, create=False) as history:
        runs = sorted(history.recorded_runs(), key=lambda one: (one.source, one.sha != base))
        assert [(one.source, one.sha, one.branch, one.position) for one in runs] == [
            ("compare", base, "main", 0),
            ("compare", head, "feature", 1),
            ("run", base, "main", 0),
        ]
        assert {one.subject for one in runs} == {"The base: ünïcode", "Slower"}
        assert {one.runner for one in runs[:2]} == {"lab-7"}
        for one in runs:
            cases = {(point.case, point.metric) for point in one.points}
            assert {("counting", "latency_p50"), ("steady", "latency_p50")} <= cases
            assert len(one.source_hashes) == 2


@pytest.mark.parametrize(
    ("options", "slug", "code"),
    [
        (("run", "--record"), "dirty-record", 2),
        (
            (
                "compare",
                "HEAD",
                "HEAD",
                "--allow-same-commit",
                "--record",
                "--inject",
                "latency=5%",
            ),
            "injected-record",
            2,
        ),
        (("run", "HEAD", "--record", "--history", "."), "no-history", 2),
        (("check", "HEAD", "--record", "--history", "damaged.sqlite"), "damaged-file", 4),
        (("run", "HEAD", "--record", "--history", "mysql://h/d"), "history-address", 2),
    ],
)
def test_what_cannot_be_recorded_is_said_before_anything_is_measured(
    project: Project, options: tuple[str, ...], slug: str, code: int
) -> None:
    project.commit("nothing to measure: anything that is would fail")
    project.write("damaged.sqlite", "x" * 4000)
    done = project.perfci(*options).without_traceback()
    assert (done.code, slug in done.err) == (code, True), done.text


def test_an_export_is_imported_elsewhere_and_holds_everything(
    project: Project, place: str, tmp_path: Path
) -> None:
    file, other = tmp_path / "out" / "history.jsonl", str(tmp_path / "other.sqlite")
    assert project.perfci("history", "export", str(file), "--history", place).code == 0
    printed = project.perfci("history", "export", "--history", place)
    assert printed.out.encode() == file.read_bytes()
    assert len(list(from_lines(file.read_bytes().splitlines(), "x"))) == 4
    done = project.perfci("history", "import", str(file), "--history", other)
    assert done.out == f"{file}: 3 new runs\n"
    again = project.perfci("history", "import", str(file), place, "--history", other)
    assert again.out.count("0 new runs, 3 were there already") == 2
    assert project.perfci("history", "export", "--history", other).out == printed.out


@pytest.mark.parametrize(
    "name", ["asv-results", "google-benchmark-repetitions.json", "pytest-benchmark-4.0.0.json"]
)
def test_other_tools_results_are_imported_once(project: Project, tmp_path: Path, name: str) -> None:
    place = str(tmp_path / "h.sqlite")
    first = project.perfci("history", "import", str(FOREIGN / name), "--history", place)
    assert first.without_traceback().code == 0, first.text
    assert "new run" in first.out
    with open_history(place, create=False) as history:
        before = list(history.recorded_runs())
        assert before[0].points
    again = project.perfci("history", "import", str(FOREIGN / name), "--history", place)
    assert "0 new runs" in again.out, again.text
    with open_history(place, create=False) as history:
        assert list(history.recorded_runs()) == before


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (b"{", 4, "mine.json"),
        (b'{"name": "x"}', 2, "mine.json"),
        (b"", 4, "mine.json"),
        (b"\x89PNG\r\n", 4, "mine.json"),
        (b'{"type":"perfci.history/9"}\n', 2, "newer perfci"),
        (b'{"type":"perfci.history/1"}\n{', 4, "line 2"),
        (b"SQLite format 3\0 and no more", 4, "damaged"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_named_and_nothing_is_lost(
    project: Project, place: str, content: bytes, code: int, said: str
) -> None:
    file = project.folder / "mine.json"
    file.write_bytes(content)
    done = project.perfci("history", "import", str(file), "--history", place).without_traceback()
    assert (done.code, said in done.err) == (code, True), done.text
    with open_history(place) as history:
        assert [in_order(one) for one in history.recorded_runs()][:2] == [
            in_order(recorded(n)) for n in (1, 2)
        ]


def test_files_that_are_not_there_or_no_files_are_refused(project: Project, place: str) -> None:
    os.mkfifo(project.folder / "pipe")  # nobody will ever write into it
    for name in ("nowhere.json", "/dev/zero", "pipe"):
        done = project.perfci("history", "import", name, "--history", place).without_traceback()
        assert (done.code, name in done.err) == (4, True), done.text
    (project.folder / "empty").mkdir()
    done = project.perfci("history", "import", "empty", "--history", place)
    assert (done.code, "holds no .json file" in done.err) == (2, True)


def test_a_change_is_acknowledged_by_the_beginning_of_its_id(project: Project, place: str) -> None:
    done = project.perfci(
        "history", "acknowledge", change().id[:6], "--note", "Meant.", "--history", place
    )
    assert done.out == f"acknowledged {change().id}\n"
    with open_history(place) as opened:
        assert [one.note for one in opened.known_changes() if one.acknowledged] == ["Meant."]
    wrong = project.perfci("history", "acknowledge", "ffff", "--history", place)
    assert (wrong.code, change().id in wrong.err) == (2, True)


def test_an_acknowledgement_is_undone(project: Project, place: str) -> None:
    with open_history(place) as opened:
        opened.remember([change()])
    acknowledge = ("history", "acknowledge", change().id[:6], "--history", place)
    project.perfci(*acknowledge, "--note", "Meant.")
    assert project.perfci(*acknowledge, "--undo").out == f"opened {change().id}\n"
    with open_history(place) as opened:
        assert opened.known_changes() == (change(),)


def test_the_option_goes_before_the_variable_and_that_before_the_configuration(
    project: Project, tmp_path: Path
) -> None:
    text = (project.folder / "pyproject.toml").read_text()
    project.write("pyproject.toml", f'{text}history = "perf/kept.sqlite"\n')
    inner = project.folder / "perf"
    inner.mkdir(exist_ok=True)
    export = ("history", "export")
    missing = project.perfci(*export)
    assert (missing.code, "history not found" in missing.err) == (2, True)
    assert "perf/kept.sqlite" in missing.err
    below = subprocess.run(
        [sys.executable, "-m", "perfci", *export],
        cwd=inner,
        env=project.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "perf/kept.sqlite" in below.stderr
    given = {"PERFCI_HISTORY": str(inner / "given.sqlite")}
    assert "perf/given.sqlite" in project.perfci(*export, **given).err
    named = ("--history", str(inner / "named.sqlite"))
    assert "perf/named.sqlite" in project.perfci(*export, *named, **given).err


def test_without_a_word_the_history_is_in_the_users_data_folder(
    project: Project, tmp_path: Path
) -> None:
    data = {"XDG_DATA_HOME": str(tmp_path / "data")}
    (project.folder / "x.jsonl").write_text(
        json.dumps({"type": "perfci.history/1"}, separators=(",", ":"))
        + '\n{"type":"end","records":0}\n'
    )
    first = project.commit("first")
    assert project.perfci("history", "import", "x.jsonl", **data).code == 0
    assert (tmp_path / "data" / "perfci" / "history" / f"{first}.sqlite").is_file()


def test_a_password_in_the_address_is_not_printed(project: Project) -> None:
    for address, slug in (
        ("postgresql://me:geheim@127.0.0.1:1/perf", "history-failed"),
        ("postgresql://me:geheim@h:x/perf", "history-address"),
    ):
        done = project.perfci("history", "export", "--history", address).without_traceback()
        assert f"[{slug}]" in done.err
        assert "geheim" not in done.text


def test_an_import_that_is_refused_makes_no_history(project: Project, tmp_path: Path) -> None:
    (tmp_path / "readme.json").write_text('{"no": "results"}')
    new = tmp_path / "new.sqlite"
    done = project.perfci("history", "import", str(tmp_path / "readme.json"), "--history", str(new))
    assert done.code == 2, done.text
    assert not new.exists()
