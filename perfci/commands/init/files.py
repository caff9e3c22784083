"""Files that ``init`` writes where none exists, and the text of the workflows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from perfci.errors import UsageError
from perfci.files import read_regular
from perfci.notices import Say
from perfci.report.templates import template_folder
from perfci.version import VERSION

if TYPE_CHECKING:
    from jinja2 import Template

DIFFERS = " (differs from what would be written now; delete it to have it written anew)"
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
class NewFiles:
    """``texts`` by their path in the repository.

    ``caveat`` is said before they are written. ``parts`` are of files that are the project's own:
    what each has to hold, and what to say where it is there without that.
    """

    texts: Mapping[Path, str]
    caveat: str = ""
    parts: Mapping[Path, Mapping[str, str]] = field(default_factory=dict)

    def require_places(self, root: Path) -> None:
        """Raise UsageError where a file's folder can't be one of the repository."""
        for folder in dict.fromkeys(path.parent for path in self.texts):
            require_folder(root, folder)

    def write(self, root: Path, say: Say) -> None:
        """Write each that isn't there yet, and say which were written and which kept."""
        if self.caveat:
            say(self.caveat, err=True)
        for path, text in self.texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            try:
                with (root / path).open("x", encoding="utf-8") as file:
                    file.write(text)
            except FileExistsError:
                self._say_kept(root, path, say)
            else:
                say(f"wrote    {path}")

    def _say_kept(self, root: Path, path: Path, say: Say) -> None:
        there = _content(root / path)
        if path not in self.parts:
            same = there == self.texts[path].encode("utf-8")
            say(f"kept     {path}{'' if same else DIFFERS}")
            return
        say(f"kept     {path}")
        for needed, otherwise in self.parts[path].items():
            if needed.encode("utf-8") not in there:
                say(otherwise)


def require_folder(root: Path, folder: Path) -> None:
    """Raise UsageError where ``folder`` leads out of the repository, or a file is in its place."""
    if not (root / folder).resolve().is_relative_to(root.resolve()):
        raise UsageError(
            "outside-repository",
            f"{folder} lies outside the repository",
            "Choose a folder inside it, and no link that leads out: what is written is to be part "
            "of every commit.",
        )
    for place in (root / folder, *(root / folder).parents):
        if os.path.lexists(place):
            if not place.is_dir():
                raise UsageError(
                    "not-a-folder",
                    f"{place} is no folder, and {folder} is to be one",
                    "Move what is there.",
                )
            return


def _content(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError:  # a folder, or a link to nowhere: no such text in any case
        return b""


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
