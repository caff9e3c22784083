"""Which children perfci's hook doesn't reach, told from how they are started."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.worker.hook import perfci_watch
from perfci.worker.hook.perfci_watch import VARIABLE, unwatched

HOOK = str(Path(perfci_watch.__file__).parent)
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
        ([PYTHON, "-P", "-Wignore", "x.py"], {k.encode(): v.encode() for k, v in REACHING.items()}),
    ],
)
def test_a_python_with_its_environment_is_watched(words: list[str], environment: object) -> None:
    assert list(unwatched(words[0], words, environment)) == []  # type: ignore[arg-type]


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


def test_a_sitecustomize_before_perfcis_stands_in_its_way(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("")
    environment = {**REACHING, "PYTHONPATH": f"{tmp_path}:{HOOK}"}
    found = unwatched(PYTHON, [PYTHON, "x.py"], environment)
    assert [how for how, _ in found] == ["unwatched"]


def test_what_is_no_python_is_named() -> None:
    assert list(unwatched("/usr/bin/git", ["git", "status"], {})) == [("program", "git")]
