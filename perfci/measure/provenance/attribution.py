"""The watch of one worker, and whose code the worker ran: its own side's or another's."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from perfci.measure.provenance.advice import ConfigurationAdvice
from perfci.measure.provenance.counterparts import Resemblance, distribution_at
from perfci.measure.provenance.events import (
    ENTRY_POINTS,
    LOOKS,
    CodeEvent,
    CodePlaces,
    is_code,
    is_library,
    read_events,
)
from perfci.model.case import Failure
from perfci.model.worker import WRONG_CODE
from perfci.worker.hook.perfci_watch.commands import is_python
from perfci.worker.hook.perfci_watch.ownership import VARIABLE
from perfci.worker.own_packages import normalised, packages_in

Where = Literal["checkout", "another tree", "copy", "perhaps a copy", "child"]
_STATUS = frozenset({"watched", "looked", "missing", "python", "exec", "started", "blind"})
"""Events about the watch and about processes that were started. They aren't attributed."""
UNSEEN_LOOKS = "unseen looks at files"
"""Stands in ``Provenance.unknown`` if not all looks at files were seen."""
_OF_PROCESSES = frozenset({"unwatched", "living", "program", "network", "unreadable"})
"""Events without a file: of children, of the network, and those that can't be read."""
_CHILD_ADVICE = (
    "Start it with sys.executable, without -I, -E and -S, and with the environment that the "
    "benchmark has (env={**os.environ, ...}), so that it imports this side's code."
)
_OWN_ENVIRONMENT = (
    'Set environment = "own" in [tool.perfci], with a `build` that installs the project.'
)
_SCRIPT_ADVICE = (
    f"The sides declare this console script differently, and one is installed. {_OWN_ENVIRONMENT}"
)
_ENTRY_POINTS_ADVICE = (
    f"The sides declare these entry points differently, and one's are installed. {_OWN_ENVIRONMENT}"
)
_FILES_SHOWN = 3
"""How many wrong files a failure's message lists."""
_CODE_OF = {
    "checkout": " of the user's checkout",
    "another tree": ", another tree of the project",
    "copy": ", an installed copy of the project",
    "perhaps a copy": ", perhaps an installed copy of the project",
}
_VERBS = {
    "import": "is imported from",
    "kept out": "would be imported from",
    **dict.fromkeys(("open", ENTRY_POINTS), "is read from"),
    "run": "is run from",
}
"""How a message says that code was used, by the event's ``how``."""


@dataclass(frozen=True, slots=True)
class WrongCode:
    """One file that isn't the side's own, or a child that could not be watched.

    ``how`` is the event's (see ``CodeEvent``). ``file`` is the path as a reader knows it, and
    ``advice`` is what to do.
    """

    where: Where
    how: str
    file: str
    name: str
    advice: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """The code that one worker and its children ran.

    ``wrong`` is code that isn't the side's own. ``used`` are the side's own files (absolute paths),
    and ``modules`` the imports among them. ``outside`` are harmless files of the user's checkout,
    relative to it. ``unknown`` says what no watch saw. ``elsewhere`` are the project's modules that
    were imported from an installed copy, whether or not that copy is meant. ``loaded`` are modules
    and libraries from outside the trees, such as a Python prefix or a temporary folder.
    ``looked_at`` are the side's files and folders whose existence or content was asked for.
    ``advice`` is what to set if the worker failed because it did not find something. If
    ``watched`` is false, the watch recorded nothing, or its record was removed.
    """

    wrong: tuple[WrongCode, ...]
    used: tuple[str, ...]
    modules: tuple[CodeEvent, ...]
    outside: tuple[str, ...]
    unknown: tuple[str, ...]
    elsewhere: tuple[CodeEvent, ...] = ()
    loaded: tuple[str, ...] = ()
    looked_at: tuple[CodeEvent, ...] = ()
    advice: str = ""
    watched: bool = True


def provenance_of(
    events: Sequence[CodeEvent],
    places: CodePlaces,
    python_path: Sequence[str],
    *,
    built: bool,
    failed: int = 0,
) -> Provenance:
    """Return whose code ran. ``built``: the side's ``build`` has run, and made all that it makes.

    ``failed`` is the process id of a worker that failed, or 0. This worker doesn't count as a
    process whose end went unseen: its case has no numbers that could be doubted.
    """
    attribution = _Attribution(events, places, python_path, built=built)
    for event in events:
        if event.how not in _STATUS | LOOKS and not os.path.isdir(event.path):  # noqa: PTH112 (raises nothing)
            attribution.add(event)
    return attribution.provenance(failed)


def _paths(events: Iterable[CodeEvent]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(event.path for event in events))


def _unknown(
    events: Sequence[CodeEvent], relevant: Sequence[CodeEvent], failed: str
) -> tuple[str, ...]:
    """Return what no watch saw, such as the libraries of a fork that ended by ``os._exit``."""
    watched = {event.name for event in events if event.how == "watched"} - {failed}
    seen = {event.name for event in events if event.how in {"looked", "living"}}
    unseen = ["unseen fork"] if watched - seen else []
    pythons = {event.name for event in events if event.how == "python"} - {failed}
    unseen += ["unwatched Python"] if pythons - watched else []
    unseen += [UNSEEN_LOOKS] if any(event.how == "blind" for event in events) else []
    programs = (
        f"{code.how} {code.name or code.path}"
        for code in relevant
        if code.how in {"program", "network", "unreadable"}
    )
    # programs that began without Python's announcing them: a compiled library started them, say
    started = {os.path.basename(event.path) for event in events if event.how == "started"}  # noqa: PTH119
    unannounced = (
        f"program {name}"
        for name in (os.path.basename(event.path) for event in events if event.how == "exec")  # noqa: PTH119
        if name not in started and not is_python(name)
    )
    return tuple(dict.fromkeys((*unseen, *programs, *unannounced)))


class _Attribution:
    """The events of one worker, each with the place of its file and what is wrong with it."""

    def __init__(
        self,
        events: Sequence[CodeEvent],
        places: CodePlaces,
        python_path: Sequence[str],
        *,
        built: bool,
    ) -> None:
        self.places = places
        self.advise = ConfigurationAdvice(Path(places.root), python_path, built)
        self._events = events
        self._place = places.place()
        self.meant = _meant_folders(events, places.installed)
        self.watched = frozenset(event.name for event in events if event.how == "watched")
        self.resembling = _resembling(events, places, self._place)
        self._relevant: list[CodeEvent] = []
        self._own: list[CodeEvent] = []
        self._others: list[tuple[CodeEvent, str]] = []
        self._harmless: list[tuple[CodeEvent, str]] = []
        self._wrong: dict[tuple[str, str], WrongCode] = {}

    def add(self, event: CodeEvent) -> None:
        """Attribute one event to a place."""
        self._relevant.append(event)
        where = "process" if event.how in _OF_PROCESSES else self._place(event.path)
        code = self.wrong(event, where)
        if code:
            self._wrong.setdefault((code.where, code.file), code)
        if where == "own":
            self._own.append(event)
        elif where != "process":
            self._others.append((event, where))
            self._harmless += [] if code else [(event, where)]

    def provenance(self, failed: int) -> Provenance:
        """Return all that was added. ``failed`` is as in ``provenance_of``."""
        checked_out = (event for event, where in self._harmless if where == "checkout")
        outside = _paths(event for event in checked_out if event.how != "kept out")
        looks = (event for event in self._events if event.how in LOOKS)
        missing = [event.name for event in self._events if event.how == "missing"]
        return Provenance(
            wrong=tuple(self._wrong.values()),
            used=_paths(self._own),
            modules=tuple(event for event in self._own if event.how == "import"),
            outside=tuple(path.removeprefix(self.places.checkout) for path in outside),
            unknown=_unknown(self._events, self._relevant, str(failed)),
            elsewhere=tuple(
                event
                for event, where in self._others
                if event.how == "import" and self.is_installed(event, where)
            ),
            loaded=_paths(
                event
                for event, where in self._harmless
                if where != "checkout" and event.how in {"import", "load", "map"}
            ),
            looked_at=tuple(look for look in looks if self._place(f"{look.path}/") == "own"),
            advice=self.advise.missing(missing),
            watched=bool(self.watched),
        )

    def wrong(self, event: CodeEvent, where: str) -> WrongCode | None:
        """Return what is wrong with one event, or None if nothing is."""
        if event.how == ENTRY_POINTS:
            return self._wrong_entry_points(event, where)
        if where == "process":
            return self._wrong_process(event)
        if event.how == "run" and where == "" and self._starts_another(event):
            return WrongCode("copy", event.how, event.path, "", _SCRIPT_ADVICE)
        if event.path in self.resembling and not self.is_meant(event):
            return self._wrong_twin(event, self.resembling[event.path])
        return None if where == "own" else self._wrong_file(event, where)

    def _wrong_process(self, event: CodeEvent) -> WrongCode | None:
        """Return what is wrong with a child that isn't watched, or None if nothing is."""
        if event.how == "unwatched":
            return WrongCode("child", event.how, event.name, "", _CHILD_ADVICE)
        if event.how == "living" and event.name not in self.watched:
            return WrongCode("child", event.how, event.path, "", _CHILD_ADVICE)
        return None

    def _wrong_file(self, event: CodeEvent, where: str) -> WrongCode | None:
        """Return what is wrong with a file that isn't the side's own, or None if nothing is."""
        places = self.places
        if where == "spared" or self.is_meant(event):
            return None
        if where in {"", "twin"} and not self._is_module_of_project(event):
            return None  # also another distribution's part of a namespace package that the tree has
        if where in {"copy", "twin", ""}:  # "": in no known place, but it has the project's name
            return WrongCode("copy", event.how, event.path, event.name, self._copy_advice(event))
        base = places.checkout if where == "checkout" else _root_of(event.path, places)
        relative = event.path.removeprefix(base)
        has_it = (Path(places.root) / relative).exists()
        read = event.how in {"open", "map"} and not is_code(event.path)
        if event.how == "kept out":
            if not self._is_expected(event, has_it=has_it):
                return None
        elif read and self._is_alike(event, where, relative):
            return None
        checkout = where == "checkout"
        return WrongCode(
            "checkout" if checkout else "another tree",
            event.how,
            relative if checkout else event.path,
            event.name,
            self._advice(event, relative, has_it=has_it),
        )

    def _starts_another(self, event: CodeEvent) -> bool:
        """Return whether this is a console script that the side's commit declares differently."""
        counterparts, name = self.places.counterparts, Path(event.path).name
        return (
            counterparts is not None
            and name not in self.places.installed
            and name in counterparts.changed_scripts()
            and counterparts.starts_another(self.places.root, event.path)
        )

    def _wrong_entry_points(self, event: CodeEvent, where: str) -> WrongCode | None:
        """Return what is wrong with installed entry points, or None if nothing is."""
        counterparts, places = self.places.counterparts, self.places
        distribution = distribution_at(str(Path(event.path).parent))
        if (
            where == "own"
            or counterparts is None
            or distribution in map(normalised, places.installed)
            or not counterparts.declares_otherwise(places.root, event.path, event.name)
        ):
            return None
        return WrongCode("copy", event.how, event.path, event.name, _ENTRY_POINTS_ADVICE)

    def _wrong_twin(self, event: CodeEvent, resemblance: Resemblance) -> WrongCode:
        """Return the error for an installed file that was used instead of the repository's file."""
        tree, path = Path(self.places.root), resemblance.path
        module = event.name if event.how == "import" else ""
        advice = [f"The repository has it as {path}."]
        if is_code(path) and (tree / path).exists():
            advice.append(self.advise.path(path, module))
        top = event.name.partition(".")[0] if event.how != "open" else ""
        top = top or _package_in(event.path) or Path(event.path).stem
        advice.append(f'Where the installed file is meant: installed = ["{top}"].')
        where: Where = "copy" if resemblance.certain else "perhaps a copy"
        return WrongCode(where, event.how, event.path, event.name, " ".join(filter(None, advice)))

    def _is_alike(self, event: CodeEvent, where: str, relative: str) -> bool:
        """Return whether it makes no difference that a file was read from another place.

        If the user's checkout has the file and this side's tree lacks it, both sides read the same
        file. A file of another tree must be in this side's tree, too, with the same content.
        """
        in_tree, other = Path(self.places.root) / relative, Path(event.path)
        if where == "checkout":
            return not in_tree.exists()
        return in_tree.is_file() and other.is_file() and filecmp.cmp(in_tree, other, shallow=False)

    def _is_expected(self, event: CodeEvent, *, has_it: bool) -> bool:
        """Return whether the side should have a module that was found only in another tree.

        If this tree has the file, a folder is missing on ``python_path``. Otherwise the side has no
        such module (a base, say, whose head adds it), unless it is compiled and nothing was built.
        """
        has_module = has_it or self._has_module(event.name)
        return has_module or (not self.advise.built and is_library(event.path))

    def is_installed(self, event: CodeEvent, where: str) -> bool:
        """Return whether the file is a module of the project from an installed copy."""
        named = where in {"", "twin"} and event.name.partition(".")[0] in self.places.names
        return named or where == "copy" or self.is_meant(event)

    def _is_module_of_project(self, event: CodeEvent) -> bool:
        """Return whether any side has a module of this name."""
        trees = (self.places.root, *self.places.others)
        return event.name.partition(".")[0] in self.places.names and any(
            self._has_module(event.name, tree) for tree in trees
        )

    def _has_module(self, name: str, root: str = "") -> bool:
        """Return whether the tree has the module of this dotted name, wherever its package lies."""
        tree = Path(root or self.places.root)
        folder = _packages_in(str(tree)).get(name.partition(".")[0])
        if folder is None:
            return False
        path = tree.joinpath(folder, *name.split("."))
        return path.is_dir() or any(path.parent.glob(f"{path.name}.*"))

    def _advice(self, event: CodeEvent, relative: str, *, has_it: bool) -> str:
        if has_it:
            module = event.name if event.how in {"import", "load", "kept out"} else ""
            runs = event.how != "open" or is_code(event.path)
            advice = ""
            if runs:
                advice = self.advise.path(relative, module)
            return advice or (
                f"This side has it as {relative}: use a path that is relative to the module's "
                "`__file__`, or to the current directory, which is the side's tree."
            )
        if is_library(event.path):
            return self.advise.build()
        top = event.name.partition(".")[0]
        return (top and self.advise.package(top)) or (
            "The commit doesn't have it. Add it to the repository, or make it with `build`."
        )

    def _copy_advice(self, event: CodeEvent) -> str:
        top = event.name.partition(".")[0] or _package_in(event.path)
        meant = f'Where the installed copy is meant: installed = ["{top}"].' if top else ""
        advice = self.advise.package(top) if top else ""
        if not advice and is_library(event.path):
            advice = self.advise.build()
        return f"{advice} {meant}".strip()

    def is_meant(self, event: CodeEvent) -> bool:
        """Return whether the configuration says that the installed package is to be measured."""
        installed = self.places.installed
        named = event.how != "open" and event.name.partition(".")[0] in installed
        package = _package_in(event.path) or (
            Path(event.path).stem if event.path in self.resembling else ""
        )
        return named or package in installed or event.path.startswith(self.meant)


_USES = frozenset({"import", "load", "map", "open", "run"})
"""Events that use a file's content and don't only look for the file."""


def _resembling(
    events: Sequence[CodeEvent], places: CodePlaces, place: Callable[[str], str]
) -> Mapping[str, Resemblance]:
    """Return the installed files that are copies of the repository's, but not of this side's."""
    if places.counterparts is None:
        return {}
    changed = frozenset(places.changed)
    files = {}
    for event in events:
        if event.how in _USES:
            where = place(event.path)
            if where == "twin":
                twin = next(path for path in places.twins if event.path.startswith(path))
                files[event.path] = event.path.removeprefix(f"{Path(twin).parent}/")
            elif where == "" and Path(event.path).name in changed:
                files[event.path] = ""
    return places.counterparts.resembling(places.root, files)


def _meant_folders(events: Sequence[CodeEvent], installed: Sequence[str]) -> tuple[str, ...]:
    """Return the folders of the packages that are meant, wherever they were imported from."""
    return tuple(
        f"{Path(event.path).parent}/"
        for event in events
        if event.how == "import"
        and event.name in installed
        and "__init__." in Path(event.path).name
    )


@lru_cache(maxsize=4)
def _packages_in(tree: str) -> dict[str, str]:
    """Return a tree's packages. It is searched once, because the session doesn't change it."""
    return packages_in(tree)


def _root_of(path: str, places: CodePlaces) -> str:
    """Return the other tree that ``path`` lies in.

    The cache has its trees as ``<repository id>/trees/<name>``, and ``builds`` likewise.
    """
    for other in (*places.others, *places.clones):
        if path.startswith(other):
            return other
    below = path.removeprefix(places.cache).split("/")
    return f"{places.cache}{'/'.join(below[:3])}/"


def _package_in(path: str) -> str:
    _, _, inner = path.rpartition("-packages/")
    return inner.partition("/")[0].partition(".")[0]


@dataclass(frozen=True, slots=True)
class WorkerWatch:
    """The file that one worker and its children write events to, and the places of code."""

    events: Path
    places: CodePlaces
    python_path: Sequence[str]
    built: bool

    def begin(self) -> None:
        """Create the file of events. A watch never does, so that a removed file stays removed."""
        self.events.touch()

    def environment(self) -> dict[str, str]:
        """Return the variables that the worker's environment needs."""
        return {VARIABLE: self.places.settings(str(self.events))}

    def provenance(self, *, failed: int = 0) -> Provenance:
        """Return what the worker ran until now, and remove the file.

        ``failed`` is the worker's process id if the worker ended before it recorded all that it
        had loaded.
        """
        events = read_events(self.events)
        self.events.unlink(missing_ok=True)
        return provenance_of(events, self.places, self.python_path, built=self.built, failed=failed)


def described(code: WrongCode, side: str) -> str:
    """Return in one line what is wrong."""
    if code.where == "child":
        return f"`{code.file}` could not be watched: which code it imported isn't known"
    what = f"`{code.name}`" if code.name and code.how != "open" else "a file"
    verb = _VERBS.get(code.how, "is loaded from")
    return f"{what} {verb} {code.file}{_CODE_OF[code.where]}: not {side}'s own code"


def wrong_code(wrong: Sequence[WrongCode], case: str, side: str, log_tail: str) -> Failure:
    """Return the failure of a case whose worker ran code that isn't its side's."""
    lines = [described(code, side) for code in wrong[:_FILES_SHOWN]]
    if len(wrong) > _FILES_SHOWN:
        lines[-1] += f" (and {len(wrong) - _FILES_SHOWN} more)"
    advice = dict.fromkeys(code.advice for code in wrong[:_FILES_SHOWN] if code.advice)
    message = "; ".join(lines) + "".join(f"\n{line}" for line in advice)
    return Failure(case, side, "finish", WRONG_CODE, message, log_tail)


def record_removed(case: str, side: str) -> Failure:
    """Return the failure of a case whose worker measured, but whose record of events is gone."""
    message = (
        "what this worker ran isn't known: what it wrote down was removed\n"
        "Leave the session's files (below TMPDIR's parent) as they are."
    )
    return Failure(case, side, "finish", WRONG_CODE, message)
