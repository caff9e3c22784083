"""The examples for other CI: their schemas take them, perfci takes their lines, and they run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import click
import pytest
from ruamel.yaml import YAML

from perfci.cli.main import cli
from tests.builders.project import Project
from tests.lacking import needed

pytestmark = pytest.mark.processes

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "ci"
BIN = Path(sys.executable).parent
FILES = ("Jenkinsfile", "buildkite.yml", "forgejo.yml")
STUB = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
[ "$1" = -m ] && mkdir -p "$3/bin"
[ "$(basename "$0")" = perfci ] && exit 1
exit 0
"""
"""perfci finds a regression."""


def read(name: str) -> str:
    return (EXAMPLES / name).read_text(encoding="utf-8")


def scripts(name: str) -> list[str]:
    """Return the shell scripts of an example, as the CI gives them to the shell."""
    if name == "Jenkinsfile":
        found = re.findall(r"sh '''\n(.*?)'''", read(name), re.DOTALL)
        # Groovy reads a backslash at a line's end as the line going on
        return [textwrap.dedent(one).replace("\\\n", "") for one in found]
    content = YAML(typ="safe").load(read(name))
    if name == "buildkite.yml":
        return [step["command"].replace("$$", "$") for step in content["steps"]]
    steps = [step for job in content["jobs"].values() for step in job["steps"]]
    return [step["run"] for step in steps if "run" in step]


def commands(name: str) -> list[list[str]]:
    """Return the arguments of each call of perfci."""
    lines = "\n".join(scripts(name)).replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.strip().startswith("perfci ")]


@pytest.mark.parametrize(
    ("name", "schema", "broken"),
    [
        ("buildkite.yml", "vendor.buildkite", ("timeout_in_minutes: 60", "timeout_in_minutes: x")),
        ("forgejo.yml", "vendor.github-workflows", ("runs-on: gpu", "runs_on: gpu")),
    ],
)
def test_the_schema_takes_the_example_and_not_a_broken_one(
    tmp_path: Path, name: str, schema: str, broken: tuple[str, str]
) -> None:
    needed("check_jsonschema")
    file = tmp_path / name
    for text, code in ((read(name), 0), (read(name).replace(*broken), 1)):
        file.write_text(text)
        done = subprocess.run(
            [BIN / "check-jsonschema", "--builtin-schema", schema, file],
            capture_output=True,
            check=False,
        )
        assert done.returncode == code, done.stdout


@pytest.mark.parametrize("name", FILES)
def test_perfci_takes_every_line_that_calls_it(name: str) -> None:
    calls = commands(name)
    assert calls
    for command, *arguments in calls:
        found = cli.get_command(click.Context(cli), command)
        assert found is not None
        with found.make_context(command, arguments) as context:
            assert context.params


@pytest.mark.parametrize("name", FILES)
def test_the_script_that_measures_compares_with_where_the_change_left_its_target(
    tmp_path: Path, name: str
) -> None:
    """The script is run by a shell in a clone, with stubs in the place of perfci and Python."""
    origin = Project(tmp_path / "origin")
    origin.git("checkout", "--quiet", "-B", "main")
    left = origin.commit("first")
    origin.git("checkout", "--quiet", "-b", "feature")
    origin.write("feature.py", "")
    origin.commit("feature")
    origin.git("checkout", "--quiet", "main")
    origin.write("later.py", "")
    origin.commit("later on the target")
    origin.git("checkout", "--quiet", "feature")
    origin.git("clone", "--quiet", str(origin.folder), str(tmp_path / "clone"))
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for stub in ("perfci", "python", "python3"):
        (stubs / stub).write_text(STUB)
        (stubs / stub).chmod(0o755)
    target = ("CHANGE_TARGET", "BUILDKITE_PULL_REQUEST_BASE_BRANCH", "TARGET")
    environment = dict.fromkeys(target, "main") | {
        "PATH": f"{stubs}{os.pathsep}{os.environ['PATH']}",
        "CALLS": str(tmp_path / "calls"),
    }
    done = subprocess.run(
        ["bash", "-e", "-c", scripts(name)[0]],
        cwd=tmp_path / "clone",
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    last = (tmp_path / "calls").read_text().splitlines()[-1]
    assert last.startswith(f"perfci compare {left} HEAD --python python --json"), done.stderr
    assert done.returncode == 1  # perfci's own: a regression fails the build
