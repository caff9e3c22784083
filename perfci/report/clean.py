"""Untrusted text without what cannot be seen, and escaped for GitHub's Markdown.

And without what a runner of GitHub Actions, whose log it may be printed to, takes for a command.
``Clean`` is made here alone, and is all that the command line prints as it stands.

Numeric entities alone aren't enough. GitHub looks for e-mail addresses, mentions, issue numbers
and emoji after entities are decoded, so those are also broken with a zero-width space (seen with
cmark-gfm: ``a&#64;b.com`` becomes a link).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NewType

from markupsafe import Markup

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn"}
"""Control, format (bidi, zero-width, tags), lone surrogates, private use, unassigned."""
_BLANK = dict.fromkeys("\u115f\u1160\u3164\uffa0\u2800", " ")
"""Letters by category that show nothing."""
_COMMAND = re.compile(r"##(?=\[)|^[^\S\n]*:(?=:)", re.MULTILINE)
_CODE = re.compile(r"(`+)([^`\n]+)\1")
_SENTENCE = re.compile(r"(?<=[\w)\]}'\"`%])[ \t\r]*\n\s*(?=[A-Z`])")
"""A line break before a capital letter, after a line without an end."""
_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")
"""A colour or a weight: what a renderer of perfci's own puts around cleaned text."""
_MAYBE_UNSEEN = re.compile(r"[^\x00-\x7e]+")
_MARKS = {"Mn", "Me"}
_MOST_MARKS = 4
"""More combining marks on one letter would climb over the neighbouring lines."""
_SPECIAL = re.compile(r"[\\`*\[\]<>#|&@!~$]|(?<![^\W_])_|_(?![^\W_])|:(?=\u200b)")
_LINE_START = re.compile(r"^(?:[-+=]+(?=[\s-]|$)|\d{1,9}[.)](?=\s|$))")
"""The beginning of a list, a rule or a heading's underline."""
_COMMENT = re.compile(r"(?<=<!)(?=--)")
_BREAKS = (
    re.compile(r"(?<=@)(?=\S)"),
    re.compile(r"(?<=#)(?=\d)"),
    re.compile(r"(?<=:)(?=//)"),
    re.compile(r"(?<=www)(?=\.)", re.IGNORECASE),
    re.compile(r"(?<=\bGH)(?=-\d)", re.IGNORECASE),
    re.compile(r"(?<=:)(?=[\w+-]+:)"),
    _COMMENT,
)
_BREAK = "\u200b"


Clean = NewType("Clean", str)
"""Text that shows as it stands and is no command. Whatever is joined to it is a str again."""


def clean_line(text: str, limit: int = 300) -> Clean:
    """Return ``text`` on one line, visible characters only, at most ``limit`` of them."""
    # twice the limit is looked at, not a megabyte of it; runs of blanks shrink to one
    line = no_commands(" ".join(_visible(text[: 2 * limit + 1000].split())))
    return Clean(line if len(line) <= limit else line[: limit - 1].rstrip() + "…")


def clean_prose(text: str, limit: int = 300) -> Clean:
    """Return what ``clean_line`` does of a sentence for a terminal, where `code` needs no ticks.

    A message whose advice stands on a line below becomes two sentences.
    """
    return clean_line(_CODE.sub(r"\2", sentences(text[: 2 * limit + 1000])), limit)


def sentences(text: str) -> str:
    """Return ``text`` on one line, with a full stop where a line break parted two sentences."""
    return _SENTENCE.sub(". ", text.strip())


def one_line(text: str) -> Clean:
    """Return all of ``text`` on one line, its blanks as they are: columns stay aligned."""
    return Clean(no_commands("".join(_visible([re.sub(r"\s", " ", text)]))))


def clean_block(text: str, lines: int = 40, limit: int = 4000) -> Clean:
    """Return the end of ``text``, its last ``lines`` lines, visible characters only."""
    tail = text[-2 * limit - 1000 :].replace("\r\n", "\n").replace("\t", "    ")
    wanted = [line.rstrip() for line in _visible(tail.splitlines())]
    block = no_commands("\n".join(wanted).strip("\n"))
    # a line that is cut in two may begin with what stood in its middle
    return Clean(no_commands("\n".join(block.splitlines()[-lines:])[-limit:]))


def clean_lines(text: str) -> Clean:
    """Return all lines of ``text`` as they are indented, visible characters only."""
    lines = _visible(text.replace("\t", "    ").splitlines())
    return Clean(no_commands("\n".join(lines) + "\n" * text.endswith("\n")))


def clean_styled(text: str) -> Clean:
    """Return what ``clean_lines`` does, with the colours that a renderer has put around it."""
    parts = _STYLE.split(text)
    parts[::2] = [
        "\n".join(_visible(part.replace("\t", "    ").split("\n"))) for part in parts[::2]
    ]
    return Clean(no_commands("".join(parts)))


def clean_json(text: str) -> Clean:
    """Return JSON that reads as the same values, with all that can't be seen spelled as escapes.

    Outside its strings JSON has neither ``[`` after ``##`` nor anything invisible but blanks, and
    no line of it begins with a colon.
    """
    return Clean(_MAYBE_UNSEEN.sub(_spelled, text.replace("##[", "##\\u005b")))


def no_commands(text: str) -> str:
    """Return ``text`` of which a runner of GitHub Actions takes no line for a command.

    Its runner looks for ``::`` at the first non-blank of a line, and for the old ``##[``
    anywhere in a line. The break is one that is seen: an invisible one would be a lie in turn.
    """
    return _COMMAND.sub(lambda match: f"{match[0]} ", text)


def _spelled(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else "".join(map(_escaped, match[0]))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _visible(parts: list[str]) -> list[str]:
    return [
        part if _is_plain(part) else _few_marks("".join(map(_shown, _ANSI.sub("", part))))
        for part in parts
    ]


def _is_plain(text: str) -> bool:
    """Say whether all of ``text`` can be seen, and no letter has a mark: true of nearly all."""
    return text.isprintable() and (text.isascii() or all(map(_is_plain_character, set(text))))


@lru_cache(1024)
def _is_plain_character(character: str) -> bool:
    return _shown(character) == character and unicodedata.category(character) not in _MARKS


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
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        if marks <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)


class Safe(Markup):
    """Text that has been escaped, or perfci's own: it goes into a template as it is.

    A Markup, so that Jinja knows the output of a template's own macros as safe, too.
    """

    __slots__ = ()


def escape(text: str, limit: int = 300) -> Safe:
    """Return ``text`` as one line that shows as it stands, also in a table cell."""
    line = clean_line(text, limit)
    return Safe(_entities(_broken(line)))


def code(text: str, limit: int = 300) -> Safe:
    """Return ``text`` in ``<code>``: mentions, references and emoji aren't looked for there."""
    return Safe(f"<code>{escape(text, limit)}</code>") if text else Safe("")


def fence(text: str, language: str = "text", lines: int = 40, limit: int = 4000) -> Safe:
    """Return the end of ``text`` in a fence longer than any run of backticks in it."""
    block = _COMMENT.sub(" ", clean_block(text, lines, limit))  # seen, as entities are text here
    longest = max((len(run) for run in re.findall(r"`+", block)), default=0)
    ticks = "`" * max(3, longest + 1)
    return Safe(f"{ticks}{language}\n{block}\n{ticks}")


def _broken(line: str) -> str:
    for pattern in _BREAKS:
        line = pattern.sub(_BREAK, line)
    return line


def _entities(line: str) -> str:
    text = _SPECIAL.sub(lambda match: _entity(match[0]), line)
    text = _LINE_START.sub(lambda match: "".join(map(_entity, match[0])), text)
    return text.replace(_BREAK, "&#8203;")


def _entity(character: str) -> str:
    return f"&#{ord(character)};"
