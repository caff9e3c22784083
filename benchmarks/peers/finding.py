"""What a measurement says about one benchmark, and how it is kept: a line of JSON each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

CONDITIONS = {"same": 0.0, "slow2": 0.02, "slow5": 0.05}
BENCHMARKS = ("eager", "compiled", "memory_bound", "allocating", "tiny", "loading")


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule's answer for one benchmark: is head claimed slower, and by what share.

    ``elsewhere`` names other figures than latency that the tool called worse (perfci gates
    memory and start-up too): on identical commits they are false alarms like any other.
    """

    benchmark: str
    rule: str
    alarm: bool
    change: float
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measurement:
    """One comparison of the whole suite by one tool; ``failure`` says why there is none."""

    tool: str
    setting: str
    condition: str
    repetition: int
    started_at: str
    seconds: float
    findings: tuple[Finding, ...] = ()
    failure: str = ""

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Return what makes it the same measurement again."""
        return self.tool, self.setting, self.condition, self.repetition


def encode(measurement: Measurement) -> str:
    """Return the line of JSON."""
    return msgspec.json.encode(measurement).decode()


def read(files: list[Path]) -> list[Measurement]:
    """Return the measurements in ``files``, the last of each; other lines tell of the machine."""
    found: dict[tuple[str, str, str, int], Measurement] = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            fields = json.loads(line)
            if "tool" in fields:
                measurement = msgspec.convert(fields, Measurement)
                found[measurement.key] = measurement
    return list(found.values())


def machines(files: list[Path]) -> list[dict[str, Any]]:
    """Return the files' lines about the machine."""
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [line for line in lines if "machine" in line]
