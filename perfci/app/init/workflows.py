"""The GitHub workflows that ``perfci init --github`` writes: choices in, the files' text out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from perfci.model.version import VERSION
from perfci.render.templates import template_folder

if TYPE_CHECKING:
    from jinja2 import Template

WORKFLOWS = (
    "perfci.yml",
    "perfci-report.yml",
    "perfci-baseline.yml",
    "perfci-nightly.yml",
    "perfci-on-demand.yml",
)
HISTORY_BRANCH = "perfci-history"
MEASURING = ("perfci.yml", "perfci-baseline.yml", "perfci-nightly.yml")

# By commit, not by tag: a tag can be moved to other code (CVE-2025-30066).
ACTIONS: Mapping[str, str] = MappingProxyType(
    {
        "checkout": "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1",
        "setup_python": "actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0",
        "upload_artifact": (
            "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0"
        ),
        "download_artifact": (
            "actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1"
        ),
    }
)


@dataclass(frozen=True, slots=True)
class WorkflowChoices:
    """What differs between projects.

    ``runner`` are the labels of the machine that measures; ``install`` and ``report_install``
    the shell commands that make an environment to measure in, of ``python``, and one to comment
    from, of ``report_python``. ``nightly_runners`` are the labels of each type of machine that
    nights are measured on; none for ``runner`` alone. Nights are checked where a workflow stores
    baselines, ``stored``.
    """

    branch: str
    baselines: str
    python: str
    runner: tuple[str, ...]
    shards: int
    install: tuple[str, ...]
    report_install: tuple[str, ...]
    report_python: str
    nightly_runners: tuple[tuple[str, ...], ...] = ()
    stored: bool = True


def render_workflow(name: str, choices: WorkflowChoices) -> str:
    """Return the text of one of ``WORKFLOWS``."""
    shards = range(1, choices.shards + 1)
    return workflow_template(f"{name}.j2").render(
        version=VERSION,
        actions=ACTIONS,
        branch=choices.branch,
        baselines=choices.baselines,
        stored=choices.stored,
        measuring_commands=choices.install,
        measuring_python=choices.python,
        python=choices.python if name in MEASURING else choices.report_python,
        report_python=choices.report_python,
        runner=_runs_on(choices.runner),
        shards=choices.shards,
        numbers=json.dumps(list(shards)),
        spaced=" ".join(map(str, shards)),
        expected="report.json"
        if choices.shards == 1
        else f"report-N.json (N: 1 to {choices.shards})",
        optional=False,  # the history: where nothing but a comment is to be had without it
        nightly_runners=[_listed(one) for one in choices.nightly_runners or (choices.runner,)],
        history_branch=HISTORY_BRANCH,
        folder="merged" if choices.shards > 1 else "taken",
        commands=choices.install if name in MEASURING else choices.report_install,
        report_commands=choices.report_install,
    )


def workflow_template(name: str) -> Template:
    """Return a template of a CI's file, in which ``@{ … }@`` is ours."""
    import jinja2

    # GitHub's own expressions are ${{ … }} and bash has [[ … ]], so neither may be ours.
    environment = jinja2.Environment(  # noqa: S701 (YAML; what is put in was checked or is quoted)
        loader=jinja2.FileSystemLoader(template_folder() / "workflows"),
        undefined=jinja2.StrictUndefined,
        variable_start_string="@{",
        variable_end_string="}@",
        block_start_string="%{",
        block_end_string="}%",
        comment_start_string="#{",
        comment_end_string="}#",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["quoted"] = json.dumps  # a JSON string is one of YAML's too
    environment.filters["outdented"] = _outdented
    return environment.get_template(name)


def _outdented(text: str, width: int) -> str:
    """Return a script of GitHub's steps as far to the left as another CI's stands."""
    return re.sub(rf"^ {{{width}}}", "", text, flags=re.MULTILINE)


def _runs_on(labels: tuple[str, ...]) -> str:
    return labels[0] if len(labels) == 1 else _listed(labels)


def _listed(labels: tuple[str, ...]) -> str:
    return f"[{', '.join(labels)}]"
