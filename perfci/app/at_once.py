"""How many sessions measure at once on this machine: what calibration found, and what it allows."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.app.project import cache_folder
from perfci.engine.plan import Slot, mark_of, slots
from perfci.files import read_regular, write_file
from perfci.machine.parts import physical_cores, visible_gpus
from perfci.machine.quiet import available_cores, plan_cores
from perfci.model.codec import CodecError, decode, encode
from perfci.units import counted

if TYPE_CHECKING:
    from perfci.app.project import Project

MOST_RATIO = 1.25
"""A spread that is this much larger asks for 56 % more rounds to see the same change."""


@dataclass(frozen=True, slots=True)
class AtOnce:
    """The spread of pairs of ``count`` sessions at once, ``ratio`` times that of one alone.

    ``lo`` and ``hi`` are the 95 % interval; ``pairs``, of ``cases``, were measured at once.
    """

    count: int
    ratio: float
    lo: float
    hi: float
    pairs: int
    cases: int
    created_at: str

    @property
    def allowed(self) -> bool:
        """Whether so many may measure at once: not knowing is no."""
        return self.hi <= MOST_RATIO

    def __str__(self) -> str:
        return (
            f"{self.count} sessions at once spread {self.ratio:.2f} times as much as one alone "
            f"({self.lo:.2f} to {self.hi:.2f}; of {counted(self.cases, 'case')}, "
            f"measured on {self.created_at[:10]})"
        )


@dataclass(frozen=True, slots=True)
class Machine:
    """What can be parted: physical ``cores`` and GPUs. ``workers`` is how many cores these take."""

    cores: tuple[tuple[int, ...], ...]
    devices: tuple[str, ...]
    workers: int

    def parts(self, at_once: int) -> tuple[Slot, ...]:
        """Return ``at_once`` equal parts, or as many as have cores enough where that is 0."""
        return slots(self.cores, self.devices, workers=self.workers, at_once=at_once)


def machine_of(project: Project) -> Machine:
    """Return this machine as the project's sessions use it."""
    settings, pin = project.config.settings, project.config.quiet.pin
    available = available_cores()
    cores = plan_cores(available, cores=settings.cores, threads=settings.threads, pin=pin)
    return Machine(
        physical_cores(available),
        visible_gpus(os.environ),
        len(cores.workers) or cores.threads,
    )


def chosen_parts(project: Project, asked: int, shards: int) -> tuple[tuple[Slot, ...], str]:
    """Return the parts of this machine for ``shards``, and why so many at once, in words."""
    machine = machine_of(project)
    count, why = decide(
        asked,
        most=min(len(machine.cores), shards),
        fit=min(len(machine.parts(0)), shards),
        found=lambda count: kept_answer(project.root, machine, count),
    )
    return machine.parts(count), why


def decide(
    asked: int, *, most: int, fit: int, found: Callable[[int], AtOnce | None]
) -> tuple[int, str]:
    """Return how many measure at once, and why: as ``asked``, or as calibration allows.

    ``most`` is how many parts the machine can have, ``fit`` how many would have cores enough;
    ``found`` returns what calibration said of a number.
    """
    if asked:
        return asked, f"{counted(asked, 'shard')} at once, as --at-once says"
    answers = [one for count in range(most, 1, -1) if (one := found(count))]
    if allowed := next((one for one in answers if one.allowed), None):
        return allowed.count, f"{allowed.count} shards at once: {allowed}"
    if answers:
        return 1, f"one shard at a time: {answers[-1]}"
    if fit > 1:
        return 1, (
            "one shard at a time: whether sessions disturb each other here isn't known; "
            f"`perfci calibrate --at-once {fit}` measures that"
        )
    return 1, ""


def keep_answer(root: Path, machine: Machine, answer: AtOnce) -> None:
    """Keep what calibration found of so many parts of this machine, for the project at ``root``."""
    path = _path(root, machine, answer.count)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, encode(answer))


def forget_answer(root: Path, machine: Machine, count: int) -> None:
    """Forget what was found before: what fails when it is measured anew allows nothing."""
    _path(root, machine, count).unlink(missing_ok=True)


def kept_answer(root: Path, machine: Machine, count: int) -> AtOnce | None:
    """Return what calibration found of ``count`` parts, or None; what can't be read is unknown."""
    try:
        return decode(read_regular(_path(root, machine, count)), AtOnce)
    except (FileNotFoundError, CodecError):
        return None


def _path(root: Path, machine: Machine, count: int) -> Path:
    """Machines may share a cache folder, and disturb each other's parts in ways of their own."""
    parts = [(one.cores, one.device) for one in machine.parts(count)]
    mark = mark_of(platform.node(), str(root), machine.workers, parts)
    return cache_folder() / "at-once" / f"{mark}.json"
