"""What a benchmark finds by its own ``__file__`` outside of its folder is its own side's."""

from __future__ import annotations

import pytest

from tests.builders.project import NOISE_PASSES, QUICK, Project, one_round
from tests.measure.provenance.installs import brief

pytestmark = pytest.mark.processes

HEADER = """\
import ctypes, os, runpy, subprocess
from pathlib import Path
import perfci

ROOT = Path(__file__).resolve().parent.parent
C = ctypes.CDLL(None)

def by_c(path):
    descriptor = C.open(os.fsencode(path), 0)
    C.read(descriptor, ctypes.create_string_buffer(99), 99)
    C.close(descriptor)
"""
CASE = """
@perfci.benchmark(metrics=["latency_p50"])
def {name}():
    {body}
    return lambda: sum(range(100))
"""
READ = {
    "python": "assert (ROOT / 'data/by_python').read_text() == open('data/by_python').read()",
    "code": "assert runpy.run_path(ROOT / 'tool.py')['value'] == open('data/by_python').read()",
    "c_code": "by_c(ROOT / 'data/by_c')",
    "program": "subprocess.run(['cat', ROOT / 'data/by_a_program'], check=True)",
}
LOOKED_AT = {
    "exists": "os.path.exists(ROOT / 'added')",
    "is_file": "(ROOT / 'added').is_file()",
    "access": "os.access(ROOT / 'added', os.R_OK)",
    "getsize": "os.path.getsize(ROOT / 'data/size')",
    "stat": "(ROOT / 'data/size').stat().st_size",
    "listdir": "os.listdir(ROOT / 'parts')",
    "glob": "list((ROOT / 'parts').glob('*.json'))",
    "scandir": "[one.is_dir() for one in os.scandir(ROOT / 'parts')]",
}
HARMLESS = {
    "nothing": "pass",
    "reads_what_is_the_same": "(ROOT / 'same/data').read_text(); by_c(ROOT / 'same/data')",
    "lists_what_is_the_same": "os.listdir(ROOT / 'same'); list((ROOT / 'same').glob('*'))",
    "asks_for_what_is_the_same": "(ROOT / 'same/data').stat(); (ROOT / 'README.md').exists()",
    "asks_for_its_own_folder": "Path(__file__).resolve().parent.stat(); os.listdir(ROOT / 'same')",
    "lists_its_own_folder": "os.listdir(ROOT / 'benchmarks')",
}


def test_what_it_finds_there_is_measured_where_it_differs_and_the_rest_is_the_same(
    project: Project,
) -> None:
    cases = {**READ, **LOOKED_AT, **HARMLESS}
    text = HEADER + "".join(CASE.format(name=name, body=body) for name, body in cases.items())
    read = ("data/by_python", "data/by_c", "data/by_a_program", "data/size")
    project.commit(
        "base",
        **{
            "pyproject.toml": brief(QUICK) + NOISE_PASSES,
            "benchmarks/bench_root.py": text,
            "tool.py": "value = '1'",
        },
        **dict.fromkeys(read, "1"),
        **dict.fromkeys(("same/data", "README.md", "parts/one.json"), "1"),
    )
    added = ("added", "parts/two.json", "benchmarks/added")
    project.commit(
        "head",
        **{"tool.py": "value = '222'"},
        **dict.fromkeys(read, "222"),
        **dict.fromkeys(added, ""),
    )

    with one_round():
        report = project.report("compare", "HEAD~1", "HEAD")

    assert not report["failures"]
    assert {*report["same_code"]} == {*HARMLESS}


def test_benchmarks_in_the_librarys_folder_do_not_look_for_anything_else(project: Project) -> None:
    text = (
        brief(QUICK).replace("[tool.perfci]", '[tool.perfci]\nbenchmarks = "mylib"\n')
        + NOISE_PASSES
    )
    case = "import mylib.core\n" + HEADER + CASE.format(name="case", body="pass")
    names = ("mylib/__init__.py", "mylib/sub/__init__.py", "mylib/core.py")
    project.commit(
        "base", **{"pyproject.toml": text, "mylib/bench_x.py": case}, **dict.fromkeys(names, "")
    )
    added = ("mylib/more.py", "mylib/sub/more.py")
    project.commit("head", **{"mylib/core.py": "x = 1\n"}, **dict.fromkeys(added, ""))
    with one_round():
        assert not project.report("compare", "HEAD~1", "HEAD")["failures"]
