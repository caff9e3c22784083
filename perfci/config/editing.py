"""Keys put into a user's configuration, whose comments, order and spacing stay. Pure.

tomlkit, because it is the one TOML library that writes back what it read (the standard library
only reads); hatchling, which builds perfci, rests on it too. It is not believed: there are correct
files after whose editing other keys stand in another table. So every edit is read again by the
standard library, and only one after which the whole document differs in nothing but the wanted
keys is returned.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from perfci.config.loading import PROJECT_FILE, parse_config
from perfci.errors import UsageError

Keys = Mapping[tuple[str, ...], float]

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
_BARE_NEWLINE = re.compile(r"(?<!\r)\n")


def with_keys(text: str, where: str, keys: Keys) -> str:
    """Return the TOML ``text`` of the file ``where`` with each path of ``keys`` set.

    pyproject.toml gets them under ``[tool.perfci]``, as does any file that has a ``[tool]``.
    UsageError where that is no configuration afterwards, or where no way to write them leaves
    everything else as it was; it shows the lines to add by hand.
    """
    content = _content(text, where)
    own = Path(where).name != PROJECT_FILE and "tool" not in content
    placed = {(*(() if own else ("tool", "perfci")), *path): value for path, value in keys.items()}
    edited = _first_true(text, placed, _ways_for_all(text, placed))
    if edited is None:
        edited = text
        for path, value in placed.items():
            one = {path: value}
            following = _first_true(edited, one, _ways_for_one(edited, path, value))
            if following is None:
                raise _not_editable(where, placed)
            edited = following
    parse_config(edited, where)
    return edited


def _content(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            "configuration-syntax", f"{where} is not TOML: {error}", "Correct that line."
        ) from error


def _first_true(text: str, keys: Keys, ways: Iterator[str]) -> str | None:
    """Return the first edited text that says what ``text`` says, and ``keys``; None for none."""
    wanted = _set(tomllib.loads(text), keys)
    if wanted is None:
        return None
    expected = _comparable(wanted)
    windows = "\r\n" in text and not _BARE_NEWLINE.search(text)
    for way in ways:
        edited = _BARE_NEWLINE.sub("\r\n", way) if windows else way
        with suppress(tomllib.TOMLDecodeError):
            if _comparable(tomllib.loads(edited)) == expected:
                return edited
    return None


def _set(content: dict[str, Any], keys: Keys) -> dict[str, Any] | None:
    """Return ``content`` with ``keys`` in it, which is changed; None where one is no table."""
    for path, value in keys.items():
        table: Any = content
        for part in path[:-1]:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                return None
        table[path[-1]] = value
    return content


def _comparable(content: dict[str, Any]) -> str:
    """Return a text that is equal for equal documents: for ``==``, true is 1 and nan isn't nan."""
    return json.dumps(content, sort_keys=True, default=repr)


def _ways_for_all(text: str, keys: Keys) -> Iterator[str]:
    yield from _by_tomlkit(text, keys)


def _ways_for_one(text: str, path: tuple[str, ...], value: float) -> Iterator[str]:
    """Yield the text with one key put where it might belong: most of it is wrong, or not TOML."""
    yield from _by_tomlkit(text, {path: value})
    yield from _by_a_line(text, path, value)
    table, name = _dotted(path[:-1]), _dotted(path[-1:])
    yield f"{_ended(text)}\n[{table}]\n{name} = {value!r}\n"


def _by_tomlkit(text: str, keys: Keys) -> Iterator[str]:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    # TypeError and ValueError are tomlkit's too: for a number where a table should be, and for
    # tables that it doesn't put into inline ones
    with suppress(TOMLKitError, TypeError, ValueError):
        document = tomlkit.parse(text)
        made = [_put(document, path, value) for path, value in keys.items()]
        for table in list(filter(None, made))[-1:]:
            table.add(tomlkit.nl())  # what follows a table of the user's keeps its distance
        edited = tomlkit.dumps(document)
        yield edited if text.endswith("\n\n") else _ended(edited.rstrip("\r\n"))


def _put(table: Any, path: Sequence[str], value: float) -> Any:
    """Set a key, making the tables it needs; return the one it is in where that is new.

    A table that only holds tables gets no header, and one inside an inline table is inline too.
    """
    import tomlkit
    from tomlkit.items import InlineTable

    first, *rest = path
    if not rest:
        table[first] = value
        return None
    inline = isinstance(table, InlineTable)
    made = first not in table
    if made:
        table[first] = (
            tomlkit.inline_table() if inline else tomlkit.table(is_super_table=len(rest) > 1)
        )
    inner = _put(table[first], rest, value)
    return inner or (table[first] if made and not inline and len(rest) == 1 else None)


def _by_a_line(text: str, path: tuple[str, ...], value: float) -> Iterator[str]:
    """Yield the text with a line of a dotted key, ``perfci.rounds = 7``, at each table's end.

    Of the tables that hold it the innermost comes first. What looks like a header inside a
    string is no harm: the text would then say something else, and isn't taken.
    """
    starts = [0, *(found.start() for found in _HEADER.finditer(text))]
    places = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        table = _table_at(text, start)
        if table is not None and path[: len(table)] == table and len(table) < len(path):
            places.append((len(table), start, end))
    for depth, start, end in sorted(places, reverse=True):
        kept = text[start:end].rstrip()
        line = f"{_dotted(path[depth:])} = {value!r}\n"
        after = text[start + len(kept) : end].lstrip("\r\n")
        gap = "\n" if end < len(text) else ""
        yield f"{text[:start]}{_ended(kept)}{line}{gap}{after}{text[end:]}"


def _table_at(text: str, start: int) -> tuple[str, ...] | None:
    """Return the path of the table whose header stands there; none for what is no table's."""
    if start == 0 and not _HEADER.match(text):
        return ()
    try:
        content: Any = tomllib.loads(text[start:].partition("\n")[0])
    except tomllib.TOMLDecodeError:
        return None
    path: list[str] = []
    while isinstance(content, dict) and content:
        ((name, content),) = content.items()
        path.append(name)
    return tuple(path) if content == {} else None


def _dotted(path: Sequence[str]) -> str:
    import tomlkit

    return tomlkit.key(list(path)).as_string()


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _not_editable(where: str, keys: Keys) -> UsageError:
    lines = "\n".join(f"{_dotted(path)} = {value!r}" for path, value in keys.items())
    return UsageError(
        "configuration-not-editable",
        f"perfci knows no way to write these keys into {where} that leaves the rest as it is",
        f"Nothing was written. Add by hand what stands for:\n{lines}",
    )
