"""Cleaning of untrusted text, and escaping for GitHub's Markdown.

Cleaning removes invisible characters. It also breaks what a runner of GitHub Actions would take for
a command if the text is printed to its log. Only this module makes ``Clean`` text, and the command
line prints nothing else as it is.

Numeric entities alone don't escape Markdown. GitHub looks for e-mail addresses, mentions, issue
numbers and emoji after it has decoded entities (with cmark-gfm, ``a&#64;b.com`` becomes a link). A
zero-width space breaks these, too.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NewType

from markupsafe import Markup

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
"""Escape sequences of a terminal: colours and cursor, titles and links, single commands."""
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn"}
"""Unicode categories: control, format (bidi, zero-width, tags), lone surrogates, private use,
unassigned."""
_BLANK = dict.fromkeys("\u115f\u1160\u3164\uffa0\u2800", " ")
"""Characters that Unicode counts as letters or symbols, but that look like a blank."""
_COMMAND = re.compile(r"##(?=\[)|^[^\S\n]*:(?=:)", re.MULTILINE)
"""Matches the first half of a runner's ``##[`` or ``::``. A blank goes behind it."""
_CODE = re.compile(r"(`+)([^`\n]+)\1")
"""Text in backticks."""
_SENTENCE = re.compile(r"(?<=[\w)\]}'\"`%])[ \t\r]*\n\s*(?=[A-Z`])")
"""A line break between two sentences: no full stop is before it, and a capital letter after it."""
_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")
"""A colour or a weight, which perfci's own renderers put around cleaned text."""
_MAYBE_UNSEEN = re.compile(r"[^\x00-\x7e]+")
"""Characters that may be invisible. In JSON, control characters are escapes already."""
_MARKS = {"Mn", "Me"}
"""Unicode categories of combining marks."""
_MOST_MARKS = 4
"""Most combining marks on one letter. More would cover the neighbouring lines."""
_SPECIAL = re.compile(r"[\\`*\[\]<>#|&@!~$]|(?<![^\W_])_|_(?![^\W_])|:(?=\u200b)")
"""Characters with a meaning in Markdown. An underscore inside a word has none, and a colon has one
only before a ``_BREAK``."""
_LINE_START = re.compile(r"^(?:[-+=]+(?=[\s-]|$)|\d{1,9}[.)](?=\s|$))")
"""The beginning of a line that makes it a list, a rule or a heading's underline."""
_COMMENT = re.compile(r"(?<=<!)(?=--)")
"""The middle of ``<!--``, which begins a comment."""
_BREAKS = (
    re.compile(r"(?<=@)(?=\S)"),
    re.compile(r"(?<=#)(?=\d)"),
    re.compile(r"(?<=:)(?=//)"),
    re.compile(r"(?<=www)(?=\.)", re.IGNORECASE),
    re.compile(r"(?<=\bGH)(?=-\d)", re.IGNORECASE),
    re.compile(r"(?<=:)(?=[\w+-]+:)"),
    _COMMENT,
)
"""Where a ``_BREAK`` goes: into mentions, issue numbers, addresses, emoji and comments."""
_BREAK = "\u200b"
"""A zero-width space."""


Clean = NewType("Clean", str)
"""Visible text that no runner takes for a command. Joining it with other text gives a plain str."""


def clean_line(text: str, limit: int = 300) -> Clean:
    """Return ``text`` on one line, visible characters only, at most ``limit`` of them."""
    # of a megabyte only the beginning is cleaned: enough for the limit, as runs of blanks shrink
    line = no_commands(" ".join(_visible(text[: 2 * limit + 1000].split())))
    return Clean(line if len(line) <= limit else line[: limit - 1].rstrip() + "…")


def clean_prose(text: str, limit: int = 300) -> Clean:
    """Return ``text`` as ``clean_line`` does, for a terminal: `code` loses its backticks.

    A message with advice on the line below it becomes two sentences.
    """
    return clean_line(_CODE.sub(r"\2", sentences(text[: 2 * limit + 1000])), limit)


def sentences(text: str) -> str:
    """Return ``text`` on one line. A line break between two sentences becomes a full stop."""
    return _SENTENCE.sub(". ", text.strip())


def one_line(text: str) -> Clean:
    """Return all of ``text`` on one line. Runs of blanks stay, so that columns stay aligned."""
    return Clean(no_commands("".join(_visible([re.sub(r"\s", " ", text)]))))


def clean_block(text: str, lines: int = 40, limit: int = 4000) -> Clean:
    """Return the end of ``text``, its last ``lines`` lines, visible characters only."""
    tail = text[-2 * limit - 1000 :].replace("\r\n", "\n").replace("\t", "    ")
    wanted = [line.rstrip() for line in _visible(tail.splitlines())]
    block = no_commands("\n".join(wanted).strip("\n"))
    # once more: the cut may make the middle of a line its beginning, where a command counts
    return Clean(no_commands("\n".join(block.splitlines()[-lines:])[-limit:]))


def clean_lines(text: str) -> Clean:
    """Return all lines of ``text`` with their indentation, visible characters only."""
    lines = _visible(text.replace("\t", "    ").splitlines())
    return Clean(no_commands("\n".join(lines) + "\n" * text.endswith("\n")))


def clean_styled(text: str) -> Clean:
    """Return ``text`` as ``clean_lines`` does, and keep the colours that a renderer has added."""
    parts = _STYLE.split(text)
    parts[::2] = [  # the odd parts are the colours
        "\n".join(_visible(part.replace("\t", "    ").split("\n"))) for part in parts[::2]
    ]
    return Clean(no_commands("".join(parts)))


def clean_json(text: str) -> Clean:
    """Return JSON with the same values, with invisible characters and commands as escapes.

    Only strings change: outside them JSON has no ``##[``, and nothing invisible but blanks. No line
    of JSON begins with a colon, so ``::`` is not a command in it.
    """
    return Clean(_MAYBE_UNSEEN.sub(_spelled, text.replace("##[", "##\\u005b")))


def no_commands(text: str) -> str:
    """Return ``text`` in which a runner of GitHub Actions finds no command.

    A runner looks for ``::`` at the first non-blank of a line, and for the old ``##[`` anywhere in
    a line. A blank breaks these. It is visible, so that a reader sees that the text was changed.
    """
    return _COMMAND.sub(lambda match: f"{match[0]} ", text)


def _spelled(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else "".join(map(_escaped, match[0]))


def _escaped(character: str) -> str:
    """Return an invisible character as JSON escapes: one for each UTF-16 code unit."""
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
    """Say whether ``text`` is visible as it is, without combining marks. Nearly all texts are."""
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
    """Text that goes into a template as it is: escaped, or perfci's own.

    It is a Markup, as the output of a template's macros is, which Jinja takes for safe.
    """

    __slots__ = ()


def escape(text: str, limit: int = 300) -> Safe:
    """Return ``text`` as one line of Markdown that shows as it is, also in a table's cell."""
    line = clean_line(text, limit)
    return Safe(_markdown(line))


def prose(text: str, limit: int = 300) -> Safe:
    """Return ``text`` as ``escape`` does. Text between backticks becomes code."""
    parts: list[str] = _CODE.split(clean_line(text, limit))
    parts[::3] = [_markdown(plain) for plain in parts[::3]]
    parts[2::3] = map(code, parts[2::3])
    del parts[1::3]  # the backticks
    return Safe("".join(parts))


def code(text: str, limit: int = 300) -> Safe:
    """Return ``text`` in ``<code>``, where GitHub looks for no mentions, references and emoji."""
    return Safe(f"<code>{escape(text, limit)}</code>") if text else Safe("")


def fence(text: str, language: str = "text", lines: int = 40, limit: int = 4000) -> Safe:
    """Return the end of ``text`` in a fence longer than any run of backticks in it."""
    # a blank breaks a comment: in a fence an entity would show as text
    block = _COMMENT.sub(" ", clean_block(text, lines, limit))
    longest = max((len(run) for run in re.findall(r"`+", block)), default=0)
    ticks = "`" * max(3, longest + 1)
    return Safe(f"{ticks}{language}\n{block}\n{ticks}")


def _markdown(line: str) -> str:
    """Return a clean line with entities for special characters, and no mention or link in it."""
    for pattern in _BREAKS:
        line = pattern.sub(_BREAK, line)
    text = _SPECIAL.sub(lambda match: _entity(match[0]), line)
    text = _LINE_START.sub(lambda match: "".join(map(_entity, match[0])), text)
    return text.replace(_BREAK, "&#8203;")


def _entity(character: str) -> str:
    return f"&#{ord(character)};"
