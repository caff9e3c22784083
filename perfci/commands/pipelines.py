"""``init --gitlab`` and ``init --kubernetes``: pipelines and an indexed job."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.commands.workflows import (
    LABEL,
    PYTHON,
    REPORT_PYTHON,
    REQUIREMENTS,
    CiOptions,
    NewFiles,
    caveat_of_install,
    commands_of,
    fit,
    locked_install,
    nightly_labels,
    project_install,
    with_perfci,
)
from perfci.errors import UsageError
from perfci.measure.checkout.git import Repository, forge_of
from perfci.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(".gitlab")
PIPELINE = FOLDER / "perfci.yml"
NIGHTLY = FOLDER / "perfci-nightly.yml"
ROOT_FILE = Path(".gitlab-ci.yml")
_MOST_SHARDS = 200
"""GitLab's limit for `parallel`."""
JOB = Path("perfci-job.yaml")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")


def gitlab_pipeline(root: Path, options: CiOptions) -> NewFiles:
    """Return the pipeline's files. UsageError where one can't be made of the options.

    The project's own pipeline includes them, so that there is one line to add for each where it
    exists.
    """
    _require_known(options)
    nightly = "nightly" not in options.left_out
    values = _template_values(root, options, nightly=nightly)
    from perfci.commands.workflows import workflow_template
    from perfci.report.templates import read_template

    texts = {PIPELINE: workflow_template("gitlab.yml.j2").render(values)}
    if nightly:
        texts[NIGHTLY] = workflow_template("gitlab-nightly.yml.j2").render(values)
    included = {
        path.as_posix(): f"add to   {ROOT_FILE}: include: [local: {path.as_posix()}]"
        for path in texts
    }
    if any(REQUIREMENTS in command for command in _report_install(options)):
        texts[FOLDER / REQUIREMENTS] = read_template(f"workflows/{REQUIREMENTS}")
    texts[ROOT_FILE] = "include:\n" + "".join(f"  - local: {path}\n" for path in included)
    caveat = "" if options.install else caveat_of_install("The job that measures installs it")
    return NewFiles(texts, caveat, {ROOT_FILE: included})


def _require_known(options: CiOptions) -> None:
    for workflow in options.more:
        if workflow != "nightly":
            raise UsageError(
                "not-on-gitlab",
                f"--with {workflow} is about GitHub's workflows",
                "Leave it out. --with nightly works for GitLab, too.",
            )
    if options.shards > _MOST_SHARDS:
        raise UsageError(
            "not-on-gitlab",
            f"--shards is {options.shards}, and GitLab makes at most {_MOST_SHARDS} jobs of one",
            "Give it fewer.",
        )


def _template_values(root: Path, options: CiOptions, *, nightly: bool) -> Mapping[str, object]:
    """Return the values for the templates."""
    from perfci.commands.workflows import HISTORY_BRANCH

    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = fit(PYTHON, options.python or here, "--python-version")
    tags = [fit(LABEL, label, "--runner") for label in options.runner or ("gpu",)]
    return {
        "version": VERSION,
        "tags": tags,
        "shards": options.shards,
        "python": python,
        "report_python": python if options.report_install else REPORT_PYTHON,
        "install": with_perfci(commands_of(options.install or project_install(root), "--install")),
        "report_install": _report_install(options),
        "nightly": nightly,
        "nightly_tags": [list(labels) for labels in nightly_labels(options)] or [tags],
        "history_branch": HISTORY_BRANCH,
    }


def _report_install(options: CiOptions) -> tuple[str, ...]:
    given = options.report_install or locked_install(FOLDER.as_posix())
    return commands_of(given, "--report-install")


@dataclass(frozen=True, slots=True)
class KubernetesOptions:
    """Options of the job. ``image`` has git and Python."""

    shards: int
    image: str
    install: tuple[str, ...] = ()


def kubernetes_job(repository: Repository, options: KubernetesOptions) -> NewFiles:
    """Return the job's file. UsageError where it can't be made of the options."""
    caveat = "" if options.install else caveat_of_install("The pods install it")
    return NewFiles({JOB: _job(repository, options)}, caveat)


def _job(repository: Repository, options: KubernetesOptions) -> str:
    from perfci.commands.workflows import workflow_template

    address = forge_of(repository)
    if not address:
        raise UsageError(
            "no-address",
            "the repository has no remote `origin` that a pod could clone",
            "git remote add origin https://…",
        )
    install = options.install or project_install(repository.root)
    return workflow_template("kubernetes.yml.j2").render(
        version=VERSION,
        shards=options.shards,
        image=fit(_IMAGE, options.image, "--image"),
        repository=address,
        install=with_perfci(commands_of(install, "--install")),
    )
