"""The console that terminal reports are laid out on: its text depends on its arguments alone."""

from __future__ import annotations

import io

from rich.console import Console


def text_console(out: io.StringIO, width: int, *, color: bool) -> Console:
    """Return a console that writes to ``out``, with ANSI colours only where ``color`` is set."""
    return Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        force_jupyter=False,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
