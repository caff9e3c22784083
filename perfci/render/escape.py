"""Text from strangers in GitHub's Markdown: it stays text.

Numeric entities alone aren't enough. GitHub looks for e-mail addresses, mentions, issue numbers
and emoji after entities are decoded, so those are also broken with a zero-width space (seen with
cmark-gfm: ``a&#64;b.com`` becomes a link).
"""

from __future__ import annotations

import re

from markupsafe import Markup

from perfci.render.clean import clean_block, clean_line

_SPECIAL = re.compile(r"[\\`*\[\]<>#|&@!~$]|(?<![^\W_])_|_(?![^\W_])|:(?=\u200b)")
_LINE_START = re.compile(r"^(?:[-+=]+(?=[\s-]|$)|\d{1,9}[.)](?=\s|$))")
"""What would begin a list, a rule or a heading's underline."""
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


def fence(text: str, lines: int = 40, limit: int = 4000) -> Safe:
    """Return the end of ``text`` in a fence longer than any run of backticks in it."""
    block = _COMMENT.sub(" ", clean_block(text, lines, limit))  # seen, as entities are text here
    longest = max((len(run) for run in re.findall(r"`+", block)), default=0)
    ticks = "`" * max(3, longest + 1)
    return Safe(f"{ticks}text\n{block}\n{ticks}")


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
