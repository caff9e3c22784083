"""The imports of benchmark files, in their order, and what they do to the process.

Discovery records them in a fresh process of each side. An ancestor records what it imports for both
sides, and the parent compares the records (``perfci.measure.starters``).

An ancestor also imports the compiler. Otherwise each worker's first call would, which takes 2 to
3 s of its start, the same on both sides.
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
_PROGRAM_STARTS = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect"}
)
_BYTECODE = (".py", ".pyc")
_ASKS_FOR_OTHERS = re.compile(r"^<frozen importlib|/importlib/|/perfci/worker/")
"""Files whose code imports on behalf of other code."""
_OF_SUITES = "/perfci/suites/"
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
DYNAMO, INDUCTOR = "torch._dynamo", "torch._inductor.compile_fx"
_SET_BY_INDUCTOR = frozenset({"_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR"})
"""Variables that Inductor sets as it compiles, and reads later than at its import."""
_SET_BY_PYTEST = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_VERSION"})


@dataclass(slots=True)
class _ImportTrace:
    """The record of what one import of a side's own code asked for, in order, and did.

    ``read`` has files and modules of the side's tree that a library asked for.
    """

    modules: dict[str, None] = field(default_factory=dict)
    environment: dict[str, None] = field(default_factory=dict)
    programs: dict[str, None] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)


class ImportRecord:
    """Records while ``during`` is open. ``roots`` are the folders of the side's own code.

    Only imports by own code are recorded, as those by libraries follow from them.
    """

    def __init__(self, roots: Sequence[str] = ()) -> None:
        self._roots = tuple(f"{root}/" for root in dict.fromkeys(roots) if root)
        self._traces: dict[str, _ImportTrace] = {}
        self._nested: list[_ImportTrace] = []
        self._own: dict[str, bool] = {}
        self._import = builtins.__import__

    @contextmanager
    def during(self, file: str) -> Iterator[None]:
        """Record as an import of ``file``."""
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
        """Find nothing, but note where a library asks for a module of the side's tree.

        An ancestor would not find it, even if the library only asks whether it is there.
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
        """Return what ``file``, and the own modules that it imports, asked for and did."""
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
        """Stand in for ``__import__``, and note what own code imports."""
        if not self._is_by_own_importer(globals):
            return self._import(name, globals, locals, fromlist or (), level)
        package = (globals or {}).get("__package__") or (globals or {}).get("__name__") or ""
        try:
            imported = resolve_name("." * level + name, package) if level else name
        except ImportError:
            imported = ""
        if not imported:
            return self._import(name, globals, locals, fromlist or (), level)
        self._nested[-1].modules[imported] = None
        self._nested.append(self._trace_of(imported))
        try:
            return self._import(name, globals, locals, fromlist or (), level)
        finally:
            self._nested.pop()
            for child in fromlist or ():
                if f"{imported}.{child}" in sys.modules:
                    self._nested[-1].modules[f"{imported}.{child}"] = None

    def _is_by_own_importer(self, importer: Mapping[str, Any] | None) -> bool:
        """Return whether the side's own code imports."""
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
            if self._causer(sys._getframe(1)) != "tool":  # noqa: SLF001
                trace.environment[_change(arguments)] = None
        elif event in _PROGRAM_STARTS:
            if not self._is_by_own_code():
                trace.programs[f"{event} {arguments[0] if arguments else ''}"[:200]] = None
        elif event == "open" and isinstance(arguments[0], str):
            file, _, flags = arguments
            if (flags or 0) & os.O_WRONLY:
                return
            place = os.path.abspath(file)  # noqa: PTH100 (as written: links are looked at later)
            inside = not file.endswith(_BYTECODE) and self._is_own_file(place)
            if inside and not self._is_by_own_code():
                trace.read[file] = None

    def _is_by_own_code(self) -> bool:
        """Return whether own code, or its suite's tool, and not an import caused the event."""
        return self._causer(sys._getframe(1)) != "import"  # noqa: SLF001 (there is no other way)

    def _causer(self, frame: FrameType | None) -> Literal["import", "own", "tool"]:
        """Return what led to this frame: a library's import, own code, or its suite's tool."""
        while frame is not None:
            if frame.f_code.co_name == "_find_and_load":
                return "import"
            if self._is_own_file(frame.f_code.co_filename):
                return "own"
            if _OF_SUITES in frame.f_code.co_filename:
                return "tool"
            frame = frame.f_back
        return "import"


def _change(arguments: tuple[Any, ...]) -> str:
    words = [
        os.fsdecode(argument) if isinstance(argument, (bytes, str)) else repr(argument)
        for argument in arguments
    ]
    return "=".join(words)


@cache
def _listeners() -> list[Callable[[str, tuple[Any, ...]], None]]:
    """Return the listeners to audit events, behind one hook, as a hook can't be removed."""
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
        except Exception as error:  # noqa: BLE001 (another version's torch: the same on both sides)
            state[name] = type(error).__name__
    return state


def importable(names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the compiler's modules that an ancestor may import.

    Inductor is not one where Triton is installed: its import starts processes then.
    """
    has_triton = importlib.util.find_spec("triton") is not None
    return tuple(name for name in names if name != INDUCTOR or not has_triton)


def forget_places() -> None:
    """Forget the folder of temporary files that the compiler chose: each worker has its own."""
    tempfile.tempdir = None


def use_own_places() -> None:
    """Have Inductor precompile C++ headers into the folder that this process would have chosen."""
    codecache: Any = sys.modules.get("torch._inductor.codecache")
    if hasattr(codecache, "_HEADER_DIR"):
        codecache._HEADER_DIR = f"{codecache.default_cache_dir()}/precompiled_headers"  # noqa: SLF001
        codecache._HEADER_LOCK_DIR = f"{codecache._HEADER_DIR}/locks"  # noqa: SLF001


def require_same_environment(before: Mapping[str, str]) -> None:
    """Raise Unusable where set-up changed the environment: the compiler has read it already."""
    names = {*before, *os.environ} - _SET_BY_INDUCTOR - _SET_BY_PYTEST
    changed = sorted(name for name in names if before.get(name) != os.environ.get(name))
    if changed:
        raise Unusable(UNLIKE_FRESH, f"set-up sets the variable {changed[0]}")


def require_compiled(*, compiled: bool) -> None:
    """Raise Unusable where neither set-up nor the first call compiled: they import no compiler."""
    if not compiled:
        raise Unusable(UNLIKE_FRESH, "neither set-up nor the first call compiled anything")
