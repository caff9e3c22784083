"""The watches of a session: the cards that a worker's processes use, and their load."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from time import sleep
from typing import Any

from perfci.measure.machine.gpu_watch import (
    GpuState,
    GpuWatch,
    UnwatchableCard,
    open_gpu_watch,
)
from perfci.worker.devices.cuda import DRIVER


class GpuWatches:
    """The watches of a session: one per card, opened when a worker first reports that card.

    NVML ignores CUDA_VISIBLE_DEVICES and counts cards in an order of its own, so that torch's
    ``cuda:0`` may be any of its cards: only a UUID names the same card in both. ``nvml`` stands for
    the module ``pynvml``. The file ``driver`` exists if NVIDIA's driver is loaded.
    """

    def __init__(self, nvml: Any = None, driver: Path = DRIVER) -> None:
        self._nvml = nvml
        self._driver = driver
        self._opened: dict[str, GpuWatch | UnwatchableCard] = {}
        self._used: dict[str, None] = {}
        self._handles: Sequence[Any] | None = None
        self.at_power_limit: set[str] = set()
        """Cases in which a card reached its power limit."""

    def of(self, uuid: str) -> GpuWatch | None:
        """Return the watch on the card that torch calls ``uuid``, or None if there can't be one."""
        self._used[uuid] = None
        watch = self._watch(uuid)
        return None if isinstance(watch, UnwatchableCard) else watch

    def group(self, uuids: Sequence[str]) -> tuple[GpuWatch, ...]:
        """Return the watches on all of these cards, or none if one of them can't be watched."""
        cards = tuple(card for card in map(self.of, dict.fromkeys(uuids)) if card)
        return cards if len(cards) == len(set(uuids)) else ()

    def facts(self, uuids: Sequence[str]) -> dict[str, str]:
        """Return what decides the speed of these cards. Cards that differ have a value each."""
        watches = map(self._watch, uuids)  # an unwatchable card is noted if a worker uses it
        of_cards = [watch.facts() for watch in watches if isinstance(watch, GpuWatch)]
        names = dict.fromkeys(name for facts in of_cards for name in facts)
        return {
            name: ", ".join(dict.fromkeys(facts.get(name, "unknown") for facts in of_cards))
            for name in names
        }

    def of_session(self, leader: int) -> tuple[GpuWatch, ...]:
        """Return the watches on NVIDIA's cards that processes of this worker's session use.

        Ranks and servers are such processes: their worker itself uses no card.
        """
        if not self._driver.exists():
            return ()
        nvml = self._binding()
        uuids = []
        try:
            if self._handles is None:
                nvml.nvmlInit()
                every = range(nvml.nvmlDeviceGetCount())
                self._handles = tuple(map(nvml.nvmlDeviceGetHandleByIndex, every))
            for handle in self._handles:
                pids = {each.pid for each in nvml.nvmlDeviceGetComputeRunningProcesses(handle)}
                if any(_session_of(pid) == leader for pid in pids - {leader}):
                    uuids.append(str(nvml.nvmlDeviceGetUUID(handle)).removeprefix("GPU-"))
        except nvml.NVMLError:
            return ()
        return self.group(uuids)

    def _watch(self, uuid: str) -> GpuWatch | UnwatchableCard:
        if uuid not in self._opened:
            try:
                self._opened[uuid] = open_gpu_watch(self._binding(), uuid)
            except UnwatchableCard as reason:
                self._opened[uuid] = reason
        return self._opened[uuid]

    def _binding(self) -> Any:
        if self._nvml is None:
            import pynvml

            self._nvml = pynvml
        return self._nvml

    def notes(self) -> tuple[str, ...]:
        """Return what went unseen, and why: a sentence each, no two alike."""
        notes = [note for uuid in self._used for note in _unseen(self._opened[uuid])]
        if self.at_power_limit:
            cases = ", ".join(sorted(self.at_power_limit))
            notes.append(
                f"The card reached its power limit in {cases}: both sides took turns of a second, "
                "each at the clock that its own power allows."
            )
        return tuple(dict.fromkeys(notes))


def read_as_one(cards: Sequence[GpuWatch]) -> GpuState | None:
    """Return the joined state of a worker's cards, or None without any."""
    return GpuState.joined([card.read() for card in cards]) if cards else None


def reach_power_limit(cards: Sequence[GpuWatch], after_s: float) -> bool:
    """Return whether one of the cards is at its power limit ``after_s`` from now."""
    sleep(after_s)
    return any(card.read().at_power_limit for card in cards)


def own_pids(state: GpuState, workers: Collection[int]) -> frozenset[int]:
    """Return the ``workers``, and those processes on the card that are in a worker's session."""
    listed = state.compute_pids or frozenset()
    return frozenset(workers) | {pid for pid in listed if _session_of(pid) in workers}


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:  # it has ended, or is outside this system's view
        return 0


def _unseen(watch: GpuWatch | UnwatchableCard) -> list[str]:
    if not isinstance(watch, UnwatchableCard):
        by_reason: dict[str, list[str]] = {}
        for what, why in watch.unknown.items():
            by_reason.setdefault(why, []).append(what)
        notes = [
            f"NVML can't read the card's {', '.join(what)} ({why})."
            for why, what in by_reason.items()
        ]
        if watch.clocks_set:
            notes.append("The card ran at clocks that its user set: the numbers are those at them.")
        return notes
    unseen = "Its slowdowns and foreign processes went unseen."
    return [f"The card was not watched: {watch}. {unseen}"]
