"""What torch.compile's messages say: where in the user's code, and why, in one line.

The texts differ between torch versions, so nothing is decided by them: they are shown.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

_BREAK = re.compile(r"in user code at (?P<file>[^\n]+):(?P<line>\d+)")
_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)
_RECOMPILE = re.compile(r"(?:in |\()(?P<file>/[^\n)]+):(?P<line>\d+)")
_REASON = re.compile(r"^(?:Graph Break )?Reason: ", re.MULTILINE)
_GUARD = re.compile(r"^\s*- (?:\d+/\d+: )?(?P<guard>\S[^\n]*)", re.MULTILINE)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's code; ``leaf`` is where torch says it is, perhaps inside torch."""

    file: str
    line: int
    leaf: tuple[str, int] = field(compare=False, default=("", 0))


def break_place(message: str) -> Place:
    """Return the innermost line outside torch that a graph break's message names."""
    frames = [(match["file"], int(match["line"])) for match in _FRAME.finditer(message)]
    named = _BREAK.search(message)
    leaf = (named["file"], int(named["line"])) if named else (frames[-1] if frames else ("", 0))
    if not _inside_torch(leaf[0]):
        return Place(*leaf, leaf=leaf)
    users = [frame for frame in frames if not _inside_torch(frame[0])]
    return Place(*(users[-1] if users else leaf), leaf=leaf)


def recompile_place(message: str) -> Place:
    """Return the function that a recompile's message names."""
    match = _RECOMPILE.search(message)
    return Place(match["file"], int(match["line"])) if match else Place("", 0)


def reason_of(message: str) -> str:
    """Return the reason in a message as one line of at most 300 characters."""
    guard = _GUARD.search(message)
    if message.startswith("Recompiling") and guard:
        return _short(guard["guard"].split("  # ", 1)[0])
    told = _REASON.split(message, maxsplit=1)[-1]
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    # "Encountered graph break when attempting to trace CALL:" only announces the reason.
    while len(lines) > 1 and lines[0].endswith(":"):
        lines.pop(0)
    explanation = "".join(lines[1:2]) if lines[1:2] and lines[1].startswith("Explanation:") else ""
    headline = lines[0] if lines else ""
    return _short(f"{headline}: {explanation.removeprefix('Explanation:').strip()}".rstrip(": "))


def relative_to(root: str, text: str) -> str:
    """Return ``text`` with paths inside ``root`` relative to it."""
    return text.replace(root.rstrip("/") + "/", "") if root.rstrip("/") else text


def _short(text: str) -> str:
    plain = _ADDRESS.sub("", text).strip()  # an address differs in every process
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + "…"


def _inside_torch(file: str) -> bool:
    origin = getattr(sys.modules.get("torch"), "__file__", None)
    return bool(origin) and file.startswith(str(Path(str(origin)).parent) + "/")
