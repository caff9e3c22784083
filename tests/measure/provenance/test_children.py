"""Which children perfci's hook doesn't reach, told from how they are started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from perfci.worker.hook.perfci_watch.commands import unwatched
from perfci.worker.hook.perfci_watch.ownership import HOOK, VARIABLE

pytestmark = pytest.mark.processes

REACHING = {VARIABLE: "{}", "PYTHONPATH": f"{HOOK}:/lib"}
PYTHON = "/usr/bin/python3.11"


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        ([PYTHON, "-c", "pass -I"], None),
        ([PYTHON, "-m", "pytest", "-E"], None),
        (["/usr/bin/nice", "-n", "1", PYTHON, "-m", "pytest", "-E"], REACHING),
        ([PYTHON, "-W", "error", "-X", "dev", "-u", "x.py", "-S"], REACHING),
        ([PYTHON, "x.py"], {**REACHING, "PYTHONPATH": f"/lib:{HOOK}"}),
        (["/usr/bin/env", "-S", f"{PYTHON} -u x.py -I"], None),
        ([PYTHON, "-P", "-Wignore", "x.py"], {k.encode(): v.encode() for k, v in REACHING.items()}),
    ],
)
def test_a_python_with_its_environment_is_watched(words: list[str], environment: object) -> None:
    assert list(unwatched(words[0], words, environment)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line",
    [
        "cd /x && python -m x -I | grep -E y",
        "PYTHONPATH=/x:$PYTHONPATH python x.py; gcc -I include x.c",
        "$CC -I include; python -u -c 'a; b -I'",
        "env -u HOME python x.py",
    ],
)
def test_a_shells_line_that_leaves_the_watch_alone_is_none_of_those(line: str) -> None:
    assert list(unwatched("/bin/sh", ["sh", "-c", line], None)) == [("program", "sh")]


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        ([PYTHON, "-I", "x.py"], None),
        ([PYTHON, "-uE", "x.py"], None),
        ([PYTHON, "-X", "dev", "-S"], None),
        ([PYTHON, "x.py"], {}),
        ([PYTHON, "x.py"], {VARIABLE: "{}", "PYTHONPATH": "/lib"}),
        (["/bin/sh", "-c", "python3 -I x.py"], None),
        (["/bin/sh", "-c", "exec python x.py"], {"PATH": "/bin"}),
        (["/usr/bin/env", "python3", "-E", "x.py"], None),
        (["/usr/bin/env", "-i", "python3", "x.py"], None),
        (["/usr/bin/env", "-u", "PYTHONPATH", "python3", "x.py"], None),
        (["/usr/bin/timeout", "9", PYTHON, "-I", "x.py"], None),
        (["/usr/bin/taskset", "-c", "0", PYTHON, "x.py"], {}),
        ([PYTHON, "--check-hash-based-pycs", "default", "-I", "x.py"], None),
        (["/usr/bin/setarch", "-R", PYTHON, "-I", "x.py"], None),
        (["/usr/bin/xargs", "-I{}", PYTHON, "-I", "-m", "{}"], None),
        (["/usr/bin/env", "-S", f"{PYTHON} -I x.py"], None),
        (["/usr/bin/env", f"-iS{PYTHON} x.py"], None),
        (["/usr/bin/timeout", "9", "sh", "-c", "python -I x.py"], None),
        (["/bin/sh", "-c", "PYTHONPATH= python -m x; true"], None),
        (["/bin/sh", "-c", "PYTHONPATH= shapes"], None),
        (["/bin/bash", "-c", "export PYTHONPATH=/x/src\npython -m x"], None),
        (["/bin/sh", "-c", "unset PYTHONPATH; python -m x"], None),
        (["/bin/sh", "-c", "env -i python x.py; true"], None),
        (["/bin/sh", "-c", "env -u PYTHONPATH python x.py"], None),
        (["/bin/sh", "-c", "python -u -I -m x; true"], None),
        (["/bin/sh", "-c", "python -W ignore -I -m x"], None),
        (["/bin/sh", "-c", "python '-I' -m x"], None),
        (["/bin/sh", "-c", 'exec "$0" -I -m x', PYTHON], None),
        (["/bin/sh", "-c", "$TOOL -I -m x"], {**REACHING, "TOOL": PYTHON}),
    ],
)
def test_others_are_told(words: list[str], environment: dict[str, str] | None) -> None:
    assert "unwatched" in [how for how, _ in unwatched(words[0], words, environment)]


def test_a_script_runs_the_python_of_its_first_line(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text(f"#!{PYTHON} -sE\n")
    assert [how for how, _ in unwatched(str(script), ["tool"], None)] == ["unwatched"]
    script.write_text(f"#!{PYTHON}\n")
    assert list(unwatched(str(script), ["tool"], None)) == []


def test_a_link_of_another_name_is_a_python(tmp_path: Path) -> None:
    link = tmp_path / "pyx"
    link.symlink_to(sys.executable)
    for words in ([str(link), "-I", "x.py"], ["sh", "-c", f"{link} -I x.py"]):
        program = "/bin/sh" if words[0] == "sh" else words[0]
        assert "unwatched" in [how for how, _ in unwatched(program, words, None)]


def test_a_shells_script_is_read(tmp_path: Path) -> None:
    script = tmp_path / "run"
    for body in ("exec python3 -I -m x", "export PYTHONPATH=/x\nexec python3 -m x"):
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o755)
        for words in ([str(script)], ["/bin/sh", str(script)], ["/usr/bin/nice", str(script)]):
            assert "unwatched" in [how for how, _ in unwatched(words[0], words, None)], words
    script.write_text("#!/bin/sh\n  # unset PYTHONPATH; python -I\nexec python3 -m x\n")
    assert list(unwatched(str(script), [str(script)], None)) == [("program", "sh")]


def test_a_sitecustomize_before_perfcis_stands_in_its_way(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("")
    environment = {**REACHING, "PYTHONPATH": f"{tmp_path}:{HOOK}"}
    found = unwatched(PYTHON, [PYTHON, "x.py"], environment)
    assert [how for how, _ in found] == ["unwatched"]


def test_what_is_no_python_is_named() -> None:
    assert list(unwatched("/usr/bin/git", ["git", "status"], {})) == [("program", "git")]
