"""A case that fails on base alone: new only where base does not have it, else not decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfci.model.worker import WorkOrder
from tests.builders.project import Project, rows
from tests.builders.simulated import Simulated

BENCH = "benchmarks/bench_a.py"
HELPER = "benchmarks/helper.py"
STEADY = """\
import perfci

@perfci.benchmark
def steady():
    return lambda: sum(range(500))
"""
CASE = "\n@perfci.benchmark\ndef case():\n    return {}\n"
WORK = "def work():\n    return sum(range(900))\n"


@pytest.fixture
def workers() -> Simulated:
    return Simulated()


@pytest.fixture
def project(tmp_path: Path, workers: Simulated) -> Project:
    project = Project(tmp_path / "project", workers)
    project.commit(
        "base",
        **{"lib.py": WORK, BENCH: "import lib\n" + STEADY + CASE.format("lib.work")},
    )
    return project


def compare(project: Project, *more: str, code: int | None = None) -> dict[str, Any]:
    project.commit("head", **{"other.txt": "differs"})
    return project.report("compare", "HEAD~", "HEAD", "--rounds", "6", "--all", *more, code=code)


def fail_base(workers: Simulated, kind: str, message: str, *, in_round: int) -> None:
    def before(order: WorkOrder, number: int) -> tuple[str, str] | None:
        if (order.case, order.side) != ("case", "base"):
            return None
        return (kind, message) if number >= in_round else None

    workers.before = before


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("SIGKILL", "crashed with SIGKILL"),
        ("SIGTERM", "ended by head's worker"),
        ("SIGSEGV", "crashed with SIGSEGV"),
        ("timeout", "no answer within 20 s"),
        ("out_of_memory", "ended by the kernel"),
        ("AttributeError", "module 'lib' has no attribute 'renamed'"),
        ("no_time", "no answer within 3 s, half of the remaining budget"),
    ],
)
def test_a_case_that_base_has_and_fails_is_not_decided(
    project: Project, workers: Simulated, kind: str, message: str
) -> None:
    fail_base(workers, kind, message, in_round=1)
    report = compare(project)
    assert report["verdict"]["status"] == "inconclusive"
    (reason, *_) = report["verdict"]["findings"]
    assert (reason["code"], reason["case"]) == ("failed-on-base", "case")
    assert reason["because"]["arguments"]["kind"] == kind
    assert rows(report, "case")["latency_p50"]["status"] == "failed"
    assert message in " ".join(report["verdict"]["reasons"])
    (said,) = (failure["message"] for failure in report["failures"])
    assert ("modules that base lacks" in said) == (kind == "AttributeError")
    assert ("raise --budget" in said) == (kind == "no_time")
    assert rows(report, "steady")["latency_p50"]["status"] == "unchanged"


def test_strict_fails_where_base_failed(project: Project, workers: Simulated) -> None:
    fail_base(workers, "SIGKILL", "crashed", in_round=1)
    compare(project, "--strict", code=3)


def three_times_slower(workers: Simulated) -> None:
    workers.latency = lambda order, _: (
        3e-5 if (order.case, order.side) == ("case", "head") else 1e-5
    )


def test_rounds_before_base_failed_count(project: Project, workers: Simulated) -> None:
    three_times_slower(workers)
    fail_base(workers, "SIGKILL", "crashed", in_round=7)
    report = compare(project, "--rounds", "8", code=1)
    row = rows(report, "case")["latency_p50"]
    assert (report["verdict"]["status"], row["status"]) == ("fail", "regressed")
    assert row["base"]["workers"] == 6
    assert "failed-on-base" in [one["code"] for one in report["verdict"]["findings"]]


def test_too_few_rounds_before_base_failed_decide_nothing(
    project: Project, workers: Simulated
) -> None:
    three_times_slower(workers)
    fail_base(workers, "SIGKILL", "crashed", in_round=3)
    report = compare(project)
    row = rows(report, "case")["latency_p50"]
    assert (report["verdict"]["status"], row["status"]) == ("inconclusive", "inconclusive")
    assert row["ratio"] == pytest.approx(3.0, rel=0.1)


def test_equal_rounds_before_base_failed_do_not_pass(project: Project, workers: Simulated) -> None:
    fail_base(workers, "SIGKILL", "crashed", in_round=6)
    report = compare(project)
    assert report["verdict"]["status"] == "inconclusive"


def test_a_case_that_bases_own_files_lack_is_new(project: Project) -> None:
    head = "import lib\n" + STEADY + CASE.format("lib.work") + CASE.format("lib.fresh")
    head = head.replace("def case", "def fresh").replace("def fresh", "def case", 1)
    project.commit("head", **{"lib.py": WORK + "\nfresh = work\n", BENCH: head})
    report = project.report("compare", "HEAD~", "HEAD", code=0)
    assert rows(report, "fresh")["latency_p50"]["status"] == "new"
    assert report["verdict"]["status"] == "pass"


NEW_CASE = {
    "lib.py": WORK + "\nfresh = work\n",
    BENCH: "import lib\n"
    + STEADY
    + CASE.format("lib.work").replace("case", "other")
    + CASE.format("lib.fresh"),
}


@pytest.mark.parametrize(
    ("build", "status"),
    [("true", "new"), ("test -e benchmarks/added", "failed")],
    ids=["builds", "does not build without head's files"],
)
def test_base_is_built_with_its_own_files_before_they_are_asked(
    project: Project, build: str, status: str
) -> None:
    project.write(BENCH, "import lib\n" + STEADY)
    path = project.folder / "pyproject.toml"
    text = path.read_text().replace("[tool.perfci]", f"[tool.perfci]\nbuild = [{build!r}]", 1)
    project.commit("base", **{"pyproject.toml": text})
    project.commit("head", **NEW_CASE, **{"benchmarks/added": ""})
    report = project.report("compare", "HEAD~", "HEAD", "--rounds", "6")
    assert rows(report, "case")["latency_p50"]["status"] == status
    assert rows(report, "steady")["latency_p50"]["status"] != "failed"


def test_a_case_that_bases_own_definition_skips_is_new(project: Project) -> None:
    skipping = "import lib\n" + STEADY + CASE.format("lib.other")
    here = skipping.replace("benchmark\ndef case", "benchmark(skip=lambda: 'not yet')\ndef case")
    project.commit("base skips it", **{BENCH: here})
    project.commit("head", **{"lib.py": WORK + "\nother = work\n", BENCH: skipping})
    report = project.report("compare", "HEAD~", "HEAD", code=0)
    assert rows(report, "case")["latency_p50"]["status"] == "new"


def test_a_function_that_head_renames_is_not_new(project: Project) -> None:
    project.commit(
        "renamed",
        **{
            "lib.py": WORK.replace("work", "quick"),
            BENCH: "import lib\n" + STEADY + CASE.format("lib.quick"),
        },
    )
    report = project.report("compare", "HEAD~", "HEAD")
    assert report["verdict"]["status"] == "inconclusive"
    assert rows(report, "case")["latency_p50"]["status"] == "failed"
    (failure,) = report["failures"]
    assert (failure["side"], failure["kind"]) == ("base", "AttributeError")


@pytest.mark.parametrize(
    ("imported", "files"),
    [
        ("import fresh", {"fresh.py": WORK}),
        ("from lib import fresh", {"lib.py": WORK + "\nfresh = work\n"}),
        ("from pack import fresh", {"pack/fresh.py": WORK}),
        ("import helper", {"lib.py": WORK + "\nfresh = 1\n", HELPER: "import lib\nlib.fresh\n"}),
    ],
)
def test_a_case_whose_new_file_base_cannot_import_is_new(
    project: Project, imported: str, files: dict[str, str]
) -> None:
    project.commit("a package", **{"pack/__init__.py": ""})
    bench = f"import lib\nimport perfci\n{imported}\n" + CASE.format("lib.work")
    added = bench.replace("def case", "def added")
    project.commit("head", **files, **{"benchmarks/bench_added.py": added})
    report = project.report("compare", "HEAD~", "HEAD", code=0)
    assert rows(report, "added")["latency_p50"]["status"] == "new"
    assert rows(report, "case")["latency_p50"]["status"] in {"unchanged", "untouched"}


@pytest.mark.parametrize(
    "imported",
    [
        "if not hasattr(lib, 'mark'):\n    import absent_library",
        "from lib import mark",
        "import helper",
        "if not hasattr(lib, 'mark'):\n    raise RuntimeError('not ready')",
    ],
)
def test_a_case_that_base_has_is_not_new_where_base_cannot_import_heads_file(
    project: Project, imported: str
) -> None:
    bench = f"import lib\n{imported}\n" + STEADY + CASE.format("lib.work")
    head = {"lib.py": WORK + "\nmark = 1\n", HELPER: "import lib\nrun = lib.mark\n", BENCH: bench}
    project.commit("head", **head)
    report = project.report("compare", "HEAD~", "HEAD", "--strict", code=3)
    assert report["verdict"]["status"] == "inconclusive"
    assert {row["status"] for row in report["results"]} == {"failed"}


@pytest.mark.parametrize(
    "hiding",
    [
        "if hasattr(lib, 'mark'):",
        "try:\n    lib.mark\nexcept AttributeError:\n    pass\nelse:",
    ],
)
def test_a_case_that_heads_files_hide_from_base_is_not_new(project: Project, hiding: str) -> None:
    hidden = CASE.format("lib.work").strip().replace("\n", "\n    ")
    bench = "import lib\n" + STEADY + f"\n{hiding}\n    {hidden}\n"
    project.commit("head", **{"lib.py": WORK + "\nmark = 1\n", BENCH: bench})
    report = project.report("compare", "HEAD~", "HEAD", "--strict", code=3)
    assert report["verdict"]["status"] == "inconclusive"
    assert rows(report, "case")["latency_p50"]["status"] == "failed"
    assert [(one["stage"], one["kind"]) for one in report["failures"]] == [("discovery", "absent")]


def test_a_case_that_heads_definition_skips_on_base_alone_is_compared(project: Project) -> None:
    skipping = CASE.format("lib.work").replace(
        "benchmark", "benchmark(skip=lambda: '' if hasattr(lib, 'mark') else 'no mark')"
    )
    project.commit(
        "head", **{"lib.py": WORK + "\nmark = 1\n", BENCH: "import lib\n" + STEADY + skipping}
    )
    report = project.report("compare", "HEAD~", "HEAD")
    assert rows(report, "case")["latency_p50"]["base"]["workers"] >= 5


AXIS = CASE.replace("benchmark", "benchmark(n=lib.SIZES)").replace("case()", "case(n)")


def test_a_point_of_an_axis_is_new_only_where_bases_own_files_lack_it(project: Project) -> None:
    project.commit("an axis", **{"lib.py": WORK + "SIZES = [1]\n"})
    own = "import lib\n" + STEADY + AXIS.format("lib.work")
    project.commit("base", **{BENCH: own.replace("lib.SIZES", "[1, 2]")})
    project.commit("head", **{"lib.py": WORK + "SIZES = [1, 2, 3]\n", BENCH: own})
    report = project.report("compare", "HEAD~", "HEAD")
    assert rows(report, "case[n=3]")["latency_p50"]["status"] == "new"
    assert rows(report, "case[n=2]")["latency_p50"]["status"] == "failed"
    assert report["verdict"]["status"] == "inconclusive"


HEAD_KILLS_BASE = """\
import os, signal
from pathlib import Path

SESSION = os.getcwd().partition("trees")[0]  # other sessions of this machine live on

def work():
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                here = os.readlink(entry / "cwd")
            except OSError:
                continue
            others = here.startswith(f"{SESSION}trees") and here != os.getcwd()
            if others and int(entry.name) not in {os.getppid(), os.getpid()}:
                os.kill(int(entry.name), signal.SIGKILL)
    return 1
"""


SOUND = "def {0}():\n    return sum(range(900))\n"
CRASHES = "def crashes():\n    os.kill(os.getpid(), signal.SIGKILL)\n"
HANGS = "def hangs():\n    time.sleep(60)\n"


@pytest.mark.slow
@pytest.mark.usefixtures("single_round")
def test_a_base_that_dies_as_a_process_never_passes(tmp_path: Path) -> None:
    project = Project(tmp_path / "real")
    path = project.folder / "pyproject.toml"
    path.write_text(path.read_text().replace("timeout = 20", "timeout = 2"))
    cases = {"crashes": CRASHES, "hangs": HANGS, "killed": SOUND.format("killed")}
    bench = "import lib\n" + STEADY
    for case in cases:
        bench += CASE.replace("case", case).format(f"lib.{case}")
    lib = "import os, signal, time\n\n" + "\n".join(cases.values())
    project.commit("base", **{"lib.py": lib, BENCH: bench})
    sound = "\n".join(map(SOUND.format, ("crashes", "hangs")))
    kills = HEAD_KILLS_BASE.replace("def work", "def killed")
    project.commit("head", **{"lib.py": f"{kills}\n{sound}"})
    report = project.report("compare", "HEAD~", "HEAD", "--strict", code=3)
    assert report["verdict"]["status"] in {"inconclusive", "error"}
    for case in cases:
        assert rows(report, case)["latency_p50"]["status"] == "failed", case


@pytest.mark.parametrize(
    "line", ["from lib import new", "import newer", "from lib.deep import new"]
)
def test_a_file_that_imports_what_base_lacks_is_told_to_import_it_inside(
    project: Project, line: str
) -> None:
    new = {"lib.py": f"{WORK}new = work\n", "newer.py": "", BENCH: f"import lib\n{line}\n{STEADY}"}
    if "deep" in line:
        new |= {"lib/__init__.py": WORK, "lib/deep.py": "new = 1\n"}
    project.commit("new", **new)
    report = project.report("compare", "HEAD~", "HEAD", "--rounds", "6", "--all")
    (failure, *_) = report["failures"]
    assert (failure["case"], failure["stage"]) == ("steady", "import")
    assert "inside the benchmarks that need them" in failure["message"]
