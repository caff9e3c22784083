"""``init --github``: finds out what the workflows need to know, and writes them."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.commands.init.files import NewFiles
from perfci.errors import UsageError
from perfci.files import parse_toml
from perfci.version import VERSION

if TYPE_CHECKING:
    from perfci.commands.init.files import WorkflowChoices
    from perfci.measure.checkout.git import Repository


# What to give pip so that another machine gets the perfci that runs here.

_ADDRESS = re.compile(r"[a-z]+\+(https|ssh)://[A-Za-z0-9+:/@._~%-]+")
"""What another machine can reach, and what stands between a script's single quotes as it is."""


@dataclass(frozen=True, slots=True)
class OwnRequirement:
    """A requirement in pip's words; ``caveat``: why another machine may find another package."""

    text: str
    caveat: str = ""


def own_requirement() -> OwnRequirement:
    """Return perfci as it was installed here: a commit of a repository, else this version.

    pip notes where a package came from that was in no index (PEP 610).
    """
    version = f"perfci=={VERSION}"
    try:
        noted = distribution("perfci").read_text("direct_url.json")
    except PackageNotFoundError:
        noted = None
    if noted is None:
        return OwnRequirement(version)
    origin = json.loads(noted)
    vcs, url = origin.get("vcs_info", {}), str(origin.get("url", ""))
    address = f"{vcs.get('vcs')}+{url}@{vcs.get('commit_id')}"
    if vcs and _ADDRESS.fullmatch(address):
        return OwnRequirement(f"perfci @ {address}")
    return OwnRequirement(
        version,
        f"perfci is installed from {url} here, which other machines can't install from; "
        f"{version} of a package index may be somebody else's",
    )


# How the job that comments installs perfci: what it depends on by hash, perfci by its commit.

REQUIREMENTS = "perfci-requirements.txt"
"""Beside the workflows: `make lock` wrote it, with hashes."""

REPORT_PYTHON = "3.12"
"""One that the requirements have wheels for, and perfci's own tests run on."""


def locked_install(folder: str) -> tuple[str, ...]:
    """Return the commands, with the requirements in ``folder``.

    UsageError where perfci is of a place that no other machine can install from.
    """
    own = own_requirement()
    if own.caveat:
        raise UsageError(
            "of-a-folder",
            own.caveat,
            "Install perfci from its repository, `pip install 'perfci @ git+https://…@COMMIT'`, or "
            "say both how the jobs that measure get it, --install, and how the one that comments "
            "does, whose token can write: --report-install.",
        )
    # the build backend is among the requirements: none is fetched for the build
    return (
        f"python -m pip install --require-hashes --only-binary :all: -r {folder}/{REQUIREMENTS}",
        f"python -m pip install --no-deps --no-build-isolation '{own.text}'",
    )


FOLDER = Path(".github/workflows")
MOST_SHARDS = 256
"""GitHub starts no more jobs from one matrix."""

ASKED_FOR = ("baseline", "nightly", "on-demand")
"""The workflows that are written only where somebody asks for them."""

_DEFAULT_RUNNER = ("self-hosted", "gpu")
LABEL = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_PATH = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._/ -]*")
PYTHON = re.compile(r"3\.[0-9]{1,2}(\.[0-9]{1,2})?")


@dataclass(frozen=True, slots=True)
class GitHubOptions:
    """What the command line said about the workflows; empty where it said nothing."""

    runner: tuple[str, ...] = ()
    shards: int = 1
    python: str = ""
    install: tuple[str, ...] = ()
    report_install: tuple[str, ...] = ()
    nightly_runner: tuple[str, ...] = ()
    more: tuple[str, ...] = ()

    @property
    def left_out(self) -> set[str]:
        """Which of ``ASKED_FOR`` nobody asked for; machines of nights ask for these."""
        asked = {*self.more, *(["nightly"] if self.nightly_runner else [])}
        return set(ASKED_FOR) - asked


def workflows(repository: Repository, options: GitHubOptions) -> NewFiles:
    """Return the workflows; UsageError where one can't be made of the options."""
    choices = _choices(repository, options)
    caveat = "" if options.install else caveat_of_install("The jobs that measure install it")
    files = _files(choices, {f"perfci-{which}.yml" for which in options.left_out})
    return NewFiles({FOLDER / name: text for name, text in files.items()}, caveat)


def caveat_of_install(what: str) -> str:
    """Return why what is written may install another perfci; nothing where it doesn't."""
    caveat = own_requirement().caveat
    return f"{caveat}. {what}: say how, --install." if caveat else ""


def _files(choices: WorkflowChoices, left_out: set[str]) -> dict[str, str]:
    """Return the workflows' texts, and the requirements' where a command names their file."""
    from perfci.commands.init.files import WORKFLOWS, render_workflow
    from perfci.report.templates import read_template

    files = {name: render_workflow(name, choices) for name in WORKFLOWS if name not in left_out}
    if any(REQUIREMENTS in command for command in choices.report_install):
        files[REQUIREMENTS] = read_template(f"workflows/{REQUIREMENTS}")
    return files


def _choices(repository: Repository, options: GitHubOptions) -> WorkflowChoices:
    from perfci.commands.init.files import WorkflowChoices
    from perfci.config.loading import load_config

    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = fit(PYTHON, options.python or here, "--python-version")
    return WorkflowChoices(
        branch=fit(_BRANCH, _default_branch(repository), "the default branch's name"),
        baselines=fit(_PATH, load_config(repository.root).baselines, "`baselines`"),
        python=python,
        runner=tuple(fit(LABEL, one, "--runner") for one in options.runner or _DEFAULT_RUNNER),
        shards=options.shards,
        install=with_perfci(
            commands_of(options.install or project_install(repository.root), "--install")
        ),
        report_install=commands_of(
            options.report_install or locked_install(FOLDER.as_posix()), "--report-install"
        ),
        report_python=python if options.report_install else REPORT_PYTHON,
        nightly_runners=nightly_labels(options),
        stored="baseline" not in options.left_out,
    )


def nightly_labels(options: GitHubOptions) -> tuple[tuple[str, ...], ...]:
    """Return the labels of each machine of the nightly runs."""
    return tuple(
        tuple(fit(LABEL, label.strip(), "--nightly-runner") for label in one.split(","))
        for one in options.nightly_runner
    )


def _default_branch(repository: Repository) -> str:
    """Return what origin calls its default branch; else main, master or the one checked out."""
    from perfci.measure.checkout.git import attempt

    known = repository.default_base()
    if known is not None:
        return known.removeprefix("origin/")
    current = attempt(repository.root, "symbolic-ref", "--short", "HEAD")
    return current.output if current.status == 0 else "main"


def project_install(root: Path) -> tuple[str, ...]:
    """Return how the project itself is installed, as far as its files say."""
    if (root / "requirements.txt").is_file():
        project = "-r requirements.txt"
    elif (root / "setup.py").is_file() or _is_package(root / "pyproject.toml"):
        project = "."
    else:
        project = "torch"
    return (f"python -m pip install '{own_requirement().text}' {project}",)


def _is_package(path: Path) -> bool:
    """Return whether pip could install it: most files with only [tool.…] are no packages."""
    if not path.is_file():
        return False
    content = parse_toml(path.read_text(encoding="utf-8"))  # init has read it
    return "project" in content or "build-system" in content


def fit(pattern: re.Pattern[str], value: str, what: str) -> str:
    """Return a value that can stand in a workflow as it is; else UsageError."""
    if pattern.fullmatch(value):
        return value
    raise UsageError(
        "unfit-for-a-workflow",
        f"{what} is {value!r}, which can't stand in a workflow as it is",
        f"It must match {pattern.pattern}",
    )


def with_perfci(commands: tuple[str, ...]) -> tuple[str, ...]:
    """Return the commands of a job that measures; UsageError where none of them names perfci."""
    if any("perfci" in command for command in commands):
        return commands
    raise UsageError(
        "install-without-perfci",
        "none of the commands of --install installs perfci, which the job then runs",
        f"Add one: --install \"python -m pip install '{own_requirement().text}'\". Where one of "
        "yours brings it along, say so at its end: `make wheels # with perfci`.",
    )


def commands_of(commands: tuple[str, ...], option: str) -> tuple[str, ...]:
    """Return shell commands fit for a script: GitHub would evaluate ``${{ … }}`` inside it."""
    for command in commands:
        if not command.strip() or not command.isprintable() or "${{" in command:
            raise UsageError(
                "unfit-for-a-workflow",
                f"{option} {command!r} can't stand in a workflow's script",
                "Give one line without ${{ … }}, and the option once more for each further line.",
            )
    return tuple(command.strip() for command in commands)
