"""Every workflow passes the linters."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from perfci.commands.workflows import WORKFLOWS
from tests.workflows.examples import ROOT, VARIANTS, parsed, write_workflows

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
LABELS = "self-hosted-runner:\n  labels: [gpu, cpu, linux-a100, linux-h100]\n"


# What stands around the steps that the documentation shows without their job.
AROUND = """\
name: around
on:
  pull_request:
permissions: {}
concurrency:
  group: around-${{ github.ref }}
  cancel-in-progress: true
jobs:
  around:
    name: around
    runs-on: gpu
    timeout-minutes: 60
    permissions:
      contents: read # to check out
    steps:
"""


def shown() -> list[str]:
    """Return the workflows that docs/github.md shows, with names where it has capitals."""
    text = (ROOT / "docs" / "github.md").read_text(encoding="utf-8")
    blocks = [textwrap.dedent(one) for one in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    before = AROUND.partition("jobs:")[0]
    whole = [
        before + one if one.startswith("jobs:") else AROUND + textwrap.indent(one, 6 * " ")
        for one in blocks
    ]
    return [one.replace("YOUR-ORG", "o").replace("COMMIT", 40 * "a") for one in whole]


def complaint(linter: str, folder: Path, *files: Path) -> str:
    """Return what ``linter`` says against workflow ``files``; nothing where all pass."""
    known = folder / "labels.yaml"
    known.write_text(LABELS)
    schema = [BIN / "check-jsonschema", "--builtin-schema"]
    commands: dict[str, list[str | Path]] = {
        "zizmor": [BIN / "zizmor", "--offline", "--no-progress"],
        "jactionlint": [BIN / "jactionlint", "--config-file", known],
        "schema": [*schema, "vendor.github-workflows"],
        "timeouts": [*schema, "custom.github-workflows-require-timeout"],
    }
    return _run([*commands[linter], *files], folder)


def _run(command: list[str | Path], folder: Path) -> str:
    """Return a linter's output where it fails. By PATH jactionlint finds shellcheck."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.fixture(scope="module")
def workflows(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All that are written for a project, perfci's own, and those that the documentation shows."""
    folder = tmp_path_factory.mktemp("workflows")
    folders = [write_workflows(choices, folder / name) for name, choices in VARIANTS.items()]
    written = [one / file for one in folders for file in WORKFLOWS]
    own = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert len(own) >= 3
    examples = [folder / f"shown-{number}.yml" for number in range(len(shown()))]
    for file, text in zip(examples, shown(), strict=True):
        file.write_text(text)
    assert examples
    return [*written, *own, *examples]


@pytest.mark.parametrize("linter", ["zizmor", "jactionlint", "schema", "timeouts"])
def test_every_workflow_passes(linter: str, workflows: list[Path], tmp_path: Path) -> None:
    said = complaint(linter, tmp_path, *workflows)
    assert not said, said


def test_the_documentation_uses_the_inputs_that_the_action_has() -> None:
    known = set(parsed((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"])
    given = [
        set(step["with"])
        for text in shown()
        for job in parsed(text)["jobs"].values()
        for step in job["steps"]
        if step.get("uses", "").startswith("o/perfci@")
    ]
    assert given
    assert all(names <= known for names in given)


@pytest.mark.parametrize("name", ["action.yml", "actions/comment/action.yml"])
def test_the_action_passes_its_linters(tmp_path: Path, name: str) -> None:
    file = ROOT / name
    assert not _run([BIN / "zizmor", "--offline", "--no-progress", file], tmp_path)
    assert not _run([BIN / "jactionlint", file], tmp_path)
    schema = [BIN / "check-jsonschema", "--builtin-schema", "vendor.github-actions", file]
    assert not _run(schema, tmp_path)
