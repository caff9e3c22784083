"""The formats that reports are written in. Each is a module here: to add a format, add a module.

Another distribution adds a format by an entry point of the group ``perfci.exporters``. The module,
or the object that the entry point names, has the attributes of ``Exporter``. Its name, with
hyphens, is the format's name, in the option ``--NAME FILE`` and in ``report --format NAME``.
``--help`` imports every exporter to show its line, so only ``render`` imports slow libraries.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast

from perfci.plugins import (
    broken_entry_point,
    entry_points_of,
    load_plugin,
    module_names,
)
from perfci.report.clean import Clean, clean_line, clean_lines

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from perfci.errors import UsageError
    from perfci.model.report import Report

GROUP = "perfci.exporters"
TERMINAL = "terminal"
"""Name of the format for people at a terminal. No exporter may have this name."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
"""A format's name: lower-case words and digits with single hyphens."""


class Exporter(Protocol):
    """Writes reports in one format. ``HELP`` is the help text of its option."""

    HELP: str

    def render(self, report: Report, /) -> str:
        """Return the report's text, which is written as it is. perfci's exporters return Clean."""


@dataclass(frozen=True, slots=True)
class Format:
    """An exporter by name, imported on use. perfci's own exporters have no entry ``point``."""

    name: str
    point: EntryPoint | None = None

    def load(self) -> Exporter:
        """Return the exporter. UsageError for a broken one."""
        if self.point is None:
            return cast("Exporter", importlib.import_module(self._module))
        return cast("Exporter", load_plugin(self.point, "HELP", "render"))

    @property
    def _module(self) -> str:
        return f"{__name__}.{self.name.replace('-', '_')}"

    def text(self, report: Report) -> str:
        """Return the text for a file. UsageError if another distribution's exporter fails."""
        exporter = self.load()
        if self.point is None:
            return exporter.render(report)
        try:
            return exporter.render(report)
        except Exception as error:  # foreign code may raise anything: what was measured isn't lost
            raise broken_entry_point(self.point, f"{type(error).__name__}: {error}") from error

    def shown(self, text: str) -> Clean:
        """Return ``text`` for printing. Text of another distribution's exporter is cleaned."""
        return Clean(text) if self.point is None else clean_lines(text)

    def help_line(self) -> str:
        """Return the help text of the format's option. A broken exporter's says so."""
        from perfci.errors import UsageError

        try:
            return clean_line(self.load().HELP)
        except UsageError as error:
            return clean_line(f"Broken: {error.message}.")


def formats(taken: Collection[str] = ()) -> tuple[dict[str, Format], list[UsageError]]:
    """Return the formats by name, perfci's own first, and an error for each refused entry point.

    ``taken`` are the names of the command's other options. No exporter is imported.
    """
    modules = (name.replace("_", "-") for name in module_names(sys.modules[__name__]))
    known = {name: Format(name) for name in modules}
    refused = []
    for point in _points():
        if not _NAME.fullmatch(point.name):
            why = "a format's name is of lower-case letters, digits and hyphens"
        elif (other := known.get(point.name)) is not None:
            owner = other.point.dist if other.point is not None else None
            why = f"{owner.name if owner else 'perfci'} has a format of this name"
        elif point.name in taken or point.name == TERMINAL:
            why = f"perfci has an option or a format `{point.name}`"
        else:
            known[point.name] = Format(point.name, point)
            continue
        refused.append(broken_entry_point(point, why))
    return known, refused


def named(name: str) -> Format:
    """Return a format that ``formats`` found."""
    return formats()[0][name]


@cache
def _points() -> tuple[EntryPoint, ...]:
    return entry_points_of(GROUP)
