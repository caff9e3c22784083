"""What looks inside of a case to say why it moved: a module each, found by being in this package.

Nothing here runs while anything is measured. A module has what ``Instrument`` names; ``record``
runs in workers, so that a module imports the standard library only, and torch inside of functions.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any, Literal

from perfci.metrics import Device
from perfci.model.why import Difference, Hint, Stack
from perfci.model.worker import WorkOrder
from perfci.plugins import module_names

Recorded = Mapping[str, Any]
"""What one recording gave: plain values, which go through JSON."""
Words = Mapping[str, str | Callable[..., str]]
PERFCI = __file__.removesuffix("instruments/__init__.py")
"""How the paths of perfci's own files begin."""
_LIBRARIES = ("/site-packages/", "/dist-packages/")


@dataclass(slots=True)
class Scene:
    """What a recorder may know of its worker. Times in s.

    ``set_up`` says that set-up has ended. From then on ``call`` is there, and from the end of the
    first call ``once``, which waits for a device too, ``device`` and ``compiled``; ``call_s`` from
    that of the warm-up.
    """

    order: WorkOrder
    set_up: bool = False
    call: Callable[[], Any] = lambda: None
    once: Callable[[], None] = lambda: None
    device: Device | None = None
    compiled: bool = False
    call_s: float = 0.0

    def profiled(self, calls: int) -> Any:
        """Return torch's profiler of so many calls, with shapes, and what ran on a card."""
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CPU]
        if self.device is not None and self.device.name.startswith("cuda"):  # type: ignore[attr-defined]
            activities.append(ProfilerActivity.CUDA)
        with profile(activities=activities, record_shapes=True) as profiler:
            for _ in range(calls):
                self.once()
        return profiler

    def place(self, file: str) -> str:
        """Return the path in the side's tree, or the benchmarks'; nothing for anybody else's."""
        if file.startswith(PERFCI) or any(folder in file for folder in _LIBRARIES):
            return ""
        for root in (self.order.root, self.order.benchmark_root):
            if file.startswith(f"{root}/"):
                return file[len(root) + 1 :]
        return ""

    def caller(self, frame: FrameType | None) -> tuple[str, int, str]:
        """Return the file, line and function of the user's that ``frame`` was called from."""
        while frame is not None:
            if file := self.place(frame.f_code.co_filename):
                return file, frame.f_lineno, frame.f_code.co_name
            frame = frame.f_back
        return "", 0, ""


When = Literal["start", "first_call", "early", "work"]
Differences = Callable[[Sequence[Recorded], Sequence[Recorded]], Iterable[Difference]]
Stacks = Callable[[Sequence[Recorded], Sequence[Recorded]], Iterable[Stack]]
Hints = Callable[[Sequence[Recorded]], Iterable[Hint]]


@dataclass(frozen=True, slots=True)
class Instrument:
    """One module. ``PLACE`` orders them, and so differences that weigh the same.

    ``WHEN`` is ``work``: ``record(scene)`` is called ``RUNS`` times a side, in turn, once the work
    is warm, and returns what it recorded; where it is ``early``, once, between the first call and
    the warm-up. Or it returns a context manager, whose value is a dict that it has filled when it
    ends: around the first call (``first_call``), or around the import of
    the benchmark's file, the set-up and the first call (``start``). ``differences`` is pure: both
    sides' recordings in, differences out, none where nothing differs. ``hints`` is given head's
    alone, ``stacks`` both sides'. ``WORDS`` are templates or functions, by code, of a difference's
    or hint's arguments. One that is ``ON_DEMAND`` records only where it is asked for by name.
    """

    name: str
    place: int
    when: When
    record: Callable[[Scene], Any]
    differences: Differences
    words: Words
    runs: int = 1
    hints: Hints = field(default=lambda _: ())
    stacks: Stacks = field(default=lambda *_: ())
    on_demand: bool = False


@cache
def instruments() -> Mapping[str, Instrument]:
    """Return the instruments by name, in their order."""
    names = module_names(sys.modules[__name__])
    found = (_instrument(name) for name in names)
    return {one.name: one for one in sorted(found, key=lambda one: one.place)}


def _instrument(name: str) -> Instrument:
    module = importlib.import_module(f"{__name__}.{name}")
    optional = {"runs": "RUNS", "hints": "hints", "stacks": "stacks", "on_demand": "ON_DEMAND"}
    return Instrument(
        name=name,
        place=module.PLACE,
        when=module.WHEN,
        record=module.record,
        differences=module.differences,
        words=module.WORDS,
        **{key: vars(module)[one] for key, one in optional.items() if one in vars(module)},
    )


def words(one: Difference | Hint) -> str:
    """Return it in English. KeyError, TypeError or ValueError where it is not perfci's."""
    wording = instruments()[one.instrument].words[one.code]
    arguments = one.arguments
    return wording.format(**arguments) if isinstance(wording, str) else wording(**arguments)
