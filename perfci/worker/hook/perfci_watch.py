"""Finds the side's own code first, and writes down whose code a worker and its children loaded.

This module also runs in the Python children of a worker, which may have another Python and no
perfci. So it imports nothing that a starting Python hasn't imported already.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder

TYPE_CHECKING = False  # importing typing, json and re would double a child's start time
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType
    from typing import Any

VARIABLE = "PERFCI_WATCH"
"""The variable with the settings, as ``encoded`` writes them. A child without it isn't watched."""
HOOK = os.path.dirname(os.path.abspath(__file__))
"""The folder that is put on a child's ``PYTHONPATH``."""
_ENTRY, _BETWEEN, _END = "\x1e", "\x1f", "\0"
"""Characters between two settings, between the parts of a setting or event, and after an event."""
_WRITES = os.O_WRONLY | os.O_TRUNC
_STARTS = frozenset(
    {"subprocess.Popen", "os.posix_spawn", "os.exec", "os.fork", "os.forkpty", "os.system"}
)
"""Audit events of starting a process."""
_FIRST_WORDS = 8
_SPAWNING = frozenset({"multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver"})
"""Modules that multiprocessing imports as it starts a process, of which no audit event tells."""


def encoded(settings: Mapping[str, Sequence[str]]) -> str:
    """Return the settings as a variable's text. Paths don't contain the separators."""
    return _ENTRY.join(_BETWEEN.join((name, *values)) for name, values in settings.items())


def decoded(text: str) -> dict[str, tuple[str, ...]]:
    """Return the settings that ``encoded`` gave as text."""
    entries = (entry.split(_BETWEEN) for entry in text.split(_ENTRY))
    return {name: tuple(values) for name, *values in entries}


def decoded_events(content: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield each event of a record: how a file was used, its path, and a module's name."""
    for line in content.decode(errors="surrogateescape").split(_END):
        how, between, rest = line.partition(_BETWEEN)
        if between:
            path, _, name = rest.partition(_BETWEEN)
            yield how, path, name


def begin_in_child() -> None:
    """Watch this process, if a worker started it."""
    if text := os.environ.get(VARIABLE):
        import atexit

        watch = CodeWatch(text)
        sys.meta_path.insert(0, OwnCodeFirst(watch.places))
        atexit.register(watch.look_at_exit)


def begin_in_worker(environment: Mapping[str, str]) -> CodeWatch | None:
    """Watch this worker and its children. Return None if no watch was asked for."""
    text = environment.get(VARIABLE)
    if not text:
        return None
    watch = CodeWatch(text)
    passed = os.environ.get("PYTHONPATH")
    folders = (HOOK, *watch.places.folders, *([passed] if passed else []))
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)
    sys.path.insert(0, HOOK)  # some libraries, like Inductor, pass `sys.path` on to children
    sys.meta_path.insert(0, OwnCodeFirst(watch.places))
    if watch.keeps_openings:
        sys.addaudithook(watch.audited)
    return watch


class Places:
    """The folders of this process's side, and those whose code it must not run.

    ``folders`` are the entries of the side's path, and ``own`` is its tree. Foreign are the user's
    ``checkouts``, except for ``pythons`` in them, and the ``trees`` of other commits, except for
    ``spared`` folders, such as perfci's. ``copies`` are where distributions of the project are
    installed, ``names`` the project's packages, and ``installed`` those that are meant to come from
    a copy. ``since`` is when the session, or the first of its builds, began.
    """

    def __init__(self, settings: Mapping[str, tuple[str, ...]]) -> None:
        self.folders, self.own = settings["folders"], settings["own"]
        self.installed = frozenset(settings["installed"])
        self._names = frozenset((*settings["names"], *self.installed))
        self._copies = settings["copies"]
        self._trees, self._checkouts = settings["trees"], settings["checkouts"]
        prefix = f"{os.path.realpath(sys.prefix)}/"  # a child may run another environment's Python
        own_prefix = () if prefix in self._checkouts else (prefix,)
        self._spared = settings["spared"]
        self._pythons = (*settings["pythons"], *own_prefix)
        self._since = float(settings["since"][0])
        self._is_own: dict[str, bool] = {}
        self.kept_out: dict[tuple[str, str, str], None] = {}

    def owns(self, folder: str) -> bool:
        """Return whether ``folder`` lies in the side's tree. Each is resolved only once."""
        if folder not in self._is_own:
            self._is_own[folder] = f"{os.path.realpath(folder)}/".startswith(self.own)
        return self._is_own[folder]

    def is_foreign(self, path: str) -> bool:
        """Return whether ``path`` lies in the user's checkout or another tree of the project."""
        real = os.path.realpath(path)
        return self._is_foreign(f"{real}/" if os.path.isdir(real) else real)

    def _is_foreign(self, real: str) -> bool:
        if real.startswith((*self.own, *self._spared)):
            return False
        in_checkout = real.startswith(self._checkouts) and not real.startswith(self._pythons)
        return in_checkout or real.startswith(self._trees)

    def extension(self, name: str, folders: Sequence[str]) -> str:
        """Return the checkout's extension module of this name at its place, or ""."""
        for folder in folders:
            below = f"{os.path.realpath(folder)}/{name.rpartition('.')[2]}".removeprefix(
                self.own[0]
            )
            for path in (
                f"{at}{below}{end}" for at in self._checkouts for end in EXTENSION_SUFFIXES
            ):
                if os.path.isfile(path):
                    return path
        return ""

    def matters(self, real: str, name: str = "") -> bool:
        """Return whether the parent must know that a file was used, as a module of this name."""
        if real.startswith((*self.own, *self._copies)) or name.partition(".")[0] in self._names:
            return True
        return self._is_foreign(real) or self._is_fresh(real)

    def _is_fresh(self, real: str) -> bool:
        """Return whether a file was written since the session or its builds began."""
        try:
            return os.stat(real).st_mtime >= self._since
        except OSError:  # removed, or no file at all
            return False


class CodeWatch:
    """Keeps what this process uses, and writes it into the record that the parent reads."""

    def __init__(self, text: str) -> None:
        self._opened: dict[str, None] = {}
        self._programs: set[str] = set()
        self._has_started = False
        self._begin(text)

    def _begin(self, text: str) -> None:
        settings = decoded(text)
        self.places = Places(settings)
        self._record = settings["record"][0]
        self.keeps_openings = settings["openings"] == ("yes",)

    def go_on(self, environment: Mapping[str, str]) -> None:
        """Continue in a fork, which has a record of its own."""
        self._begin(environment[VARIABLE])

    def audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Keep the files that are opened to be read, and the programs of started processes."""
        if not self.keeps_openings:
            return
        if event == "open":
            path, _, flags = arguments
            if not isinstance(path, int) and not (flags or 0) & _WRITES:
                self._opened[os.path.abspath(os.fsdecode(path))] = None
        elif event in _STARTS:
            self._has_started = True
            if event == "subprocess.Popen":
                self._programs.update(_programs(arguments[1]))

    def look(self) -> None:
        """Write down all modules, all mapped files, and what was kept. May raise OSError."""
        self.keeps_openings, opened = False, dict(self._opened)
        resolved = _Resolver()
        used = {("open", resolved(path), "") for path in opened}
        for name, module in list(sys.modules.items()):
            if isinstance(module, type(sys)):
                used.update(("import", resolved(file), name) for file in _files_of(module))
        used.update(("map", resolved(path), "") for path in list(self._programs))
        used.update((how, path, "") for how, path in _mapped())
        used.update(self.places.kept_out)
        events = [event for event in sorted(used) if self.places.matters(*event[1:])]
        if self._has_started or not _SPAWNING.isdisjoint(sys.modules):
            events.append(("started", "", ""))
        events.append(("looked", sys.executable or "", ""))
        text = "".join(f"{_BETWEEN.join(event)}{_END}" for event in events)
        flags = os.O_WRONLY | os.O_APPEND  # created by the parent: a removed record stays removed
        descriptor = os.open(self._record, flags)
        try:
            os.write(descriptor, text.encode(errors="surrogateescape"))
        finally:
            os.close(descriptor)

    def look_at_exit(self) -> None:
        """Look as a child ends. A record that is gone fails the worker itself."""
        try:
            self.look()
        except OSError:
            return


class OwnCodeFirst:
    """A finder that looks in the side's own folders first, whatever else is on ``meta_path``.

    The finders of editable installs may come before Python's and would find the user's checkout. A
    module that only the checkout or another tree has doesn't exist for this side.
    """

    def __init__(self, places: Places) -> None:
        self._places = places

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's spec, or None to let the other finders look for it."""
        if path is None:
            if name in sys.builtin_module_names or name in self._places.installed:
                return None
            entries = self._own_path()
        else:
            entries = [
                entry for entry in path if isinstance(entry, str) and self._places.owns(entry)
            ]
            if not entries:
                return None
        spec = PathFinder.find_spec(name, entries, target)
        if spec is not None and spec.origin is not None:
            return spec
        other = self._spec_of_others(name, path, target)
        if spec is None and other is None and path is not None:
            self._miss(name, self._places.extension(name, entries))
        if spec is None or spec.submodule_search_locations is None:
            return self._without_foreign(name, other)
        # The spec is a folder without `__init__.py`. As in Python, a package of the same name that
        # has one wins, wherever it lies.
        origin = other.origin if other else None
        if origin is not None and not self._places.is_foreign(origin):
            return other
        places = [*spec.submodule_search_locations]
        more = (other and other.submodule_search_locations) or ()
        places += [at for at in more if at not in places and not self._places.is_foreign(at)]
        return _namespace(name, places)

    def _own_path(self) -> list[str]:
        """Return the own entries of ``sys.path``, each own folder in the side's order.

        A child's path begins with the current folder, the tree's root. The root must not hide what
        was built in a folder that comes before the root in the side's order.
        """
        folders = self._places.folders
        searched: list[str] = []
        for entry in sys.path:
            if isinstance(entry, str) and self._places.owns(os.path.abspath(entry)):
                searched += folders if os.path.realpath(entry) in folders else (entry,)
        return list(dict.fromkeys((*searched, *folders)))

    def _spec_of_others(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        """Return the spec that the other finders give, or None."""
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is not self and find is not None:
                spec: ModuleSpec | None = find(name, path, target)
                if spec is not None:
                    return spec
        return None

    def _without_foreign(self, name: str, spec: ModuleSpec | None) -> ModuleSpec | None:
        """Return ``spec`` without the places of other trees. Raise if nothing is left of it."""
        if spec is None:
            return None
        if isinstance(spec.origin, str) and self._places.is_foreign(spec.origin):
            self._refuse(name, spec.origin)
        if spec.origin is None and spec.submodule_search_locations is not None:
            places = list(spec.submodule_search_locations)
            left = [place for place in places if not self._places.is_foreign(place)]
            if places and not left:
                self._refuse(name, places[0])
            return spec if left == places else _namespace(name, left)
        return spec

    def _refuse(self, name: str, path: str) -> None:
        self._miss(name, path)
        raise ModuleNotFoundError(
            f"No module named {name!r} in the tree that is measured "
            f"(perfci keeps {path} out, which isn't its code; if this tree has it elsewhere, add "
            "that folder to `python_path`)",
            name=name,
        )

    def _miss(self, name: str, path: str) -> None:
        """Note a module that lies at ``path``, but not in this tree: code may do without it."""
        if path:
            self._places.kept_out["kept out", os.path.realpath(path), name] = None


def _namespace(name: str, places: list[str]) -> ModuleSpec:
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = places
    return spec


class _Resolver:
    """Resolves the paths of many files, and each folder once: realpath looks at every part."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def __call__(self, path: str) -> str:
        folder, name = os.path.split(path)
        if os.path.islink(path):
            return os.path.realpath(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        return os.path.join(self._folders[folder], name)


def _files_of(module: ModuleType) -> set[str]:
    names = vars(module)
    origin = getattr(names.get("__spec__"), "origin", None)
    files = (names.get("__file__"), origin, getattr(names.get("__loader__"), "archive", None))
    return {path for path in files if isinstance(path, str) and path.startswith("/")}


def _programs(words: Sequence[object]) -> Iterator[str]:
    """Yield the programs among a command's first words: the command's own, after a wrapper's."""
    for word in words[:_FIRST_WORDS]:
        if not isinstance(word, (str, bytes, os.PathLike)):
            continue
        name = os.fsdecode(word)
        for folder in ("",) if "/" in name else os.get_exec_path():
            path = os.path.abspath(os.path.join(folder, name))
            if os.path.isfile(path) and os.access(path, os.X_OK):
                yield path
                break


def _mapped() -> Iterator[tuple[str, str]]:
    """Yield the files that are mapped into this process: ``map`` for code, ``open`` for data."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        lines = [line.rstrip("\n") for line in maps if "/" in line]
    runs = {line[line.index("/") :] for line in lines if line.split(" ", 2)[1][2] == "x"}
    for path in {line[line.index("/") :] for line in lines}:
        yield "map" if path in runs else "open", path.removesuffix(" (deleted)")
