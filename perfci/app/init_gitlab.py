"""``init --gitlab``: writes the pipeline that measures merge requests and comments on them."""

from __future__ import annotations

import sys
from pathlib import Path

from perfci.app.init_github import (
    LABEL,
    PYTHON,
    REPORT_PYTHON,
    REQUIREMENTS,
    GitHubOptions,
    commands_of,
    fit,
    is_text,
    locked_install,
    own_requirement,
    project_install,
    with_perfci,
)
from perfci.app.notices import Say
from perfci.errors import UsageError
from perfci.model.version import VERSION

FOLDER = Path(".gitlab")
PIPELINE = FOLDER / "perfci.yml"
ROOT_FILE = Path(".gitlab-ci.yml")
_INCLUDE = f"include:\n  - local: {PIPELINE.as_posix()}\n"


def write_pipeline(root: Path, options: GitHubOptions, say: Say) -> None:
    """Write what isn't there yet, and say which was written and which kept.

    The pipeline is a file that the project's own includes, so that there is only one line to add
    where that exists.
    """
    left = GitHubOptions(runner=options.runner, python=options.python, install=options.install)
    if options not in {left, _with_report(left, options.report_install)}:
        raise UsageError(
            "not-on-gitlab",
            "--shards, --nightly-runner and --with are about GitHub's workflows",
            "Leave them out; docs/forges.md says how to measure in several jobs.",
        )
    if not options.install and (caveat := own_requirement().caveat):
        say(f"{caveat}. The job that measures installs it: say how, --install.", err=True)
    files = {PIPELINE: _pipeline(root, options)}
    if any(REQUIREMENTS in command for command in _report_install(options)):
        from perfci.render.templates import read_template

        files[FOLDER / REQUIREMENTS] = read_template(f"workflows/{REQUIREMENTS}")
    if not (root / FOLDER).resolve().is_relative_to(root.resolve()):
        raise UsageError(
            "outside-repository",
            f"{FOLDER} is a link that leads out of the repository",
            "Make it a folder: a pipeline is a file of the repository.",
        )
    (root / FOLDER).mkdir(exist_ok=True)
    for name, text in files.items():
        _write(root, name, text, say)
    if not _write(root, ROOT_FILE, _INCLUDE, say):
        say(f"add to   {ROOT_FILE}: include: [local: {PIPELINE.as_posix()}]")


def _write(root: Path, name: Path, text: str, say: Say) -> bool:
    """Write a file that isn't there; say so, and return whether it has this text now."""
    try:
        with (root / name).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        same = is_text(root / name, text)
        say(f"kept     {name}{'' if same else ' (differs from what would be written now)'}")
        return same
    say(f"wrote    {name}")
    return True


def _pipeline(root: Path, options: GitHubOptions) -> str:
    from perfci.app.workflows import workflow_template

    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = fit(PYTHON, options.python or here, "--python-version")
    return workflow_template("gitlab.yml.j2").render(
        version=VERSION,
        tags=[fit(LABEL, one, "--runner") for one in options.runner or ("gpu",)],
        python=python,
        report_python=python if options.report_install else REPORT_PYTHON,
        install=with_perfci(commands_of(options.install or project_install(root), "--install")),
        report_install=_report_install(options),
    )


def _report_install(options: GitHubOptions) -> tuple[str, ...]:
    given = options.report_install or locked_install(FOLDER.as_posix())
    return commands_of(given, "--report-install")


def _with_report(options: GitHubOptions, report_install: tuple[str, ...]) -> GitHubOptions:
    return GitHubOptions(
        runner=options.runner,
        python=options.python,
        install=options.install,
        report_install=report_install,
    )
