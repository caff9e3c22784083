"""Records what benchmark files import, in order, and what these imports do to the process.

Discovery records each side's imports in a fresh process. A fork server records the imports that it
makes for both sides, and the parent compares the records (``perfci.measure.fork_servers``).

A fork server also imports torch's compiler. Otherwise each worker's first call would import it,
which takes 2 to 3 s of a start on either side.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.util import resolve_name
from itertools import accumulate
from typing import Any

from perfci.clock import monotonic_ns
from perfci.errors import Unusable
from perfci.model.worker import UNLIKE_FRESH, FileImports, WorkOrder
from perfci.worker.protocol import where_it_failed

_ENVIRONMENT_CHANGES = frozenset({"os.putenv", "os.unsetenv"})
"""Audit events of changes to the environment."""
DYNAMO, INDUCTOR = "torch._dynamo", "torch._inductor.compile_fx"
"""The compiler's modules that a fork server imports."""
_SET_BY_INDUCTOR = frozenset({"_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR"})
"""Variables that Inductor itself sets when it compiles. It doesn't read them at its import."""
_SET_BY_SUITES = ("PYTEST_", "ASV_")
"""Beginnings of the names of variables that suites of other tools are given."""


@dataclass(slots=True)
class _ImportTrace:
    """The record of one import of a side's own code: what it imported, in order, and what it did.

    ``environment`` has changed variables.
    """

    modules: dict[str, None] = field(default_factory=dict)
    environment: dict[str, None] = field(default_factory=dict)


class ImportRecord:
    """Records imports while ``during`` is open. ``roots`` are the folders of the side's own code.

    Only imports made by own code are recorded. The imports made by libraries follow from these.
    """

    def __init__(self, roots: Sequence[str] = ()) -> None:
        self._roots = tuple(f"{root}/" for root in dict.fromkeys(roots) if root)
        self._traces: dict[str, _ImportTrace] = {}
        self._nested: list[_ImportTrace] = []
        self._own: dict[str, bool] = {}
        self._environment = dict(os.environ)
        self._import = builtins.__import__
        sys.addaudithook(self._note_event)  # for ever: a hook can't be removed

    @contextmanager
    def during(self, file: str) -> Iterator[None]:
        """Record what happens while the block is open as done by the import of ``file``."""
        self._nested.append(self._trace_of(file))
        self._import = builtins.__import__
        builtins.__import__ = self._import_noted
        try:
            yield
        finally:
            builtins.__import__ = self._import
            self._nested.clear()

    def of(self, file: str) -> FileImports:
        """Return what ``file`` and the own modules that it imports asked for and did."""
        total = _ImportTrace()
        seen: set[str] = set()
        waiting = [file]
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in sys.modules and not (name == file or self._is_own_module(name)):
                total.modules[name] = None
            if trace := self._traces.get(name):
                total.environment |= trace.environment
                waiting += reversed(trace.modules)
        return FileImports(tuple(total.modules), tuple(total.environment))

    def _trace_of(self, name: str) -> _ImportTrace:
        return self._traces.setdefault(name, _ImportTrace())

    def _import_noted(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 (the name that callers use)
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """Import like ``__import__``, whose place this method takes. Note what own code imports."""
        importer, arguments = globals or {}, (name, globals, locals, fromlist or (), level)
        file = importer.get("__file__")
        if not (self._nested and isinstance(file, str) and self._is_own_file(file)):
            return self._import(*arguments)
        package = importer.get("__package__") or importer.get("__name__") or ""
        try:
            imported = resolve_name("." * level + name, package) if level else name
        except ImportError:
            return self._import(*arguments)
        # the trace of the importing module, or of the import under way if it has none
        trace = self._traces.get(importer.get("__name__", ""), self._nested[-1])
        trace.modules |= dict.fromkeys(accumulate(imported.split("."), "{}.{}".format))
        children = [f"{imported}.{child}" for child in fromlist or ()]
        for child in children:  # before it runs, so that its imports count as its own
            self._trace_of(child)
        self._nested.append(self._trace_of(imported))
        try:
            return self._import(*arguments)
        finally:
            self._nested.pop()
            trace.modules |= {child: None for child in children if child in sys.modules}

    def _is_own_file(self, file: str) -> bool:
        if file not in self._own:
            real = os.path.realpath(file) if file.startswith("/") else ""  # "<frozen …>", say
            self._own[file] = real.startswith(self._roots) or file.startswith(self._roots)
        return self._own[file]

    def _is_own_module(self, name: str) -> bool:
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            return self._is_own_file(file)
        places = getattr(module, "__path__", ())  # a package without a file of its own
        return any(self._is_own_file(f"{place}/") for place in places)

    def _note_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._nested or event not in _ENVIRONMENT_CHANGES:
            return
        change = os.fsdecode(b"=".join(arguments))
        name, is_set, value = change.partition("=")
        values = {value if is_set else None, os.environ.get(name)}
        if values != {self._environment.get(name)} and not name.startswith(_SET_BY_SUITES):
            self._nested[-1].environment[change] = None


def modules() -> dict[str, str]:
    """Return the loaded modules with their files, in the order of loading."""
    result = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        result[name] = file if isinstance(file, str) else ""
    return result


def import_libraries(order: WorkOrder) -> tuple[dict[str, object], int]:
    """Import the modules of the order's ``preload``, then those of its ``compiler``.

    Return a report of the imports for the parent, and the time of the compiler's import in ns.
    """
    before = modules()
    record, requests = ImportRecord(), _RequestedPackages()
    sys.meta_path.insert(0, requests)
    with record.during(""):
        failed = _import_each(order.preload or ())
        # what torch's compiler chose is undone: here, and by ``use_own_places``
        has_compiler = DYNAMO in sys.modules or INDUCTOR in sys.modules
        if not failed and tempfile.tempdir is not None and not has_compiler:
            failed = "a library chose its folder of temporary files as it was imported"
        loaded = {name: file for name, file in modules().items() if name not in before}
        began_ns = monotonic_ns()
        if not failed and "torch" in sys.modules:
            failed = _import_each(_importable(order.compiler))
        tempfile.tempdir = None  # each worker has its own
        compiler_ns = monotonic_ns() - began_ns if order.compiler else 0
    sys.meta_path.remove(requests)
    known = {name.partition(".")[0] for name in (*before, *loaded)}
    later = {name.partition(".")[0] for name in modules()} - known
    answer: dict[str, object] = {
        "failed": failed,
        "imports": asdict(record.of("")),
        "modules": loaded,
        "compiler": tuple(sorted(later)),
        "missing": tuple(sorted(requests.packages - known - later)),
    }
    return answer, compiler_ns


class _RequestedPackages:
    """A finder that finds nothing, and notes the packages that imports ask for."""

    def __init__(self) -> None:
        self.packages: set[str] = set()

    def find_spec(self, name: str, path: object = None, _: object = None) -> None:
        """Note a package. A library may use what a side's tree has by that name."""
        if path is None:
            self.packages.add(name)


def _import_each(names: Sequence[str]) -> str:
    """Import modules. Return why one failed, or an empty string."""
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 (a library's error: reported to the parent)
            return f"{name}: {where_it_failed(error, ())}"
    return ""


def _importable(names: Iterable[str]) -> tuple[str, ...]:
    """Return the modules of ``names``, the compiler's, that a fork server may import.

    With Triton installed, Inductor is left out, because its import then starts processes.
    """
    has_triton = importlib.util.find_spec("triton") is not None
    return tuple(name for name in names if name != INDUCTOR or not has_triton)


def use_own_places() -> None:
    """Have Inductor precompile C++ headers into this process's own cache folder.

    Its modules were imported by the fork server, so they hold the fork server's folder.
    """
    codecache: Any = sys.modules.get("torch._inductor.codecache")
    if hasattr(codecache, "_HEADER_DIR"):
        codecache._HEADER_DIR = f"{codecache.default_cache_dir()}/precompiled_headers"  # noqa: SLF001
        codecache._HEADER_LOCK_DIR = f"{codecache._HEADER_DIR}/locks"  # noqa: SLF001


def require_same_environment(before: Mapping[str, str]) -> None:
    """Raise Unusable if set-up changed the environment. The compiler has already read it."""
    names = {*before, *os.environ} - _SET_BY_INDUCTOR
    names = {name for name in names if not name.startswith(_SET_BY_SUITES)}
    changed = sorted(name for name in names if before.get(name) != os.environ.get(name))
    if changed:
        raise Unusable(UNLIKE_FRESH, f"set-up sets the variable {changed[0]}")
