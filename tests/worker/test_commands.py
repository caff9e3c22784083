"""``perfci.command``: what a run of a command line takes, and how one that fails is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import perfci
from perfci.errors import BenchmarkError
from tests.worker.driver import Bench

pytestmark = pytest.mark.processes

HEAD = "import sys\nimport perfci\n\n@perfci.benchmark\ndef case():\n    return perfci.command("
PROCESSOR, PEAK = "command_cpu_time", "command_peak_memory"


@pytest.fixture
def bench(forked_bench: Bench) -> Bench:
    return forked_bench


def test_a_run_has_its_own_processor_time_and_memory(bench: Bench) -> None:
    body = "x = b'1' * (64 << 20); sum(range(300_000))"
    measured = bench.measure(f"{HEAD}[sys.executable, '-c', {body!r}])\n")
    values = measured["values"]
    user, system = values["command_user_time"], values["command_system_time"]
    assert 0 < values[PROCESSOR] < 2 * (user + system)
    assert 64 << 20 < values[PEAK] < 128 << 20
    assert measured["samples_ns"]


def test_a_peak_that_is_the_workers_own_is_missing(tmp_path: Path) -> None:
    # a forked worker shares pages that the kernel counts for neither, so this one is fresh
    measured = Bench(tmp_path / "tree").measure(f"{HEAD}['/bin/true'])\n")
    assert PEAK not in measured["values"]
    assert "the worker's own peak" in measured["missing"][PEAK]


def test_what_is_no_command_has_no_row_of_one(bench: Bench) -> None:
    measured = bench.measure("import perfci\n@perfci.benchmark\ndef case():\n    return int\n")
    assert not {PROCESSOR, PEAK} & {*measured["values"], *measured["missing"]}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "['sh', '-c', 'seq 12 >&2; exit 3']",
            "ended with exit code 3. Its standard error:\n3\n4",
        ),
        ("['sh', '-c', 'kill -SEGV $$']", "was ended by signal 11"),
        ("'exit 4 | exit 5', shell=True", "exit code 5. Its standard error:\nit wrote nothing"),
        ("['sh', '-c', 'exit 0'], exit_codes=[7]", "exit code 0"),
    ],
)
def test_a_run_that_fails_fails_the_case_with_its_last_lines(
    bench: Bench, arguments: str, said: str
) -> None:
    failed = bench.failure(f"{HEAD}{arguments})\n")
    assert failed["kind"] == "command_failed"
    assert said in failed["message"]


def test_a_run_that_leaves_processes_fails_the_case(bench: Bench) -> None:
    failed = bench.failure(f"{HEAD}'sleep 50 &', shell=True)\n")
    assert failed["kind"] == "left_processes"
    assert "`/bin/sh -c sleep 50 &` ended and left processes running" in failed["message"]


@pytest.mark.parametrize("seconds", ["0.05", "0"])
def test_what_ends_soon_after_its_command_is_none_left(bench: Bench, seconds: str) -> None:
    assert bench.measure(f"{HEAD}'sleep {seconds} &', shell=True)\n")["samples_ns"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("['no-such-tool']", "`no-such-tool` did not start"),
        ("['./case.txt']", "Permission denied: './case.txt'"),
        ("['true'], cwd='no-such-folder'", "No such file or directory: 'no-such-folder'"),
        ("['true', 'a\\0b']", "null byte"),
    ],
)
def test_a_command_that_does_not_start_is_named(bench: Bench, arguments: str, said: str) -> None:
    (bench.root / "case.txt").write_text("")
    failed = bench.failure(f"{HEAD}{arguments})\n")
    assert failed["kind"] == "command_failed"
    assert said in failed["message"]
    assert "subprocess.py" not in failed["message"]


def test_each_run_has_its_input_folder_and_variables(bench: Bench) -> None:
    (bench.root / "data").mkdir()
    script = 'test "$(cat)" = one; a=$?; test "$B$(basename $PWD)" = twodata && exit $a'
    arguments = f"{script!r}, shell=True, input='one', env={{'B': 'two'}}, cwd='data'"
    assert bench.measure(f"{HEAD}{arguments})\n")["samples_ns"]


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("ls -l", {}),
        (["ls"], {"shell": True}),
        (["ls"], {"results": "/nowhere/out.json"}),
        (["ls"], {"results": "../out.json"}),
        (["ls"], {"results": "out.json", "gate": "stop"}),
        (["ls"], {"results": "out.json", "threshold": "five"}),
        (["ls"], {"threshold": "five"}),
    ],
)
def test_what_is_no_command_is_refused_where_it_is_written(
    line: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(BenchmarkError, match=r"test_commands\.py:\d+: perfci\.command"):
        perfci.command(line, **options)
