"""Text from strangers without what can't be seen: control, bidi and zero-width characters.

And without what a runner of GitHub Actions, whose log it may be printed to, takes for a command.
"""

from __future__ import annotations

import re
import unicodedata

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn"}
"""Control, format (bidi, zero-width, tags), lone surrogates, private use, unassigned."""
_BLANK = dict.fromkeys("\u115f\u1160\u3164\uffa0\u2800", " ")
"""Letters by category that show nothing."""
_COMMAND = re.compile(r"##(?=\[)|^[^\S\n]*:(?=:)", re.MULTILINE)
_MOST_MARKS = 4
"""More combining marks on one letter would climb over the neighbouring lines."""


def clean_line(text: str, limit: int = 300) -> str:
    """Return ``text`` on one line, visible characters only, at most ``limit`` of them."""
    # twice the limit is looked at, not a megabyte of it; runs of blanks shrink to one
    line = no_commands(" ".join(_visible(text[: 2 * limit + 1000].split())))
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def clean_block(text: str, lines: int = 40, limit: int = 4000) -> str:
    """Return the end of ``text``, its last ``lines`` lines, visible characters only."""
    tail = text[-2 * limit - 1000 :].replace("\r\n", "\n").replace("\t", "    ")
    wanted = [line.rstrip() for line in _visible(tail.splitlines())]
    block = no_commands("\n".join(wanted).strip("\n"))
    # a line that is cut in two may begin with what stood in its middle
    return no_commands("\n".join(block.splitlines()[-lines:])[-limit:])


def clean_lines(text: str) -> str:
    """Return all lines of ``text`` as they are indented, visible characters only."""
    return no_commands("\n".join(_visible(text.replace("\t", "    ").splitlines())))


def no_commands(text: str) -> str:
    """Return ``text`` of which a runner of GitHub Actions takes no line for a command.

    Its runner looks for ``::`` where a line begins, blanks aside, and for the old ``##[``
    anywhere in a line. The break is one that is seen: an invisible one would be a lie in turn.
    """
    return _COMMAND.sub(lambda found: f"{found[0]} ", text)


def _visible(parts: list[str]) -> list[str]:
    return [_few_marks("".join(map(_shown, _ANSI.sub("", part)))) for part in parts]


def _shown(character: str) -> str:
    if character in _BLANK:
        return _BLANK[character]
    category = unicodedata.category(character)
    if category in {"Zl", "Zp"}:
        return " "
    return "" if category in _INVISIBLE else character


def _few_marks(text: str) -> str:
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in {"Mn", "Me"} else 0
        if marks <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)
