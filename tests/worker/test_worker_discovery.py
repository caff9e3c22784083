"""What a side's benchmark files hold, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.worker.source_hash import source_hash
from tests.worker.driver import Bench

AXES = """\
import perfci

@perfci.benchmark(batch=[1, 16], mode=["eager", "default"], tags=["quick"], timeout=3)
def encoder(batch, mode):
    return lambda: None

@perfci.benchmark(skip=lambda size: "too large" if size > 1 else None, size=[1, 2])
def decoder(size):
    return lambda: None
"""
NAMED = """\
import perfci

@perfci.benchmark(name="{name}")
def one():
    return lambda: None
"""


def test_each_point_of_the_axes_is_a_case(bench: Bench) -> None:
    path = bench.write(AXES)
    found = bench.discover()
    cases = {case["id"]: case for case in found["cases"]}
    assert list(cases) == [
        "encoder[batch=1,mode=eager]",
        "encoder[batch=1,mode=default]",
        "encoder[batch=16,mode=eager]",
        "encoder[batch=16,mode=default]",
        "decoder[size=1]",
        "decoder[size=2]",
    ]
    one = cases["encoder[batch=16,mode=default]"]
    assert one["file"] == "benchmarks/bench_one.py"
    assert one["line"] == 3
    assert one["axes"] == {"batch": "16", "mode": "default"}
    assert (one["tags"], one["timeout"]) == (["quick"], 3)
    assert one["source_hash"] == source_hash([path])
    assert cases["decoder[size=2]"]["skip"] == "too large"
    assert cases["decoder[size=1]"]["skip"] is None
    assert not found["failures"]


@pytest.mark.parametrize("axis", ["mode", "backend"])
def test_a_mode_other_than_eager_may_compile(bench: Bench, axis: str) -> None:
    source = f'import perfci\n@perfci.benchmark({axis}=["eager", "inductor"])\ndef case({axis}):\n'
    bench.write(source + "    return lambda: None\n")
    compiled = {case["id"]: case["compiled"] for case in bench.discover()["cases"]}
    assert compiled == {f"case[{axis}=eager]": False, f"case[{axis}=inductor]": True}


def test_two_benchmarks_with_one_id_fail_and_neither_is_measured(bench: Bench) -> None:
    bench.write(NAMED.format(name="same"), "benchmarks/bench_a.py")
    bench.write("\n" + NAMED.format(name="same"), "benchmarks/bench_b.py")
    bench.write(NAMED.format(name="other"), "benchmarks/bench_c.py")
    found = bench.discover()
    (failure,) = found["failures"]
    assert failure["kind"] == "duplicate_id"
    assert failure["case"] == "same"
    assert "benchmarks/bench_a.py:3" in failure["message"]
    assert "benchmarks/bench_b.py:4" in failure["message"]
    assert [case["id"] for case in found["cases"]] == ["other"]


TWICE = """\
import perfci

@perfci.benchmark
def work():
    return lambda: None

@perfci.benchmark
def work():
    return lambda: 1
"""
LOOP = """\
import perfci
for size in (1, 2):
    @perfci.benchmark(name=f"loop{size}")
    def looped():
        return lambda: size
"""


def test_two_functions_of_one_name_fail_with_both_lines(bench: Bench) -> None:
    bench.write(TWICE)
    found = bench.discover()
    (failure,) = found["failures"]
    assert failure["kind"] == "duplicate_id"
    assert "bench_one.py:3 and benchmarks/bench_one.py:7" in failure["message"]
    assert not found["cases"]


def test_benchmarks_that_a_loop_defines_are_cases_though_one_name_held_them(bench: Bench) -> None:
    bench.write(LOOP)
    found = bench.discover()
    assert [case["id"] for case in found["cases"]] == ["loop1", "loop2"]
    assert not found["failures"]


@pytest.mark.parametrize(
    ("name", "kind"), [("raises_on_import", "KeyError"), ("exits_on_import", "SystemExit")]
)
def test_a_file_that_fails_leaves_the_others_alone(bench: Bench, name: str, kind: str) -> None:
    bench.misbehaving(name)
    bench.write(NAMED.format(name="good"), "benchmarks/bench_zzz.py")
    found = bench.discover(side="base")
    (failure,) = found["failures"]
    assert failure["case"] == f"benchmarks/bench_{name}.py"
    assert (failure["kind"], failure["side"], failure["stage"]) == (kind, "base", "import")
    assert failure["message"].startswith(f"benchmarks/bench_{name}.py:4: ")
    assert [case["id"] for case in found["cases"]] == ["good"]


def test_a_benchmark_that_was_imported_belongs_to_its_own_file(bench: Bench) -> None:
    bench.write(NAMED.format(name="shared"), "benchmarks/bench_a.py")
    bench.write("from bench_a import one\n", "benchmarks/bench_b.py")
    found = bench.discover()
    assert not found["failures"]
    assert [case["file"] for case in found["cases"]] == ["benchmarks/bench_a.py"]


def test_each_folder_has_its_own_neighbours(bench: Bench) -> None:
    for folder in ("a", "b"):
        bench.write(f"NAME = 'from_{folder}'\n", f"benchmarks/{folder}/common.py")
        bench.write(
            "import common\n" + NAMED.replace('"{name}"', "common.NAME"),
            f"benchmarks/{folder}/bench_{folder}.py",
        )
    found = bench.discover()
    assert not found["failures"]
    assert [case["id"] for case in found["cases"]] == ["from_a", "from_b"]


def test_the_sides_own_folders_come_before_the_benchmarks(bench: Bench) -> None:
    bench.write("WHO = 'library'\n", "lib.py")
    bench.write("WHO = 'neighbour'\n", "benchmarks/lib.py")
    bench.write("import lib\n" + NAMED.replace('"{name}"', "lib.WHO"))
    assert [case["id"] for case in bench.discover()["cases"]] == ["library"]


SOURCE = 'def case():\n    """A # no comment."""\n    return lambda: "#"\n'


@pytest.mark.parametrize(
    ("source", "is_same"),
    [
        (f"# what it is\n{SOURCE}# the end\n", True),
        (SOURCE.replace("case():", "case():  # a case"), True),
        (SOURCE.replace("    return", "    # why\n    return"), True),
        (SOURCE.replace('"#"', '"# "'), False),
        (SOURCE.replace("A # no", "A # yes"), False),
        (SOURCE + "x = 1\n", False),
        (SOURCE + "def (\n", False),
    ],
)
def test_a_comment_is_no_other_source(tmp_path: Path, source: str, is_same: bool) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text(SOURCE)
    other.write_text(source)
    assert (source_hash([one]) == source_hash([other])) == is_same
