"""The files that ``init`` writes for GitHub: templates and their values."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from perfci.errors import UsageError
from perfci.files import parse_toml
from perfci.outputs import Say
from perfci.report.templates import read_template, template_folder
from perfci.version import VERSION

if TYPE_CHECKING:
    from jinja2 import Template

    from perfci.measure.checkout.git import Repository

REQUIREMENTS = "perfci-requirements.txt"
"""The file next to the workflows that `make lock` writes, with hashes."""
_REPORT_PYTHON = "3.12"
"""A Python that the requirements have wheels for, and that perfci's own tests run on."""
FOLDER = Path(".github/workflows")
MOST_SHARDS = 256
"""GitHub's limit for the jobs of one matrix."""
ASKED_FOR = ("baseline", "nightly")
"""Workflows that are written only on request."""
# The forms of values that stand in a workflow as they are (see ``_fit``).
_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_PATH = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._/ -]*")
_PYTHON = re.compile(r"3\.[0-9]{1,2}(\.[0-9]{1,2})?")
_DIFFERS = " (differs from init's current version; delete it to get that one)"
WORKFLOWS = (
    "perfci.yml",
    "perfci-report.yml",
    "perfci-baseline.yml",
    "perfci-nightly.yml",
    "perfci-bisect.yml",
)
"""The files of GitHub's workflows."""
_HISTORY_BRANCH = "perfci-history"
"""The branch of the history."""
_BY_ACTION = ("perfci.yml", "perfci-report.yml")
"""Workflows that get perfci by its action. The others install it."""
_IMPORT = re.compile(r"^\s*(import|from) torch\b", re.MULTILINE)
"""An import of torch, in a form that git grep reads, too."""
_TORCH = re.compile(
    r"""^[^#\n]*(?<!import\s)(?<!from\s)(?<![\w.-])torch\s*([\s"'\[<>=!~;,@]|$)""", re.MULTILINE
)
"""A requirement of torch, in a line of any file."""
_ACTION = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}")
"""The address of an action: its repository and a commit."""
TRIGGERS = ("push", "label")
"""When stage 1 measures: at each push, or at those to pull requests with the label ``perfci``."""
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
class CiOptions:
    """Options of the files, empty where they were not given.

    ``more`` are the ``ASKED_FOR`` workflows to write.
    ``action`` is the address of perfci's action. ``trigger`` is one of ``TRIGGERS``.
    """

    runner: tuple[str, ...] = ()
    shards: int = 1
    python: str = ""
    install: tuple[str, ...] = ()
    nightly_runner: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    action: str = ""
    trigger: str = "push"

    @property
    def left_out(self) -> set[str]:
        """Return the workflows that no option asks for. Nights bring ``bisect``."""
        requested = {*self.more, *(["nightly"] if self.nightly_runner else [])}
        nights = {"bisect"} if "nightly" in requested else set()
        return {*ASKED_FOR, "bisect"} - requested - nights


def github_workflows(repository: Repository, options: CiOptions) -> Mapping[Path, str]:
    """Return the workflows by their paths. UsageError if one can't be made of the options."""
    from perfci.config.loading import load_config

    left_out = {f"perfci-{which}.yml" for which in options.left_out}
    names = [name for name in WORKFLOWS if name not in left_out]
    nightly = "nightly" not in options.left_out
    given, needs = _commands(options.install), _project(repository.root)
    usual = tuple(f"python -m pip install {each}" for each in needs)
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    page, commit = perfci_source(repository, options.action)
    name, perfci = urlsplit(page).path[1:], f"perfci @ git+{page}@{commit}"
    choices = WorkflowChoices(
        replace(
            options,
            runner=_labels(options.runner or _usual_runner(), "--runner"),
            python=_fit(_PYTHON, options.python or here, "--python-version"),
            install=given
            or (*usual[:-1], f"python -m pip install '{perfci}' {' '.join(needs[-1:])}".rstrip()),
            nightly_runner=tuple(
                ",".join(_labels(each.split(","), "--nightly-runner"))
                for each in options.nightly_runner
            ),
            action=f"{name}@{commit}" + ("" if options.action else f" # v{VERSION}"),
        ),
        branch=_fit(_BRANCH, _default_branch(repository), "the default branch's name"),
        baselines=_fit(_PATH, load_config(repository.root).baselines, "`baselines`"),
        project_install=given or usual,
        report_install=_locked_install(perfci) if nightly else (),
    )
    files = {FOLDER / name: render_workflow(name, choices) for name in names}
    if nightly:
        files[FOLDER / REQUIREMENTS] = read_template(f"workflows/{REQUIREMENTS}")
    require_folder(repository.root, FOLDER)
    return files


def _usual_runner() -> tuple[str, ...]:
    """Return the labels of a machine like this one: self-hosted with a GPU, else GitHub's."""
    from perfci.worker.devices.cuda import DRIVER

    return ("self-hosted", "gpu") if DRIVER.exists() else ("ubuntu-latest",)


def _labels(labels: Sequence[str], option: str) -> tuple[str, ...]:
    return tuple(_fit(_LABEL, label.strip(), option) for label in labels)


@dataclass(frozen=True, slots=True)
class WorkflowChoices:
    """The values in which projects' workflows differ.

    All ``options`` have values here: ``install`` makes an environment with perfci to measure in.
    ``project_install`` makes one without it, ``report_install`` that of nights' second job.
    """

    options: CiOptions
    branch: str
    baselines: str
    project_install: tuple[str, ...]
    report_install: tuple[str, ...]


def render_workflow(name: str, choices: WorkflowChoices) -> str:
    """Return the text of one of ``WORKFLOWS``."""
    options = choices.options
    machines = [tuple(each.split(",")) for each in options.nightly_runner] or [options.runner]
    return new_file_template(f"{name}.j2").render(
        version=VERSION,
        actions=ACTIONS,
        branch=choices.branch,
        baselines=choices.baselines,
        python=options.python,
        shards=options.shards,
        trigger=options.trigger,
        stored="baseline" in options.more,
        action={
            "measure": options.action,
            "comment": re.sub("/?(?=[@ ])", "/actions/comment", options.action, count=1),
        },
        report_python=_REPORT_PYTHON,
        runner=options.runner[0] if len(options.runner) == 1 else _listed(options.runner),
        numbers=json.dumps(list(range(1, options.shards + 1))),
        nightly_runners=[_listed(labels) for labels in machines],
        nightly_labels=[json.dumps(labels) for labels in machines],
        history_branch=_HISTORY_BRANCH,
        commands=choices.project_install if name in _BY_ACTION else options.install,
        report_commands=choices.report_install,
    )


def new_file_template(name: str) -> Template:
    """Return the template of a file that ``init`` writes. Its expressions are ``@{ … }@``."""
    import jinja2

    # not Jinja's own delimiters: GitHub's expressions are ${{ … }}, and bash has [[ … ]]
    environment = jinja2.Environment(  # noqa: S701 (YAML; what is put in was checked or is quoted)
        loader=jinja2.FileSystemLoader(
            [template_folder() / "workflows", template_folder() / "init"]
        ),
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
    """Return ``text`` with ``width`` blanks less per line: GitHub's scripts are indented more."""
    return re.sub(rf"^ {{{width}}}", "", text, flags=re.MULTILINE)


def _listed(labels: tuple[str, ...]) -> str:
    return f"[{', '.join(labels)}]"


def write_new(root: Path, texts: Mapping[Path, str], say: Say) -> None:
    """Write each missing file, and report which were written and which kept."""
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        try:
            with (root / path).open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            same = (root / path).read_bytes() == text.encode("utf-8")
            say(f"kept     {path}{'' if same else _DIFFERS}")
        else:
            say(f"wrote    {path}")


def require_folder(root: Path, folder: Path) -> None:
    """Raise UsageError if ``folder`` leads out of the repository."""
    if not (root / folder).resolve().is_relative_to(root.resolve()):
        raise UsageError(
            "outside-repository",
            f"{folder} lies outside the repository",
            "Choose a folder inside it, and not a link that leads out: its files must be part of "
            "every commit.",
        )


def _default_branch(repository: Repository) -> str:
    """Return origin's default branch, else main, master or the branch that is checked out."""
    from perfci.measure.checkout.git import attempt

    known = repository.default_base()
    if known is not None:
        return known.removeprefix("origin/")
    current = attempt(repository.root, "symbolic-ref", "--short", "HEAD")
    return current.output if current.status == 0 else "main"


def _project(root: Path) -> tuple[str, ...]:
    """Return what pip is given to install the project, as far as its files show it."""
    needs, files = "", [""]
    if (root / "requirements.txt").is_file():
        needs, files = "-r requirements.txt", ["requirements.txt"]
    elif (root / "setup.py").is_file() or _is_package(root / "pyproject.toml"):
        needs, files = ".", ["pyproject.toml", "setup.py", "setup.cfg"]
        setup = root / "setup.py"
        if setup.is_file() and re.search(_IMPORT, setup.read_text("utf-8", "replace")):
            return "torch setuptools wheel", "--no-build-isolation ."  # which needs torch to build
    missing = imports_torch(root) and not any(_declares_torch(root / file) for file in files)
    needs = f"{needs}{' torch' if missing else ''}".lstrip()
    return (needs,) if needs else ()


def imports_torch(root: Path) -> bool:
    """Return whether a project's code imports torch. A first benchmark of none's does."""
    from perfci.measure.checkout.git import attempt, git

    python = ("--", "*.py", ":!.*")
    modules = git(root, "ls-files", "--cached", "--others", "--exclude-standard", *python)
    torch = attempt(root, "grep", "-qE", "--untracked", _IMPORT.pattern, *python)
    return not modules or torch.status != 1


def _declares_torch(path: Path) -> bool:
    """Return whether a file lets pip install torch. Optional dependencies don't."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    if path.name == "pyproject.toml":
        table = parse_toml(text).get("project", {})  # init has read it
        if "dependencies" in table:
            text = "\n".join(table["dependencies"])
    return re.search(_TORCH, text) is not None


def _is_package(path: Path) -> bool:
    """Return whether pip could install a pyproject.toml's folder. [tool.…] tables don't suffice."""
    if not path.is_file():
        return False
    content = parse_toml(path.read_text(encoding="utf-8"))  # init has read it
    return "project" in content or "build-system" in content


def _commands(commands: tuple[str, ...]) -> tuple[str, ...]:
    """Return the shell commands of --install, if they fit into a script. UsageError for others.

    GitHub would evaluate ``${{ … }}`` inside of a script.
    """
    for command in commands:
        if not command.strip() or not command.isprintable() or "${{" in command:
            raise UsageError(
                "unfit-for-a-workflow",
                f"--install {command!r} can't stand in a workflow's script",
                "Give one line without ${{ … }}, and the option once more for each further line.",
            )
    return tuple(command.strip() for command in commands)


def _fit(pattern: re.Pattern[str], value: str, what: str) -> str:
    """Return a value that can stand in a workflow as it is. UsageError for another value."""
    if pattern.fullmatch(value):
        return value
    raise UsageError(
        "unfit-for-a-workflow",
        f"{what} is {value!r}, which a workflow can't contain",
        f"It must match {pattern.pattern}",
    )


def _locked_install(own: str) -> tuple[str, ...]:
    """Return the commands of a locked installation of perfci, without the project.

    The requirements include the build backend, so that none is fetched for the build.
    """
    locked = f"--only-binary :all: -r {FOLDER.as_posix()}/{REQUIREMENTS}"
    return (
        f"python -m pip install --require-hashes {locked}",
        f"python -m pip install --no-deps --no-build-isolation '{own}'",
    )


def perfci_source(repository: Repository, action: str) -> tuple[str, str]:
    """Return the repository that workflows get perfci from, as a URL, and the commit.

    It is that of ``action``, else the one that perfci was installed from. UsageError for any other
    perfci, because an index, or another machine, may have another by its name.
    """
    from perfci.measure.checkout.git import forge_of

    here = urlsplit(forge_of(repository)).hostname or "github.com"
    name, _, commit = action.partition("@")
    page, commit = (f"https://{here}/{name}", commit) if action else _installed_from()
    known = urlsplit(page).hostname in {"github.com", here}
    if known and _ACTION.fullmatch(f"{urlsplit(page).path[1:]}@{commit}"):
        return page, commit
    raise UsageError(
        "no-action",
        f"{action or 'the source that perfci was installed from'} is not a commit of a repository "
        "on GitHub",
        "Install perfci from there, `pip install 'perfci @ git+https://github.com/…@COMMIT'`, or "
        "name the repository that has it, with the whole SHA: --action YOUR-ORG/perfci@COMMIT.",
    )


def _installed_from() -> tuple[str, str]:
    """Return the repository and the commit that perfci was installed from, as pip noted (PEP 610).

    A folder counts as the commit that it has checked out, if origin has that commit.
    """
    from perfci.measure.checkout.git import attempt, web_page

    try:
        noted = distribution("perfci").read_text("direct_url.json")
    except PackageNotFoundError:
        noted = None
    origin = json.loads(noted or "{}")
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        return web_page(url), origin["vcs_info"].get("commit_id", "")
    folder = Path(unquote(urlsplit(url).path))
    if not (folder / ".git").exists():
        return "", ""
    page = web_page(attempt(folder, "config", "--get", "remote.origin.url").output)
    known = attempt(folder, "branch", "--remotes", "--list", "origin/*", "--contains", "HEAD")
    return page, attempt(folder, "rev-parse", "HEAD").output if known.output else ""
