"""Environments for the reader of a comment: what each is called, and its facts as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfci.model.report import Report
from perfci.model.run import Environment
from perfci.render.clean import clean_line
from perfci.render.escape import Safe, code, escape

_DISTINGUISHING = ("torch", "cuda", "python", "driver", "cpu", "threads", "machine")
"""What distinguishes two environments on the same device, the likeliest first."""
_SHOWN = frozenset({"environment", "device_name", *_DISTINGUISHING, "perfci"})
"""The other facts stand only where they differ; the JSON report has them all."""


@dataclass(frozen=True, slots=True)
class FactTable:
    """A row for each fact: its name, then a cell for each of ``columns``."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Safe, ...], ...]


def environment_names(reports: Sequence[Report]) -> tuple[str, ...]:
    """Return a name for each report's environment: its device, and what distinguishes it."""
    return names_of([report.environment for report in reports])


def names_of(environments: Sequence[Environment]) -> tuple[str, ...]:
    """Return a name for each environment; where two would be called alike, also the key."""
    devices = [clean_line(_device(one), 60) or "an environment" for one in environments]
    names = []
    for environment, device in zip(environments, devices, strict=True):
        alike = [other for other, name in zip(environments, devices, strict=True) if name == device]
        names.append(", ".join((device, *_distinguishing(environment, alike))))
    return tuple(
        name if names.count(name) == 1 else f"{name} ({environment.key})"
        for environment, name in zip(environments, names, strict=True)
    )


def fact_tables(reports: Sequence[Report], names: Sequence[str]) -> tuple[FactTable, ...]:
    """Return one report's main facts; of several what they share, and all that differs."""
    if len(reports) == 1:
        return (_of_one(reports[0]),)
    each = [_facts(report) for report in reports]
    facts = tuple(dict.fromkeys(fact for one in each for fact in one))
    shared = [fact for fact in facts if len({one.get(fact) for one in each}) == 1]
    nothing = escape("–")
    tables = (
        FactTable(
            ("all",),
            tuple((escape(fact), each[0][fact]) for fact in shared if fact in _SHOWN),
        ),
        FactTable(
            tuple(names),
            tuple(
                (escape(fact), *(one.get(fact, nothing) for one in each))
                for fact in facts
                if fact not in shared
            ),
        ),
    )
    return tuple(table for table in tables if table.rows)


def _of_one(report: Report) -> FactTable:
    """Return head's facts, and base's where those differ."""
    head = _facts(report)
    if report.base_environment is None:
        return FactTable(
            ("value",), tuple((escape(fact), head[fact]) for fact in head if fact in _SHOWN)
        )
    base = _environment(report.base_environment, report.base.python if report.base else "")
    nothing = escape("–")
    rows = []
    for fact in dict.fromkeys((*head, *base)):
        before, after = base.get(fact, nothing), head.get(fact, nothing)
        differs = before != after and fact != "perfci"
        if differs or fact in _SHOWN:
            rows.append((escape(fact), after, before if differs else Safe("")))
    return FactTable(("head", "base, where it differs"), tuple(rows))


def _facts(report: Report) -> dict[str, Safe]:
    made = f"{report.perfci_version}, {report.command}, {report.created_at}"
    return {**_environment(report.environment, report.head.python), "perfci": escape(made)}


def _environment(environment: Environment, python: str) -> dict[str, Safe]:
    """Return what is shown of one environment; facts can't take the place of the first two."""
    first = {"environment": code(environment.key), "interpreter": code(python)}
    facts = {name: escape(value) for name, value in sorted(environment.facts.items())}
    return first | {name: value for name, value in facts.items() if name not in first}


def _device(environment: Environment) -> str:
    facts = environment.facts
    device = facts.get("device_name", "")
    return (device if device not in {"", "cpu"} else facts.get("cpu", "")) or environment.key


def _distinguishing(mine: Environment, alike: Sequence[Environment]) -> list[str]:
    return [
        clean_line(f"{fact} {mine.facts.get(fact, 'unknown')}", 60)
        for fact in _DISTINGUISHING
        if len({one.facts.get(fact) for one in alike}) > 1
    ]
