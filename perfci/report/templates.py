"""Templates of HTML and of Markdown, and cutting of Markdown to the length that a forge takes.

The templates lie inside an installed perfci, and next to the package in a checkout. Templates
needn't escape: every value that isn't Markup is escaped automatically.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

import perfci
from perfci.report.clean import Safe, clean_block, clean_line, code, escape, fence, prose, sentences

if TYPE_CHECKING:
    from jinja2 import Environment

LIMIT = 60_000
"""Characters of a comment. GitHub takes 65,536. The difference is for lines that are added."""
_LONGEST_UNBROKEN = 48
"""Characters of the longest name that stays on one line next to a wide column."""
_WORD_END = re.compile(r"(?:[,=./_-]|&#91;)(?=\w)")
"""The end of a word inside a name. No entity has such a character in its middle."""
_BREAK_HERE = r"\g<0><wbr>"
_IN_BACKTICKS = re.compile(r"`([^`]+)`")
_FENCE = re.compile(r"(`{3,})")
_SEPARATOR = re.compile(r"\|(:?-+:?\|)+$")
"""The line between a table's header and its rows."""
_NOTE = "_Cut to fit. The JSON report has the rest._"
_ROOM = 400
"""Characters kept free for the note at the end, and for closing a fence and details."""


def template_folder() -> Path:
    """Return the folder of the templates."""
    package = Path(perfci.__file__).parent
    inside = package / "templates"
    return inside if inside.is_dir() else package.parent / "templates"


def read_template(name: str) -> str:
    """Return the text of one template."""
    return (template_folder() / name).read_text(encoding="utf-8")


def render_html(name: str, context: Mapping[str, Any]) -> bytes:
    """Return the HTML that a template makes of ``context``."""
    text = _html().get_template(name).render(context)
    return text.encode("utf-8", "backslashreplace")


@cache
def _html() -> Environment:
    environment = _environment(
        finalize=lambda value: value if isinstance(value, Markup) else clean_line(str(value), 1000)
    )
    environment.filters |= {"prose": _html_prose, "block": _html_block}
    return environment


def _html_prose(text: str) -> Safe:
    """Return sentences escaped. Text between backticks becomes code."""
    escaped = str(Markup.escape(clean_line(sentences(text), 1000)))
    return Safe(_IN_BACKTICKS.sub(r"<code>\1</code>", escaped))


def _html_block(text: str) -> Safe:
    """Return the end of a text escaped, its lines as they are."""
    return Safe(Markup.escape(clean_block(text)))


def markdown_environment() -> Environment:
    """Return an environment of Markdown templates."""
    environment = _environment(
        # finalize runs before HTML's escaping, which leaves this Markup as it is
        finalize=lambda value: value if isinstance(value, Markup) else prose(str(value)),
    )
    environment.filters |= {
        "code": code,
        "fence": fence,
        "sentences": sentences,
        "unbroken": unbroken,
        "breakable": _breakable,
    }
    return environment


def _environment(**options: Any) -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        autoescape=True,
        loader=FunctionLoader(read_template),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )


def unbroken(text: str) -> Safe:
    """Return ``text`` escaped, with blanks that don't break: a number stays with its unit."""
    return Safe(escape(text).replace(" ", "\N{NO-BREAK SPACE}"))


def _breakable(text: str) -> Safe:
    """Return ``text`` in code. If it is long, a narrow column may break it at a word's end."""
    broken = str(escape(text))
    if len(text) > _LONGEST_UNBROKEN:
        broken = _WORD_END.sub(_BREAK_HERE, broken)
    return Safe(f"<code>{broken}</code>" if text else "")


@dataclass(frozen=True, slots=True)
class _OpenBlocks:
    """The state after a line: the open fence's backticks, and open details."""

    fence: str = ""
    details: int = 0

    def after(self, line: str) -> _OpenBlocks:
        """Return the state after one more line."""
        mark = _FENCE.match(line)
        if self.fence:
            return _OpenBlocks("" if line.rstrip() == self.fence else self.fence, self.details)
        if mark is not None:
            return _OpenBlocks(mark[1], self.details)
        return _OpenBlocks("", self.details + line.count("<details>") - line.count("</details>"))


def cut(text: str, limit: int) -> str:
    """Return the lines of the Markdown ``text`` that fit into ``limit`` characters, with a note."""
    if len(text) <= limit:
        return text
    kept: list[str] = []
    length = 0
    state = _OpenBlocks()
    for line in text.split("\n"):
        length += len(line) + 1
        following = state.after(line)
        if length + len("</details>\n") * following.details + _ROOM > limit:
            if _SEPARATOR.match(line):
                kept.pop()  # without its separator a table's header would show as text
            break
        kept.append(line)
        state = following
    fence = [state.fence] if state.fence else []
    return "\n".join([*kept, *fence, "", *["</details>"] * state.details, "", _NOTE, ""])


def tidy(text: str) -> str:
    """Return Markdown with runs of blank lines made one. Fenced text stays as it is."""
    kept: list[str] = []
    state = _OpenBlocks()
    for line in text.split("\n"):
        if line or state.fence or (kept and kept[-1]):
            kept.append(line)
        state = state.after(line)
    return "\n".join(kept).strip("\n") + "\n"
