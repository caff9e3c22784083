"""Imports timed in real processes, base's tree beside head's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from perfci.instruments import Recorded, words
from perfci.instruments.imports import differences
from tests.worker.driver import Bench

_RECORD = """
import json, sys
from perfci.instruments import RecordingScene
from perfci.instruments.imports import record
from perfci.model.worker import WorkOrder
root, installed = sys.argv[1:]
sys.path[:0] = [root, installed]
scene = RecordingScene(WorkOrder(root, (), root))
with record(scene) as recorded:
    import model
    scene.set_up = True
    getattr(model, "work", int)()
print(json.dumps(recorded))
"""
_BUSY = "import time; ended = time.perf_counter() + {}\nwhile time.perf_counter() < ended: pass\n"


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text), encoding="utf-8")
    return root


def record(root: Path, installed: Path) -> list[Recorded]:
    command = [sys.executable, "-c", _RECORD, str(root), str(installed)]
    done = subprocess.run(command, check=True, capture_output=True)
    return [json.loads(done.stdout)]


def libraries(tmp_path: Path) -> Path:
    files = {
        "heavy/__init__.py": "import heavy.inner\n" + _BUSY.format(0.01),
        "heavy/inner.py": "import leaf\n",
        "leaf.py": _BUSY.format(0.02),
        "light.py": "import leaf\n",
        "lazy.py": "def use(): import heavy\n",
    }
    return tree(tmp_path / "lib" / "site-packages", files)


def told(base: dict[str, str], head: dict[str, str], tmp_path: Path) -> list[tuple[Any, ...]]:
    installed = libraries(tmp_path)
    sides = [
        record(tree(tmp_path / name, files), installed)
        for name, files in (("a", base), ("b", head))
    ]
    exact = (one for one in differences(*sides) if one.exact)
    return [(one.code, one.arguments["module"], one.file, one.line) for one in exact]


def test_a_new_library_is_named_by_the_own_line_that_pulls_it_in(tmp_path: Path) -> None:
    base = {"model.py": "import part.table\n", "part/__init__.py": "", "part/table.py": "x = 1\n"}
    head = {**base, "part/table.py": "x = 1\nimport heavy.inner\n"}
    assert told(base, head, tmp_path) == [("import-new", "heavy", "part/table.py", 2)]


def test_what_a_new_library_brings_counts_with_it(tmp_path: Path) -> None:
    installed = libraries(tmp_path)
    base = record(tree(tmp_path / "a", {"model.py": ""}), installed)
    head = record(tree(tmp_path / "b", {"model.py": "import heavy\n"}), installed)
    (one,) = differences(base, head)
    assert words(one).startswith("`heavy` is newly imported with 2 other modules, +")
    (gone,) = differences(head, base)
    assert (gone.code, gone.file, gone.seconds) == ("import-gone", "model.py", -one.seconds)
    assert words(gone).startswith("`heavy` is no longer imported with 2 other modules, -")


def test_a_library_asked_for_elsewhere_is_no_difference(tmp_path: Path) -> None:
    base = {"model.py": "import light\nimport heavy\n"}
    head = {"model.py": "import heavy\nimport light\n"}
    assert told(base, head, tmp_path) == []


_AGAIN = """
import importlib
for _ in range({calls}):
    importlib.import_module("json")
"""
_MANY = """
import importlib, sys
from importlib.machinery import ModuleSpec

class Finder:
    @staticmethod
    def find_spec(name, *_):
        return ModuleSpec(name, Finder) if name.startswith("made_") else None
    @staticmethod
    def create_module(spec): pass
    @staticmethod
    def exec_module(module): pass

sys.meta_path.insert(0, Finder)
for number in range({calls}):
    importlib.import_module(f"made_{{number}}")
"""


@pytest.mark.parametrize("library", [_AGAIN, _MANY], ids=["the same again", "each another"])
def test_however_many_imports_come_first_none_is_taken_for_gone(
    tmp_path: Path, library: str
) -> None:
    """The first 4,000 calls were recorded, and what came after them was "no longer imported"."""
    base, head = (
        {"first.py": library.format(calls=calls), "model.py": "import first\nimport heavy\n"}
        for calls in (10, 6_000)
    )
    for sides in ((base, head), (head, base)):
        assert "heavy" not in [module for _, module, *_ in told(*sides, tmp_path)]


def test_what_the_first_call_imports_is_named_where_own_code_asks(tmp_path: Path) -> None:
    base = {"model.py": "import lazy\ndef work(): pass\n"}
    asks = {"model.py": "import lazy\ndef work():\n    import heavy\n"}
    uses = {"model.py": "import lazy\ndef work(): lazy.use()\n"}
    assert told(base, asks, tmp_path) == [("import-new", "heavy", "model.py", 3)]
    assert told(base, uses, tmp_path) == []  # a library puts it off until its first use


@pytest.mark.slow  # it compares times that it measured
def test_own_code_that_takes_longer_to_import_is_named(tmp_path: Path) -> None:
    base = {"model.py": "import table\nimport light\n", "table.py": ""}
    head = {**base, "table.py": _BUSY.format(0.05)}
    assert told(base, head, tmp_path) == [("import-time", "table", "table.py", 0)]


def test_a_part_of_a_library_that_both_sides_load_is_named_as_that_part(tmp_path: Path) -> None:
    """As torch imports torch._dynamo when something is compiled."""
    tree(
        tmp_path / "lib" / "site-packages",
        {
            "big/__init__.py": "def compile():\n    import big._dynamo.config\n",
            "big/_dynamo/__init__.py": _BUSY.format(0.01),
            "big/_dynamo/config.py": "",
        },
    )
    base = {"model.py": "import big\n\n"}
    for head in ("import big\n\nbig.compile()\n", "import big\n\nimport big._dynamo\n"):
        sides = {"model.py": head}
        assert told(base, sides, tmp_path) == [("import-new", "big._dynamo", "model.py", 3)]
        assert told(sides, base, tmp_path) == [("import-gone", "big._dynamo", "model.py", 3)]


def test_a_worker_records_up_to_the_end_of_its_first_call(tmp_path: Path) -> None:
    work = "import model\nimport perfci\n\n@perfci.benchmark\ndef case():\n    return model.work\n"
    recorded = []
    for name, asks in (("a", "pass"), ("b", "import slow")):
        bench = Bench(tmp_path / name)
        tree(bench.root, {"model.py": f"def work():\n    {asks}\n", "slow.py": _BUSY.format(0.01)})
        order = bench.order(bench.write(work), "case", instruments=("imports",))
        with bench.start(order) as worker:
            worker.wait_for("ready")
            worker.send({"do": "record", "instrument": "imports"})
            recorded.append([worker.wait_for("record")["recorded"]])
    (one,) = differences(*recorded)
    assert (one.code, one.arguments["module"]) == ("import-new", "slow")
    assert (one.file, one.line) == ("model.py", 2)


@pytest.mark.parametrize(
    ("new_s", "gone_s", "codes"),
    [
        (0.100, 0.095, []),
        (0.095, 0.100, []),
        (0.100, 0.080, ["import-new", "import-gone"]),
        (0.080, 0.100, ["import-new", "import-gone"]),
    ],
)
def test_an_import_that_replaces_another_in_the_same_time_is_no_difference(
    new_s: float, gone_s: float, codes: list[str]
) -> None:
    base, head = (
        [{"modules": [[name, "", "model.py", 3, took_s, took_s, f"/lib/{name}.py", False]]}]
        for name, took_s in (("old", gone_s), ("new", new_s))
    )
    assert [one.code for one in differences(base, head)] == codes
