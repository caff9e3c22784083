"""The formats that reports are written in. Each is a module here: to add a format, add a module.

A module has the attributes of ``Exporter``. Its name is the format's name, in the option
``--NAME FILE`` and in ``report --format NAME``. ``--help`` imports every exporter to show its line,
so only ``render`` imports slow libraries.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Protocol, cast

from perfci.plugins import module_names
from perfci.report.clean import Clean

if TYPE_CHECKING:
    from perfci.model.report import Report

TERMINAL = "terminal"
"""Name of the format for people at a terminal. No exporter may have this name."""
FORMATS = module_names(sys.modules[__name__])


class Exporter(Protocol):
    """Writes reports in one format. ``HELP`` is the help text of its option."""

    HELP: str

    def render(self, report: Report, /) -> Clean:
        """Return the report's text, which is written as it is."""


def exporter(name: str) -> Exporter:
    """Return the exporter of one of ``FORMATS``."""
    return cast("Exporter", importlib.import_module(f"{__name__}.{name}"))
