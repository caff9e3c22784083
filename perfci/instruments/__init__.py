"""What looks inside of a case to say why it moved: a module each, found by being in this package.

Or by an entry point of the group ``perfci.instruments``, in anybody's distribution. Nothing here
runs while anything is measured. A module has what ``Instrument`` names; ``record`` runs in workers,
so that a module imports the standard library only, and torch inside of functions.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import FrameType, ModuleType
from typing import Any, Literal, TypeVar, get_args

from perfci.errors import Unusable
from perfci.metrics import Device
from perfci.model.finding import Difference, Hint, Stack
from perfci.model.worker import WorkOrder
from perfci.plugins import (
    broken_entry_point,
    built_in_modules,
    entry_points_of,
    load_plugin,
    missing_attributes,
)

GROUP = "perfci.instruments"
One = TypeVar("One", Difference, Hint)
Recorded = Mapping[str, Any]
"""What one recording gave: plain values, which go through JSON."""
Words = Mapping[str, str | Callable[..., str]]
PERFCI = __file__.removesuffix("instruments/__init__.py")
"""How the paths of perfci's own files begin."""
_LIBRARIES = ("/site-packages/", "/dist-packages/")
_NEEDED = ("WHEN", "record", "differences", "WORDS")
_LONGEST = 500
LAST = sys.maxsize
"""The place of others' instruments."""


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

    One of another distribution's (``added``) is called by its module's name and has no ``PLACE``,
    ``stacks`` or ``ON_DEMAND``: it comes after perfci's own.
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
    added: bool = False

    def told(self, one: One) -> One:
        """Return it as reports keep it: another's with its words, for readers that don't have it.

        Raises where it is not what a report can hold.
        """
        if not self.added:
            return one
        texts = (one.code, one.file, *((one.metric,) if isinstance(one, Difference) else ()))
        if not all(isinstance(text, str) for text in texts) or not isinstance(one.line, int):
            raise TypeError(f"{self.name} gave {one!r}")
        if isinstance(one, Difference) and not math.isfinite(one.seconds + one.bytes):
            raise ValueError(f"{self.name} gave {one!r}")
        text = " ".join(_worded(self.words, one).split())[:_LONGEST]
        return replace(one, instrument=self.name, arguments={"text": text})


@cache
def instruments() -> Mapping[str, Instrument]:
    """Return perfci's own instruments by name, in their order."""
    modules = built_in_modules(sys.modules[__name__])
    found = (_instrument(name, module, added=False) for name, module in modules)
    return {one.name: one for one in sorted(found, key=lambda one: one.place)}


@cache
def added() -> Mapping[str, Instrument]:
    """Return those of other distributions by name. UsageError for a broken one."""
    found: dict[str, Instrument] = {}
    for point in entry_points_of(GROUP):
        module = load_plugin(point, _wrong)
        name = module.__name__
        if name in instruments() or name in found:
            raise broken_entry_point(point, f"there is an instrument `{name}` already")
        found[name] = _instrument(name, module, added=True)
    return found


def in_worker(name: str) -> Instrument:
    """Return the instrument of that name; another's that isn't here says so when it records."""
    if name in instruments():
        return instruments()[name]
    try:
        module = importlib.import_module(name)
        wrong = _wrong(module)
    except ModuleNotFoundError as error:
        absent = "it is not installed in the Python that measures"
        wrong = absent if error.name == name else str(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (anybody's code: whatever it raises is said)
        wrong = f"{type(error).__name__}: {error}"
    if not wrong:
        return _instrument(name, module, added=True)

    def refuse(_scene: Scene) -> Recorded:
        raise Unusable("broken_instrument", wrong)

    return Instrument(name, LAST, "early", refuse, lambda *_: (), {}, added=True)


def _instrument(name: str, module: Any, *, added: bool) -> Instrument:
    optional = {"runs": "RUNS", "hints": "hints"}
    if not added:
        optional |= {"stacks": "stacks", "on_demand": "ON_DEMAND"}
    return Instrument(
        name=name,
        place=LAST if added else module.PLACE,
        when=module.WHEN,
        record=module.record,
        differences=module.differences,
        words=module.WORDS,
        added=added,
        **{key: vars(module)[one] for key, one in optional.items() if one in vars(module)},
    )


def _wrong(module: Any) -> str:
    return next(_wrongs(module), "")


def _wrongs(module: Any) -> Iterator[str]:
    """Yield what is wrong with another distribution's module."""
    if not isinstance(module, ModuleType):
        yield "it is no module"
    elif missing := missing_attributes(module, *_NEEDED):
        yield missing
    else:
        if module.WHEN not in get_args(When):
            yield f"its `WHEN` is {module.WHEN!r}, none of {', '.join(get_args(When))}"
        if not isinstance(module.WORDS, Mapping):
            yield "its `WORDS` maps no code to words"
        runs = getattr(module, "RUNS", 1)
        if not isinstance(runs, int) or runs < 1:
            yield f"its `RUNS` is {runs!r}"
        for hook in ("record", "differences", "hints"):
            if not callable(getattr(module, hook, len)):
                yield f"its `{hook}` can't be called"


def words(one: Difference | Hint) -> str:
    """Return it in English. KeyError, TypeError or ValueError where it can't be said."""
    if own := instruments().get(one.instrument):
        return _worded(own.words, one)
    if not isinstance(text := one.arguments["text"], str):
        raise TypeError(f"the words of {one.instrument} are {text!r}")
    return text


def _worded(words: Words, one: Difference | Hint) -> str:
    wording, arguments = words[one.code], one.arguments
    return wording.format(**arguments) if isinstance(wording, str) else wording(**arguments)
