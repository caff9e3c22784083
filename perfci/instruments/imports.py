"""Modules that a start or first call newly imports, and own modules that take longer.

A library's module that both sides load from the same file is never a difference. Its import is the
same work, and the time only depends on the machine and on which import comes first.
"""

from __future__ import annotations

import importlib
import os
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from time import thread_time
from types import FrameType
from typing import Any

from perfci.clock import perf_counter
from perfci.finding import Difference, Plain
from perfci.instruments import Recorded, RecordingScene
from perfci.units import counted, format_difference

PLACE = 60
WHEN = "start"

_IMPORTERS = ("<frozen importlib", f"{os.sep}importlib{os.sep}", __file__)
_LONGEST_NAME = 200
_LEAST_S = 0.001
"""Least time of new or gone imports that is reported."""
_SWAPPED_SHARE = 0.1
"""An import replaces another if their times differ by no more than this share of the longer one."""
_LEAST_CPU_S, _LEAST_SHARE = 0.002, 0.5
"""An own module is slower if it takes this much longer: in s of processor time, and as a share of
the other side's. By the clock, another program may be the cause.
"""

# In the worker.


@dataclass(slots=True)
class _Module:
    """The import of a module ``by`` another, at ``file`` and ``line``. Times are in s.

    ``self_s`` and ``cpu_s`` are its own times, without the imports that the module itself makes.
    ``origin`` is the module's file. ``own`` means the side's own code, ``late`` that the first call
    imported the module. ``source`` is a checksum of own code.
    """

    name: str
    by: str
    file: str
    line: int
    self_s: float = 0.0
    cpu_s: float = 0.0
    origin: str = ""
    own: bool = False
    late: bool = False
    source: str = ""


class _ImportTimes:
    """Times the import of each module while the block is open. The value is filled at its end."""

    def __init__(self, scene: RecordingScene) -> None:
        self._scene = scene
        self._nested: list[_Module] = []
        self._kept: dict[str, _Module] = {}
        self._recorded: dict[str, Any] = {}
        self._bootstrap: Any = importlib._bootstrap  # noqa: SLF001
        self._real = self._bootstrap._find_and_load  # noqa: SLF001

    def __enter__(self) -> dict[str, Any]:
        self._bootstrap._find_and_load = self._load_timed  # noqa: SLF001
        return self._recorded

    def __exit__(self, *_: object) -> None:
        self._bootstrap._find_and_load = self._real  # noqa: SLF001
        self._recorded["modules"] = [astuple(self._placed(timed)) for timed in self._kept.values()]

    def _load_timed(self, name: str, import_: Any) -> Any:
        if name in sys.modules:  # nothing is left to import
            return self._real(name, import_)
        timed = _Module(name, *self._importer(), late=self._scene.set_up)
        self._nested.append(timed)
        # after set-up, keep only imports that own code causes: a library that delays its imports,
        # or an instrument, makes thousands
        kept = not timed.late or bool(self._scene.place(self._nested[0].file))
        started, started_cpu = perf_counter(), thread_time()
        try:
            return self._real(name, import_)
        finally:
            took, took_cpu = perf_counter() - started, thread_time() - started_cpu
            self._nested.pop()
            timed.self_s += took
            timed.cpu_s += took_cpu
            if self._nested:
                self._nested[-1].self_s -= took
                self._nested[-1].cpu_s -= took_cpu
            if kept and name in sys.modules:
                self._kept.setdefault(name, timed)

    def _placed(self, module: _Module) -> _Module:
        """Return a module with its files as paths in the side's tree, and its source's checksum."""
        origin = getattr(sys.modules.get(module.name), "__file__", None)
        origin = origin if isinstance(origin, str) else ""
        own, importer_file = self._scene.place(origin), self._scene.place(module.file)
        return replace(
            module,
            name=module.name[:_LONGEST_NAME],
            by=module.by[:_LONGEST_NAME],
            file=importer_file[:_LONGEST_NAME],
            line=module.line if importer_file else 0,
            origin=own or origin[:_LONGEST_NAME],
            own=bool(own),
            source=_source_checksum(origin) if own else "",
        )

    def _importer(self) -> tuple[str, str, int]:
        """Return the module, file and line of the code that makes the present import.

        A library that was imported earlier may make the import only now. Then the importer is the
        own code that called the library, or the module whose import is under way, because the user
        can change these. After set-up, though, it is the library itself: by then own code has
        called nearly everything.
        """
        frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 (there is no other way)
        while frame and _is_importer(frame):
            frame = frame.f_back
        if frame is None:
            return "", "", 0
        importer = _module_of(frame)
        under_way = {nested.name for nested in self._nested}
        if (
            self._scene.set_up
            or importer in under_way
            or self._scene.place(frame.f_code.co_filename)
        ):
            return importer, frame.f_code.co_filename, frame.f_lineno
        caller: FrameType | None = frame
        while caller and not self._scene.place(caller.f_code.co_filename):
            if _is_importer(caller) and self._nested:
                return self._nested[-1].name, "", 0
            caller = caller.f_back
        caller = caller or frame
        return _module_of(caller), caller.f_code.co_filename, caller.f_lineno


def record(scene: RecordingScene) -> AbstractContextManager[dict[str, Any]]:
    """Time the imports of the benchmark's file, of its set-up and of the first call."""
    return _ImportTimes(scene)


def _is_importer(frame: FrameType) -> bool:
    return any(part in frame.f_code.co_filename for part in _IMPORTERS)


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _source_checksum(path: str) -> str:
    """Return a checksum of a file, or an empty string if it can't be read."""
    try:
        return f"{zlib.crc32(Path(path).read_bytes()):08x}"
    except OSError:
        return ""


# In the parent. Pure.


def differences(base: Sequence[Recorded], head: Sequence[Recorded]) -> Iterator[Difference]:
    """Yield each import that only one side makes, and each own module that takes longer."""
    before, after = (
        {row[0]: _Module(*row) for row in recorded["modules"]} for recorded in (base[0], head[0])
    )
    new, gone = _one_sided_imports(after, before), _one_sided_imports(before, after)
    for key in tuple(new):  # a replacement that takes the same time is not a difference
        replaced = next((old for old in gone if _take_as_long(new[key], gone[old])), None)
        if replaced:
            del new[key], gone[replaced]
    for code, imports, sign in (("import-new", new, 1.0), ("import-gone", gone, -1.0)):
        for (file, line, module), times in imports.items():
            if sum(times) >= _LEAST_S:
                gain = sign * sum(times)
                others = len(times) - 1
                yield _difference(code, gain, file, line, module=module, others=others, gain=gain)
    for name in before.keys() & after.keys():
        was, now = before[name], after[name]
        if not now.own and now.origin == was.origin:
            continue
        if was.source and was.source == now.source:
            continue  # an unchanged module's time differs this much by chance between processes
        quicker, slower = sorted((was.cpu_s, now.cpu_s))
        if slower - quicker >= max(_LEAST_CPU_S, _LEAST_SHARE * quicker):
            yield _difference(
                "import-time", now.self_s - was.self_s, now.origin if now.own else "", 0,
                module=name, before=was.self_s, after=now.self_s,
            )  # fmt: skip


def _take_as_long(times: Sequence[float], others: Sequence[float]) -> bool:
    shorter, longer = sorted((sum(times), sum(others)))
    return longer - shorter <= _SWAPPED_SHARE * longer


def _difference(code: str, seconds: float, file: str, line: int, **arguments: Plain) -> Difference:
    return Difference(
        "imports", code, arguments, seconds, metric="import_time", file=file, line=line
    )


def _one_sided_imports(
    these: Mapping[str, _Module], others: Mapping[str, _Module]
) -> dict[tuple[str, int, str], list[float]]:
    """Return the times in s of imports that only ``these`` have.

    They are grouped by the own line that causes them, and by one name for all modules of a group.
    """
    imports: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for module in these.values():
        if module.name in others:
            continue
        top = _pulled_in(module, these)
        if module.late and not top.file:  # an import that a library delays until its first use
            continue
        name = top.name if top.own else _shortest_new(module if top.name in others else top, others)
        imports[top.file, top.line, name].append(module.self_s)
    return imports


def _shortest_new(module: _Module, others: Mapping[str, _Module]) -> str:
    """Return the outermost package around a module that the other side doesn't import."""
    parts = module.name.split(".")
    names = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
    return next((name for name in names if name not in others), module.name)


def _pulled_in(module: _Module, modules: Mapping[str, _Module]) -> _Module:
    """Return the module that own code imports and that led to the import of ``module``.

    The importers of ``module`` are followed up to own code, or up to an import before set-up.
    """
    climbed = {module.name}
    while not module.own:
        importer = modules.get(module.by)
        if (
            importer is None
            or importer.own
            or importer.name in climbed
            or importer.late < module.late
        ):
            break
        climbed.add(importer.name)
        module = importer
    return module


def _one_sided(verb: str) -> Callable[..., str]:
    def say(*, module: str, others: int, gain: float) -> str:
        more = f" with {counted(others, 'other module')}" if others else ""
        return f"`{module}` is {verb}{more}, {format_difference(gain, 's')}"

    return say


WORDS = {
    "import-new": _one_sided("newly imported"),
    "import-gone": _one_sided("no longer imported"),
    "import-time": "`{module}` takes {before:s} → {after:s} to import",
}
