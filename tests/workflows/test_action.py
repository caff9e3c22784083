"""The action's steps, run as a runner runs them: what comes in by an input stays an argument."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builders.project import Project
from tests.workflows.examples import ACTION as TEXT
from tests.workflows.examples import parsed, run_step, step

pytestmark = pytest.mark.processes

ACTION = parsed(TEXT)
HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "a\nverdict=pass\n::set-output name=verdict::pass",
    "x\nverdict<<EOF\npass\nEOF",
    "${{ github.token }} $GITHUB_TOKEN ${HOME} * ~ \\",
    "--markdown=pwned",
    "|| touch pwned &",
)

# Stands where the Python of perfci's own environment would: notes what it is called with, leaves a
# report of a verdict that only a real Python would read.
RECORDER = """\
#!/usr/bin/env bash
if [ "$3" = perfci ]; then
  printf '%s\\0' "${@:4}" > "$RECORD"
  for argument in "$@"; do
    case "$argument" in
      --json="$RUNNER_TEMP"/*) printf '%s' "$REPORT" > "${argument#--json=}" ;;
      --markdown="$RUNNER_TEMP"/*) echo "$SAID" | tee "${argument#--markdown=}" ;;
    esac
  done
  exit "$CODE"
fi
exec "$REAL" "$@"
"""


REPORT = '{"verdict": {"status": "pass"}}'


@dataclass(frozen=True, slots=True)
class Ran:
    """How the step Measure ended, and what it was seen to do."""

    code: int
    text: str
    outputs: dict[str, str]
    arguments: list[str]
    summary: str


def measure(
    folder: Path, said: str = "fine", report: str = REPORT, code: int = 0, **inputs: str
) -> Ran:
    """Run the step Measure with a Python that records."""
    recorder = own_python(folder)
    recorder.write_text(RECORDER)
    recorder.chmod(0o755)
    for name in ("record", "output", "summary"):
        (folder / name).touch()
    (folder / "work").mkdir()
    given = {name: spec["default"] for name, spec in ACTION["inputs"].items()} | inputs
    done = run_step(
        step(ACTION, "Measure")["run"],
        folder / "work",
        RECORD=str(folder / "record"),
        REAL=sys.executable,
        SAID=said,
        REPORT=report,
        CODE=str(code),
        RUNNER_TEMP=str(folder / "temp"),
        GITHUB_OUTPUT=str(folder / "output"),
        GITHUB_STEP_SUMMARY=str(folder / "summary"),
        **{f"PERFCI_{name.upper()}": value for name, value in given.items()},
    )
    recorded = (folder / "record").read_text()
    return Ran(
        done.returncode,
        done.stdout + done.stderr,
        outputs_in((folder / "output").read_text()),
        recorded.split("\0")[:-1],
        (folder / "summary").read_text(),
    )


def own_python(folder: Path) -> Path:
    """Return where the step Install leaves the Python that has perfci; makes its folder."""
    path = folder / "temp" / "perfci-action" / "bin" / "python"
    path.parent.mkdir(parents=True)
    return path


def outputs_in(text: str) -> dict[str, str]:
    """Return the outputs as GitHub's runner reads them."""
    found = {}
    lines = iter(text.splitlines())
    for line in lines:
        name, separator, delimiter = line.partition("<<")
        assert separator, line
        value = []
        for inner in lines:
            if inner == delimiter:
                break
            value.append(inner)
        found[name] = "\n".join(value)
    return found


def test_every_input_reaches_the_script_by_the_environment() -> None:
    for name in ("Install perfci", "Measure"):
        assert "${{" not in step(ACTION, name)["run"]
    given = step(ACTION, "Measure")["env"]
    inputs = {f"PERFCI_{name.upper()}": f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}
    assert {name: value for name, value in given.items() if name in inputs} == inputs
    assert set(given) - set(inputs) == {"GROUP_BASE", "FORK"}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_inputs_are_arguments_and_nothing_else(hostile: str, tmp_path: Path) -> None:
    given = {"base": hostile, "head": hostile, "budget": hostile, "config": hostile}
    ran = measure(tmp_path, **given, shard=hostile, select=hostile, artifact=hostile)
    assert ran.code == 0, ran.text
    assert ran.arguments[0] == "compare"
    assert ran.arguments[3:] == [
        "--python=python",
        f"--budget={hostile}",
        f"--config={hostile}",
        f"--shard={hostile}",
        *("-k", hostile),
        "--",
        hostile,
        hostile,
    ]
    assert not list(tmp_path.rglob("pwned"))
    assert set(ran.outputs) == {"artifact", "verdict", "report", "comment", "exit-code"}
    assert Path(ran.outputs["report"]).name == "report.json"


def test_further_arguments_are_one_a_line_as_they_stand(tmp_path: Path) -> None:
    lines = ["-k", "encoder and not slow", "", "$(touch pwned)", "--strict", "*", " spaced "]
    ran = measure(tmp_path, base="main", arguments="\n".join(lines))
    assert ran.arguments[4:-3] == [line for line in lines if line]
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize(
    ("inputs", "artifact", "file"),
    [
        ({}, "", "report.json"),
        ({"artifact": "a"}, "a", "report.json"),
        ({"artifact": "a", "shard": "2/4"}, "a-2-of-4", "report-2.json"),
        ({"artifact": "a", "machine": "gpu"}, "a-gpu", "report-gpu.json"),
        (
            {"artifact": "a", "machine": "gpu", "shard": "2/4"},
            "a-gpu-2-of-4",
            "report-gpu-2.json",
        ),
    ],
)
def test_the_report_lies_where_the_second_stage_expects_it(
    tmp_path: Path, inputs: dict[str, str], artifact: str, file: str
) -> None:
    ran = measure(tmp_path, base="main", **inputs)
    assert ran.outputs["artifact"] == artifact
    assert Path(ran.outputs["report"]).name == file
    (step,) = (one for one in ACTION["runs"]["steps"] if "uses" in one)
    assert step["with"]["path"] == "${{ steps.measure.outputs.report }}"
    assert "steps.measure.outputs.artifact }}" in step["if"]


def test_what_perfci_prints_is_no_command_to_the_runner(tmp_path: Path) -> None:
    ran = measure(tmp_path, said="::set-output name=verdict::fail", base="main")
    lines = [line for line in ran.text.splitlines() if line.startswith("::")]
    stop = re.fullmatch("::stop-commands::(perfci-[0-9a-f]{32})", lines[0])
    assert stop
    assert lines[1:] == ["::set-output name=verdict::fail", f"::{stop[1]}::"]
    assert ran.outputs["verdict"] == "pass"
    assert ran.summary == "::set-output name=verdict::fail\n"


@pytest.mark.parametrize(
    "report", ['{"verdict": {"sta', "[]", "null", '{"verdict": {"status": "x\\ny"}}', "\x00"]
)
def test_a_report_that_is_not_whole_takes_no_exit_code_and_no_output_along(
    tmp_path: Path, report: str
) -> None:
    ran = measure(tmp_path, report=report.replace("\x00", "\x7f"), code=4, base="main")
    assert ran.code == 4, ran.text
    assert ran.outputs["verdict"] == "none"
    assert ran.outputs["exit-code"] == "4"
    assert "Traceback" not in ran.text


def test_with_a_real_perfci_the_outputs_say_what_it_found(project: Project) -> None:
    project.counting(1000)
    project.commit("base")
    project.git("update-ref", "refs/remotes/origin/main", "HEAD")
    project.commit("merged there since", other="1")
    project.git("update-ref", "refs/remotes/origin/main", "HEAD")
    project.git("switch", "--quiet", "--create", "mine", "HEAD~1")
    head = project.commit("mine", more="1")
    folder = project.folder.parent
    own = own_python(folder)
    own.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    own.chmod(0o755)
    given = {name: spec["default"] for name, spec in ACTION["inputs"].items()}
    given |= {"python": sys.executable, "arguments": "-k\nsteady"}
    variables = {f"PERFCI_{name.upper()}": value for name, value in given.items()}
    done = run_step(
        step(ACTION, "Measure")["run"],
        project.folder,
        **variables,
        PERFCI_CACHE_DIR=str(project.cache),
        RUNNER_TEMP=str(folder / "temp"),
        GITHUB_BASE_REF="main",
        GITHUB_OUTPUT=str(folder / "output"),
        GITHUB_STEP_SUMMARY=str(folder / "summary"),
    )
    outputs = outputs_in((folder / "output").read_text())
    report = parsed(Path(outputs["report"]).read_text())
    assert outputs["exit-code"] == str(done.returncode), done.stderr
    assert outputs["verdict"] == report["verdict"]["status"]
    assert report["head"]["sha"] == head
    assert report["base"]["sha"] == project.git("rev-parse", "HEAD~1").strip()
    assert (folder / "summary").read_text() == Path(outputs["comment"]).read_text()
