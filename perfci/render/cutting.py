"""Markdown cut at a line, with its fences and details closed, so that it still renders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FENCE = re.compile(r"(`{3,})")
_SEPARATOR = re.compile(r"\|(:?-+:?\|)+$")
_ROOM = 400
"""For what closes fences and details, and the note."""


@dataclass(frozen=True, slots=True)
class _Open:
    """What is open after a line: the fence's backticks, the depth of details, rows so far."""

    fence: str = ""
    details: int = 0
    rows: int = 0

    def after(self, line: str) -> _Open:
        mark = _FENCE.match(line)
        if self.fence:
            closes = mark is not None and line.rstrip() == self.fence
            return _Open("" if closes else self.fence, self.details, self.rows)
        if mark is not None:
            return _Open(mark[1], self.details, self.rows)
        rows = self.rows
        if line.startswith("|"):
            rows += -1 if _SEPARATOR.match(line) else 1  # a separator takes its header back
        depth = self.details + line.count("<details>") - line.count("</details>")
        return _Open("", depth, rows)


def cut(text: str, limit: int, left_out: int = 0) -> str:
    """Return ``text`` if it has at most ``limit`` characters, else as many lines as fit.

    A note at the end says how many table rows were left out, ``left_out`` of them before.
    """
    if len(text) <= limit and not left_out:
        return text
    kept: list[str] = []
    length = 0
    state = _Open()
    lines = text.split("\n")
    for line in lines:
        length += len(line) + 1
        following = state.after(line)
        if length + len("</details>\n") * following.details + _ROOM > limit:
            break
        kept.append(line)
        state = following
    if len(kept) < len(lines) and _SEPARATOR.match(lines[len(kept)]):
        state = _Open(state.fence, state.details, state.rows - 1)
        kept.pop()  # a header without its separator would show as text
    return "\n".join([*kept, *_closing(state), _note(_rows(lines) + left_out - state.rows), ""])


def tidy(text: str) -> str:
    """Return ``text`` without a second blank line in a row; what stands in a fence is left."""
    kept: list[str] = []
    state = _Open()
    for line in text.split("\n"):
        if line or state.fence or (kept and kept[-1]):
            kept.append(line)
        state = state.after(line)
    return "\n".join(kept).strip("\n") + "\n"


def _closing(state: _Open) -> list[str]:
    fence = [state.fence] if state.fence else []
    return [*fence, "", *["</details>"] * state.details, ""]


def _rows(lines: Sequence[str]) -> int:
    state = _Open()
    for line in lines:
        state = state.after(line)
    return state.rows


def _note(rows: int) -> str:
    left_out = f"{rows} table row{'' if rows == 1 else 's'} and " if rows else ""
    return f"_Cut to fit: {left_out}the rest of this report left out; the JSON report has all._"
