"""Records what benchmark files import, in order, and what these imports do to the process.

Discovery records each side's imports in a fresh process. An ancestor records the imports that it
makes for both sides, and the parent compares the records (``perfci.measure.starters``).

An ancestor also imports torch's compiler. Otherwise each worker's first call would import it, which
takes 2 to 3 s of a start on either side.
"""

from __future__ import annotations

import builtins
import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.util import resolve_name
from types import FrameType
from typing import Any, Literal

from perfci.errors import Unusable
from perfci.model.discovery import FileImports
from perfci.model.worker import UNLIKE_FRESH

_ENVIRONMENT_CHANGES = frozenset({"os.putenv", "os.unsetenv"})
"""Audit events of changes to the environment."""
_PROGRAM_STARTS = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect"}
)
"""Audit events of programs that are started, forks, and connections."""
_BYTECODE = (".py", ".pyc")
"""Endings of files that an import opens. Only other files count as read."""
_ASKS_FOR_OTHERS = re.compile(r"^<frozen importlib|/importlib/|/perfci/worker/")
"""Files whose code imports on behalf of other code."""
_OF_SUITES = "/perfci/suites/"
"""Part of the path of the code that runs a suite's tool."""
_STATE: Mapping[str, Callable[[Any], object]] = {
    "default dtype": lambda torch: torch.get_default_dtype(),
    "default device": lambda torch: torch.get_default_device(),
    "threads": lambda torch: torch.get_num_threads(),
    "interop threads": lambda torch: torch.get_num_interop_threads(),
    "deterministic algorithms": lambda torch: torch.are_deterministic_algorithms_enabled(),
    "matmul precision": lambda torch: torch.get_float32_matmul_precision(),
    "grad mode": lambda torch: torch.is_grad_enabled(),
    "inference mode": lambda torch: torch.is_inference_mode_enabled(),
    "anomaly mode": lambda torch: torch.is_anomaly_enabled(),
    "mkldnn": lambda torch: torch.backends.mkldnn.enabled,
    "cudnn benchmark": lambda torch: torch.backends.cudnn.benchmark,
    "cudnn TF32": lambda torch: torch.backends.cudnn.allow_tf32,
    "flash attention": lambda torch: torch.backends.cuda.flash_sdp_enabled(),
    "efficient attention": lambda torch: torch.backends.cuda.mem_efficient_sdp_enabled(),
    "math attention": lambda torch: torch.backends.cuda.math_sdp_enabled(),
}
"""torch's settings by name, each with a function that reads it."""
DYNAMO, INDUCTOR = "torch._dynamo", "torch._inductor.compile_fx"
"""The compiler's modules that an ancestor imports."""
_COMPILER = ("torch._dynamo.", "torch._inductor.")
"""Begin the names of the compiler's modules."""
_SET_BY_INDUCTOR = frozenset({"_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR"})
"""Variables that Inductor itself sets when it compiles. It doesn't read them at its import."""
_SET_BY_PYTEST = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_VERSION"})


@dataclass(slots=True)
class _ImportTrace:
    """The record of one import of a side's own code: what it imported, in order, and what it did.

    ``environment`` has changed variables, ``programs`` what libraries started, and ``read`` the
    files and modules of the side's tree that libraries asked for.
    """

    modules: dict[str, None] = field(default_factory=dict)
    environment: dict[str, None] = field(default_factory=dict)
    programs: dict[str, None] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)


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

    @contextmanager
    def during(self, file: str) -> Iterator[None]:
        """Record what happens while the block is open as done by the import of ``file``."""
        self._nested.append(self._trace_of(file))
        self._import = builtins.__import__
        builtins.__import__ = self._import_noted
        sys.meta_path.insert(0, self)
        _listeners().append(self._note_event)
        try:
            yield
        finally:
            _listeners().remove(self._note_event)
            sys.meta_path.remove(self)
            builtins.__import__ = self._import
            self._nested.clear()

    def find_spec(self, name: str, path: object = None, _: object = None) -> None:
        """Return None, but note if a library asks for a module of the side's tree.

        An ancestor would not find such a module, even if the library only asks whether it exists.
        """
        if path is not None or not self._nested:
            return
        for entry in sys.path:
            inside = isinstance(entry, str) and self._is_own_file(f"{entry}/_")
            if inside and any(os.path.exists(f"{entry}/{name}{end}") for end in ("", ".py")):  # noqa: PTH110 (pathlib takes longer)
                frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
                while frame and _ASKS_FOR_OTHERS.search(frame.f_code.co_filename):
                    frame = frame.f_back
                if frame and self._causer(frame) == "import":
                    self._nested[-1].read[name] = None

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
                total.programs |= trace.programs
                total.read |= trace.read
                waiting += reversed(trace.modules)
        return FileImports(
            tuple(total.modules), tuple(total.environment), tuple(total.programs), tuple(total.read)
        )

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
        if not self._is_by_own_importer(globals):
            return self._import(name, globals, locals, fromlist or (), level)
        package = (globals or {}).get("__package__") or (globals or {}).get("__name__") or ""
        try:
            imported = resolve_name("." * level + name, package) if level else name
        except ImportError:
            imported = ""
        if not imported:
            return self._import(name, globals, locals, fromlist or (), level)
        importer = self._importing(globals)
        importer.modules |= dict.fromkeys(_with_parents(imported))
        children = [f"{imported}.{child}" for child in fromlist or ()]
        for child in children:  # before it runs, so that its imports count as its own
            self._trace_of(child)
        self._nested.append(self._trace_of(imported))
        try:
            return self._import(name, globals, locals, fromlist or (), level)
        finally:
            self._nested.pop()
            importer.modules |= {child: None for child in children if child in sys.modules}

    def _importing(self, importer: Mapping[str, Any] | None) -> _ImportTrace:
        """Return the trace of the importing module, or of the import under way if it has none."""
        return self._traces.get((importer or {}).get("__name__", ""), self._nested[-1])

    def _is_by_own_importer(self, importer: Mapping[str, Any] | None) -> bool:
        """Return whether the importing module (its globals) is the side's own code."""
        if not importer or not self._nested:
            return False
        file = importer.get("__file__")
        return isinstance(file, str) and self._is_own_file(file)

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
        if not self._nested:
            return
        trace = self._nested[-1]
        if event in _ENVIRONMENT_CHANGES:
            name, is_set, value = (change := _change(arguments)).partition("=")
            values = {value if is_set else None, os.environ.get(name)}
            if values != {self._environment.get(name)} and self._causer(sys._getframe(1)) != "tool":  # noqa: SLF001
                trace.environment[change] = None
        elif event in _PROGRAM_STARTS:
            if not self._is_by_own_code():
                trace.programs[f"{event} {arguments[0] if arguments else ''}"[:200]] = None
        elif event == "open" and isinstance(arguments[0], str):
            file, _, flags = arguments
            if (flags or 0) & os.O_WRONLY:
                return
            place = os.path.abspath(file)  # noqa: PTH100 (links are resolved later)
            inside = not file.endswith(_BYTECODE) and self._is_own_file(place)
            if inside and not self._is_by_own_code():
                trace.read[file] = None

    def _is_by_own_code(self) -> bool:
        """Return whether own code or its suite's tool caused the event, and no library's import."""
        return self._causer(sys._getframe(1)) != "import"  # noqa: SLF001 (there is no other way)

    def _causer(self, frame: FrameType | None) -> Literal["import", "own", "tool"]:
        """Return what called this frame: a library's import, own code, or its suite's tool.

        The innermost frame that is any of the three decides.
        """
        while frame is not None:
            if frame.f_code.co_name == "_find_and_load":
                return "import"
            if self._is_own_file(frame.f_code.co_filename):
                return "own"
            if _OF_SUITES in frame.f_code.co_filename:
                return "tool"
            frame = frame.f_back
        return "import"


def _with_parents(name: str) -> tuple[str, ...]:
    """Return a module's packages, outermost first, and the module."""
    parts = name.split(".")
    return tuple(".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _change(arguments: tuple[Any, ...]) -> str:
    words = [
        os.fsdecode(argument) if isinstance(argument, (bytes, str)) else repr(argument)
        for argument in arguments
    ]
    return "=".join(words)


@cache
def _listeners() -> list[Callable[[str, tuple[Any, ...]], None]]:
    """Return the list of listeners to audit events. A single hook calls them all.

    An audit hook can't be removed, but a listener can.
    """
    listeners: list[Callable[[str, tuple[Any, ...]], None]] = []

    def hand_on(event: str, arguments: tuple[Any, ...]) -> None:
        for listener in listeners:
            listener(event, arguments)

    sys.addaudithook(hand_on)
    return listeners


def modules() -> dict[str, str]:
    """Return the loaded modules with their files, in the order of loading."""
    result = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        result[name] = file if isinstance(file, str) else ""
    return result


def torch_state() -> dict[str, str]:
    """Return the settings of torch that code can change while it is imported, as text."""
    torch = sys.modules.get("torch")
    state = {"torch": "imported" if torch else "not imported"}
    if torch is None:
        return state
    for name, read in _STATE.items():
        try:
            state[name] = str(read(torch))
        except Exception as error:  # noqa: BLE001 (this torch lacks the setting, on both sides)
            state[name] = type(error).__name__
    return state


def importable(names: Iterable[str]) -> tuple[str, ...]:
    """Return the modules of ``names``, the compiler's, that an ancestor may import.

    With Triton installed, Inductor is left out, because its import then starts processes.
    """
    has_triton = importlib.util.find_spec("triton") is not None
    return tuple(name for name in names if name != INDUCTOR or not has_triton)


@contextmanager
def choosing_places() -> Iterator[set[str]]:
    """Collect the modules that ask for the folder of temporary files while the block is open.

    Not torch's compiler: ``forget_places`` and ``use_own_places`` undo what it chose.
    """
    choosers: set[str] = set()
    answers: set[str | None] = {None}
    choose: Callable[[], str] = tempfile._gettempdir  # type: ignore[attr-defined]  # noqa: SLF001

    def chosen() -> str:
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
        while frame and frame.f_globals.get("__name__") == tempfile.__name__:
            frame = frame.f_back
        name = str(frame and frame.f_globals.get("__name__"))
        choosers.update([] if name.startswith(_COMPILER) else [name])
        answers.add(answer := choose())
        return answer

    tempfile._gettempdir = chosen  # type: ignore[attr-defined]  # noqa: SLF001
    try:
        yield choosers
    finally:
        tempfile._gettempdir = choose  # type: ignore[attr-defined]  # noqa: SLF001
    if tempfile.tempdir not in answers:
        choosers.add("a library")


def forget_places() -> None:
    """Forget the temporary folder that the compiler's import chose. Each worker has its own."""
    tempfile.tempdir = None


def use_own_places() -> None:
    """Have Inductor precompile C++ headers into this process's own cache folder.

    Its modules were imported by the ancestor, so they hold the ancestor's folder.
    """
    codecache: Any = sys.modules.get("torch._inductor.codecache")
    if hasattr(codecache, "_HEADER_DIR"):
        codecache._HEADER_DIR = f"{codecache.default_cache_dir()}/precompiled_headers"  # noqa: SLF001
        codecache._HEADER_LOCK_DIR = f"{codecache._HEADER_DIR}/locks"  # noqa: SLF001


def require_same_environment(before: Mapping[str, str]) -> None:
    """Raise Unusable if set-up changed the environment. The compiler has already read it."""
    names = {*before, *os.environ} - _SET_BY_INDUCTOR - _SET_BY_PYTEST
    changed = sorted(name for name in names if before.get(name) != os.environ.get(name))
    if changed:
        raise Unusable(UNLIKE_FRESH, f"set-up sets the variable {changed[0]}")


def require_compiled(*, compiled: bool) -> None:
    """Raise Unusable if neither set-up nor the first call compiled anything.

    A fresh process would then not have imported the compiler, which this process has.
    """
    if not compiled:
        raise Unusable(UNLIKE_FRESH, "neither set-up nor the first call compiled anything")
