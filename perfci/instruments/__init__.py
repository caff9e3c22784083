"""Instruments look inside a case to explain why it moved. Each is one module.

A module has the attributes of ``Instrument``. No instrument runs while a case is measured.
``record`` runs in workers, so a module imports only the standard library, and torch inside of
functions.
"""

from __future__ import annotations

import linecache
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType
from typing import Any, Literal, NamedTuple

from perfci.finding import Difference
from perfci.metrics import Device
from perfci.model.words import filled
from perfci.model.worker import WorkOrder
from perfci.plugins import built_in_modules
from perfci.stats.quantile import upper_median
from perfci.units import format_share

Recorded = Mapping[str, Any]
"""Result of one recording: plain values, which go through JSON."""
Words = Mapping[str, str | Callable[..., str]]
"""By code, the text of a difference: a template as in ``model.words``, or a function."""
PERFCI = __file__.removesuffix("instruments/__init__.py")
"""Beginning of the paths of perfci's own files."""
_LIBRARIES = ("/site-packages/", "/dist-packages/")
_ALL = 0.995
"""Share of a change from which on a difference is called all of it."""
MARK = "perfci:"
"""Beginning of a mark's name in a profile. The mark's number follows."""


class CallMark(NamedTuple):
    """The user's line that calls an operator. Empty for an operator that no user code calls."""

    file: str
    line: int
    function: str
    text: str


@dataclass(slots=True)
class RecordingScene:
    """State of the worker in which an instrument records. Times are in s.

    ``set_up`` is true once set-up has ended, and from then on there is ``call``. The end of the
    first call sets ``once`` (makes a call and waits for its device), ``device`` and ``compiled``.
    The end of the warm-up sets ``call_s``.
    """

    order: WorkOrder
    set_up: bool = False
    call: Callable[[], Any] = lambda: None
    once: Callable[[], None] = lambda: None
    device: Device | None = None
    compiled: bool = False
    call_s: float = 0.0
    _touched: dict[tuple[str, int, str], bool] = field(default_factory=dict)

    @contextmanager
    def marked(self) -> Iterator[list[CallMark]]:
        """Mark each operator in a profile with ``MARK`` and the number of its ``CallMark``.

        The value is the list of marks, by number. It grows while the block runs.
        """
        from torch.profiler import record_function
        from torch.utils._python_dispatch import TorchDispatchMode

        marks: list[CallMark] = []

        caller, line_text = self.caller, self.line_text

        class Marking(TorchDispatchMode):  # type: ignore[misc]
            def __torch_dispatch__(
                self, func: Any, _types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                frame = sys._getframe(1)  # noqa: SLF001 (traceback's way is ten times slower)
                file, line, function = caller(frame)
                marks.append(CallMark(file, line, function, line_text(file, line)))
                with record_function(f"{MARK}{len(marks) - 1}"):
                    return func(*args, **(kwargs or {}))

        with Marking():
            yield marks

    def line_text(self, file: str, line: int) -> str:
        """Return a line of the side's tree, without its indentation."""
        return linecache.getline(f"{self.order.root}/{file}", line).strip() if file else ""

    def place(self, file: str) -> str:
        """Return the file's path within the side's tree, or an empty string if it isn't in it."""
        if file.startswith(PERFCI) or any(folder in file for folder in _LIBRARIES):
            return ""
        root = f"{self.order.root}/"
        return file.removeprefix(root) if file.startswith(root) else ""

    def caller(self, frame: FrameType | None) -> tuple[str, int, str]:
        """Return the file, line and function of user code that ``frame`` was called from.

        That is the innermost function that a change touches, or else the innermost one.
        """
        innermost: tuple[str, int, str] | None = None
        while frame is not None:
            if file := self.place(frame.f_code.co_filename):
                here = file, frame.f_lineno, frame.f_code.co_name
                if self.touches(file, frame.f_code):
                    return here
                innermost = innermost or here
            frame = frame.f_back
        return innermost or ("", 0, "")

    def touches(self, file: str, code: CodeType) -> bool:
        """Say whether a line of the function ``code``, of an own ``file``, was changed."""
        changed = self.order.changed.get(file)
        if not changed:
            return False
        key = (file, code.co_firstlineno, code.co_name)
        if key not in self._touched:
            lines = {line for _, _, line in code.co_lines() if line} | {code.co_firstlineno}
            self._touched[key] = any(min(lines) <= line <= max(lines) for line in changed)
        return self._touched[key]


When = Literal["start", "first_call", "early", "work"]
Differences = Callable[[Sequence[Recorded], Sequence[Recorded]], Iterable[Difference]]


@dataclass(frozen=True, slots=True)
class Instrument:
    """An instrument's module, with its attributes in lower case.

    ``PLACE`` orders instruments, and with them differences of the same weight. ``WHEN`` tells when
    ``record(scene)`` is called:

    - ``work``: ``RUNS`` times per side, in turn, once the work is warm
    - ``early``: once, between the first call and the warm-up
    - ``first_call``: around the first call
    - ``start``: around the import of the benchmark's file, the set-up and the first call

    The first two return the recording. The other two return a context manager, whose value is a
    dict that it has filled when it ends.

    ``differences`` is pure: it takes both sides' recordings and yields what differs. ``WORDS`` has
    the texts of differences.
    """

    name: str
    place: int
    when: When
    record: Callable[[RecordingScene], Any]
    differences: Differences
    words: Words
    runs: int = 1


@cache
def instruments() -> Mapping[str, Instrument]:
    """Return the instruments by name, in their order."""
    found = [
        Instrument(
            name,
            module.PLACE,
            module.WHEN,
            module.record,
            module.differences,
            module.WORDS,
            getattr(module, "RUNS", 1),
        )
        for name, module in built_in_modules(sys.modules[__name__])
    ]
    found.sort(key=lambda instrument: instrument.place)
    return {instrument.name: instrument for instrument in found}


class SourceLine(NamedTuple):
    """A line of a function. Lines of both sides are matched by their text."""

    file: str
    function: str
    number: int
    text: str


class MovedFunction(NamedTuple):
    """A function that takes more or less time or memory, in each of both sides' recordings.

    ``gain`` is its change, ``total`` that of all functions. ``line`` is the line of head's function
    that changed most.
    """

    file: str
    name: str
    line: int
    before: Sequence[float]
    after: Sequence[float]
    gain: float
    total: float


def moved_functions(
    base: Sequence[Mapping[SourceLine, float]], head: Sequence[Mapping[SourceLine, float]]
) -> Iterator[MovedFunction]:
    """Yield functions whose time or memory, by line in each recording, changed.

    It did if the sides' recordings don't overlap, and if it didn't only move to another function.
    """
    before, after = _by_function(base), _by_function(head)
    total = sum(map(upper_median, after.values())) - sum(map(upper_median, before.values()))
    for file, name in before.keys() | after.keys():
        was = before.get((file, name), [0.0] * len(base))
        now = after.get((file, name), [0.0] * len(head))
        gain = upper_median(now) - upper_median(was)
        overlap = min(now) <= max(was) if gain > 0 else min(was) <= max(now)
        if not overlap and gain * total > 0 and 2 * abs(total) >= abs(gain):
            line = _line_that_moved((file, name), base, head, gain)
            yield MovedFunction(file, name, line, was, now, gain, total)


def _by_function(
    side: Sequence[Mapping[SourceLine, float]],
) -> Mapping[tuple[str, str], list[float]]:
    functions: dict[tuple[str, str], list[float]] = {}
    for number, recorded in enumerate(side):
        for line, amount in recorded.items():
            amounts = functions.setdefault((line.file, line.function), [0.0] * len(side))
            amounts[number] += amount
    return functions


def _line_that_moved(
    function: tuple[str, str],
    base: Sequence[Mapping[SourceLine, float]],
    head: Sequence[Mapping[SourceLine, float]],
    gain: float,
) -> int:
    gains: dict[str, float] = defaultdict(float)
    numbers: dict[str, int] = {}
    for side, sign in ((base, -1.0), (head, 1.0)):
        for line, amount in (item for recorded in side for item in recorded.items()):
            if (line.file, line.function) == function:
                gains[line.text] += sign * amount / len(side)
                if side is head:
                    numbers[line.text] = line.number
    return numbers[max(numbers, key=lambda text: gains[text] * gain)] if numbers else 0


def words(item: Difference) -> str:
    """Return ``item`` in English. Raises KeyError, TypeError or ValueError for a damaged one."""
    wording, arguments = instruments()[item.instrument].words[item.code], item.arguments
    text = filled(wording, arguments) if isinstance(wording, str) else wording(**arguments)
    if not item.share:
        return text
    return f"{text}, {'all' if item.share > _ALL else format_share(item.share)} of the change"
