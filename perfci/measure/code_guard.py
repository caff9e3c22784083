"""The guard against the wrong code: whose code a worker and its Python children ran.

A side's own tree comes first in each of its processes (``worker/hook``). What they loaded all the
same from the user's checkout, from another tree, or from an installed copy of the project is an
error that says what to do.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import perfci
from perfci.model.case import Failure
from perfci.model.worker import WRONG_CODE
from perfci.worker.hook.perfci_watch import VARIABLE, decoded_events, encoded
from perfci.worker.own_packages import NO_LIBRARY, project_folders

Where = Literal["own", "spared", "checkout", "another tree", "copy", "fresh", ""]
_FILES_SHOWN = 3
"""How many wrong files a failure's message lists."""
_CODE_OF: Mapping[Where, str] = {
    "checkout": " of the user's checkout",
    "another tree": ", another tree of the project",
    "copy": ", an installed copy of the project",
    "fresh": ", written during a build or this session outside of both trees",
}
_VERBS = {
    "import": "is imported from",
    "open": "is read from",
    "map": "is loaded from",
    "kept out": "would be imported from",
}
"""How a message says that code was used, by the event's ``how``."""
_BYTECODE = re.compile(r"/__pycache__/([^/]+)\.[^./]+(?:\.opt-\d)?\.pyc$")
"""The end of the path of bytecode that Python wrote next to its source."""
_CODE = (".py", ".pyc", ".egg", ".whl", ".zip", ".pyx", ".cu", ".cpp", ".c", ".ptx", ".cubin")
_LIBRARY = re.compile(r"\.(so|dylib|pyd)(\.\d+)*$")
_LACKING = re.compile(r"No module named '([A-Za-z_][\w.]*)'(?:\Z|; | (in the tree))")
"""Matches the message on a missing module, and whether perfci left it out."""
_BUILD = (
    "Set `build` in [tool.perfci] to the commands that compile it, such as "
    "`{python} setup.py build_ext --inplace`."
)
_INSIDE = (
    "Let `build` write into the tree, its current folder, and benchmarks below TMPDIR. Elsewhere "
    "both sides run the last version written."
)
_HARNESS = f"{Path(perfci.__file__).resolve().parent}/"


@dataclass(frozen=True, slots=True)
class CodePlaces:
    """The places of one side's code, and the places that its code must not come from.

    Paths are absolute and real. Folders end in a slash, except ``root`` and those in
    ``python_path``. The side's tree is ``root``, the other sides' are ``others``. ``cache`` holds
    the trees of all sides and commits, ``checkout`` is the user's. ``clones`` are other folders
    that the project is installed from, ``copies`` installed copies of it. No side is to blame for
    what is ``spared``. ``pythons`` are the folders of interpreters and their packages. ``modules``
    are the dotted names of the project's modules. ``installed`` are packages whose installed copy
    is meant. ``built``: the side's ``build`` has run. ``began`` is when the session began, and
    ``builds`` when those of all sides began and ended, which may be long ago (s since 1970).
    """

    root: str
    checkout: str
    cache: str
    python_path: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    clones: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    modules: frozenset[str] = frozenset()
    installed: tuple[str, ...] = ()
    configured_path: tuple[str, ...] = ()
    built: bool = False
    began: float = math.inf
    builds: tuple[tuple[float, float], ...] = ()

    def settings(self, record: Path, *, openings: bool) -> str:
        """Return the settings of a watch that writes to the file ``record``.

        With ``openings`` it also keeps which files are opened, and whether processes are started.
        """
        return encoded(
            {
                "folders": self.python_path,
                "own": (f"{self.root}/",),
                "spared": (*self.spared, _HARNESS),
                "trees": (*self.others, self.cache),
                "checkouts": (self.checkout, *self.clones),
                "pythons": self.pythons,
                "copies": self.copies,
                "names": tuple(sorted({name.partition(".")[0] for name in self.modules})),
                "installed": self.installed,
                "record": (str(record),),
                "openings": ("yes",) if openings else (),
                "since": (str(min((self.began, *(began for began, _ in self.builds)))),),
            }
        )

    def is_fresh(self, path: str) -> bool:
        """Return whether the file at ``path`` was written by a build, or since the session began.

        What a pip installs is known otherwise (``require_unchanged``). Caches of compiled code
        outlive sessions, so what workers add to them doesn't depend on the commit.
        """
        try:
            written = Path(path).stat().st_mtime
        except OSError:
            return False
        by_build = any(began <= written <= ended for began, ended in self.builds)
        by_session = written >= self.began and "cache" not in path.lower()
        return "-packages/" not in path and (by_build or by_session)

    def place(self, path: str) -> Where:
        """Return the owner of the real ``path``."""
        places: Mapping[Where, tuple[str, ...]] = {
            "own": (f"{self.root}/",),
            "spared": (*self.spared, _HARNESS),
            "another tree": (*self.others, self.cache),
            "copy": self.copies,
            "": tuple(python for python in self.pythons if python != self.checkout),
            "checkout": (self.checkout,),
        }
        matching = (place for place, folders in places.items() if path.startswith(folders))
        return next(matching, "another tree" if path.startswith(self.clones) else "")


@dataclass(frozen=True, slots=True)
class CodeEvent:
    """A file that a process used: ``how`` is ``import``, ``map`` (as code) or ``open``.

    An event ``kept out`` is of a module of another tree that wasn't imported. ``started`` says that
    a process was started.
    """

    how: str
    path: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class WrongCode:
    """A file that isn't the side's own: its path as a reader knows it, and what to do."""

    where: Where
    how: str
    file: str
    name: str
    advice: str


@dataclass(frozen=True, slots=True)
class CodeUsed:
    """The files that one worker and its children used.

    ``own`` are those of the side's tree, relative to it. ``elsewhere`` are the project's modules
    that were imported from an installed copy, whether or not that copy is meant.
    ``started`` says that a process was started.
    """

    wrong: tuple[WrongCode, ...]
    own: frozenset[str]
    elsewhere: tuple[CodeEvent, ...] = ()
    started: bool = False


def code_used(events: Sequence[CodeEvent], places: CodePlaces) -> CodeUsed:
    """Return whose code the ``events`` of a worker and its children used."""
    own, elsewhere = set(), []
    wrong: dict[str, WrongCode] = {}
    for event in events:
        where = places.place(event.path)
        meant = _is_meant(event, places)
        if where == "own":
            own.add(event.path.removeprefix(f"{places.root}/"))
            continue
        if where == "" and event.name in places.modules and "-packages/" in event.path:
            where = "copy"
        if event.how == "import" and (where == "copy" or meant):
            elsewhere.append(event)
        if where == "" and _is_run(event) and places.is_fresh(event.path):
            where = "fresh"
        if where in {"", "spared"} or meant or not _is_run(event):
            continue
        if of_event := _wrong(event, where, places):
            wrong.setdefault(event.path, of_event)
    return CodeUsed(
        tuple(wrong.values()),
        frozenset(own),
        tuple(elsewhere),
        any(event.how == "started" for event in events),
    )


def _is_run(event: CodeEvent) -> bool:
    """Return whether the file's content is code, rather than data that was read."""
    return (
        event.how in {"import", "map", "kept out"}
        or event.path.endswith(_CODE)
        or _is_library(event.path)
    )


def _is_library(path: str) -> bool:
    return _LIBRARY.search(path) is not None


def _relative(event: CodeEvent, where: str, places: CodePlaces) -> str:
    """Return the path of a file of another tree, relative to that tree.

    Only the checkout's root is known. Of others, the longest end of the path counts that this tree
    has, too, else the file's name.
    """
    if where == "checkout":
        return event.path.removeprefix(places.checkout)
    parts = Path(event.path).parts[1:]
    ends = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((end for end in ends if (Path(places.root) / end).exists()), parts[-1])


def _is_meant(event: CodeEvent, places: CodePlaces) -> bool:
    """Return whether the configuration says that the installed package is to be measured."""
    return not {event.name.partition(".")[0], _package_in(event.path)}.isdisjoint(places.installed)


def _package_in(path: str) -> str:
    _, _, inner = path.rpartition("-packages/")
    return inner.partition("/")[0].partition(".")[0]


def _wrong(event: CodeEvent, where: Where, places: CodePlaces) -> WrongCode | None:
    """Return what is wrong with an event, or None for a module of another tree that was kept out.

    Such a module is missing if the side's tree has its file: then a folder is missing on
    ``python_path``. Otherwise the side has no such module (a base, say, whose head adds it), unless
    it is compiled and nothing was built.
    """
    relative = _relative(event, where, places)
    has_it = (Path(places.root) / relative).exists()
    unbuilt = not places.built and _is_library(event.path)
    if event.how == "kept out" and not (has_it or unbuilt):
        return None
    file = relative if where == "checkout" else event.path
    if where == "copy":
        advice = _advice_on_copy(event, places)
    elif where == "fresh":
        advice = _INSIDE
    else:
        advice = _advice_on_tree(event, relative if has_it else "", places)
    return WrongCode(where, event.how, file, event.name, advice)


def _advice_on_copy(event: CodeEvent, places: CodePlaces) -> str:
    top = event.name.partition(".")[0] or _package_in(event.path)
    name = event.name or top
    advice = package_advice(places.root, name, places.configured_path) if name else ""
    if not advice and _is_library(event.path):
        advice = _BUILD
    meant = f'Where the installed copy is meant: installed = ["{top}"].' if top else ""
    return f"{advice} {meant}".strip()


def _advice_on_tree(event: CodeEvent, relative: str, places: CodePlaces) -> str:
    """Return what to do about a file of another tree, which the side has as ``relative``, if so."""
    if relative:
        folder = folder_of(Path(places.root), relative, event.name)
        return folder_advice(folder, places.configured_path) or (
            f"This side has it as {relative}: use a path that is relative to the module's "
            "`__file__`, or to the current directory, which is the side's tree."
        )
    if _is_library(event.path):
        return _BUILD
    in_tree = package_advice(places.root, event.name, places.configured_path) if event.name else ""
    absent = "The commit doesn't have it. Add it to the repository, or make it with `build`."
    return in_tree or absent


@dataclass(frozen=True, slots=True)
class WorkerWatch:
    """The record that one worker and its children write to, and the places of code."""

    record: Path
    places: CodePlaces
    openings: bool = False

    def begin(self) -> None:
        """Create the record. A watch never does, so that a removed file stays removed."""
        self.record.touch()

    def environment(self) -> dict[str, str]:
        """Return the variables that the worker's environment needs."""
        return {VARIABLE: self.places.settings(self.record, openings=self.openings)}

    def used(self) -> CodeUsed:
        """Return what the worker and its children used until now, and remove the record."""
        content = self.record.read_bytes() if self.record.exists() else b""
        self.record.unlink(missing_ok=True)
        events = [
            CodeEvent(how, _BYTECODE.sub(r"/\1.py", path), name)
            for how, path, name in dict.fromkeys(decoded_events(content))
        ]
        return code_used(events, self.places)


def lacking_advice(message: str, tree: str, python_path: Collection[str], python: str) -> str:
    """Return what to do about a module that ``message`` says is lacking, or "" if it doesn't."""
    lacking = _LACKING.search(message)
    if lacking is None:
        relative = "with no known parent package" in message
        return "In a benchmark file, write `from common import …` without a dot" if relative else ""
    name, kept_out = lacking.groups()
    top = name.partition(".")[0]
    if own := package_advice(tree, name, python_path):
        return own.rstrip(".")
    if kept_out:
        return (
            f"This commit doesn't have `{name}`: add it to the repository, or make it with `build`."
            f' Where the installed one is meant: installed = ["{top}"]'
        )
    in_tree = _folder_with(tree, top) is not None
    if in_tree and name != top:
        return (
            f"This commit lacks `{name}`. A checkout lacks files that git ignores: commit it, or "
            "have `build` in [tool.perfci] write it"
        )
    if in_tree or name != top:
        return ""
    return (
        f"{python} measured. Install {name} there, or name the Python that has it: `python` in "
        "[tool.perfci], or --python"
    )


def package_advice(tree: str, name: str, python_path: Collection[str]) -> str:
    """Return the advice to import the module ``name`` from its folder of ``tree``, or ""."""
    return folder_advice(_folder_with(tree, name), python_path)


def _folder_with(tree: str, name: str) -> str | None:
    """Return the folder of ``tree`` that has the module ``name``, also in a namespace package."""
    inner = name.replace(".", "/")
    for folder, _ in project_folders(tree):
        module, relative = folder / inner, os.path.relpath(folder, tree)
        usual = NO_LIBRARY.isdisjoint(Path(relative).parts)
        if (module / "__init__.py").is_file() or module.with_suffix(".py").is_file():
            return relative
        if usual and module.name not in NO_LIBRARY and any(module.rglob("*.py")):
            return relative
    return None


def folder_advice(folder: str | None, python_path: Collection[str]) -> str:
    """Return the advice to import from ``folder`` of the tree, or "" if that is done."""
    if folder is None or folder in python_path:
        return ""
    return f'Add "{folder}" to `python_path` in [tool.perfci].'


def folder_of(tree: Path, file: str, module: str) -> str:
    """Return the folder, relative to ``tree``, from which ``file`` is imported."""
    path = Path(file)
    if module and module != "__main__":
        inner = path.parent if path.name.startswith("__init__.") else path
        parts = module.split(".")
        names = [*inner.parts[:-1], inner.name.partition(".")[0]]
        if names[-len(parts) :] == parts:
            return str(Path(*names[: -len(parts)]))
    folder = path.parent
    while (tree / folder / "__init__.py").is_file() and folder != Path():
        folder = folder.parent
    return str(folder)


def described(code: WrongCode, side: str) -> str:
    """Return in one line what is wrong."""
    what = f"`{code.name}`" if code.name and code.how != "open" else "a file"
    return f"{what} {_VERBS[code.how]} {code.file}{_CODE_OF[code.where]}: not {side}'s own code"


def wrong_code(wrong: Sequence[WrongCode], case: str, side: str, log_tail: str) -> Failure:
    """Return the failure of a case whose worker ran code that isn't its side's."""
    lines = [described(code, side) for code in wrong[:_FILES_SHOWN]]
    if len(wrong) > _FILES_SHOWN:
        lines[-1] += f" (and {len(wrong) - _FILES_SHOWN} more)"
    advice = dict.fromkeys(code.advice for code in wrong[:_FILES_SHOWN] if code.advice)
    message = "; ".join(lines) + "".join(f"\n{line}" for line in advice)
    return Failure(case, side, "finish", WRONG_CODE, message, log_tail)
