"""Keys put into a user's configuration, whose comments, order and spacing stay. Pure.

tomlkit, because it is the one TOML library that writes back what it read (the standard library
only reads); hatchling, which builds perfci, rests on it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfci.config import PROJECT_FILE, parse_config
from perfci.errors import UsageError


def with_keys(text: str, where: str, keys: Mapping[tuple[str, ...], float]) -> str:
    """Return the TOML ``text`` of the file ``where`` with each path of ``keys`` set.

    pyproject.toml gets them under ``[tool.perfci]``, as does any file that has a ``[tool]``.
    UsageError where that is no configuration afterwards.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        own = Path(where).name != PROJECT_FILE and "tool" not in document
        made = [
            _put(document, (*(() if own else ("tool", "perfci")), *path), value)
            for path, value in keys.items()
        ]
        for table in list(filter(None, made))[-1:]:
            table.add(tomlkit.nl())  # what follows a table of the user's keeps its distance
        edited = tomlkit.dumps(document)
        if not text.endswith("\n\n"):
            edited = edited.rstrip("\n") + "\n"
    except (TOMLKitError, TypeError) as error:
        raise UsageError(
            "configuration-not-editable",
            f"{where} can't be edited: {error}",
            "Put the lines shown into it by hand.",
        ) from error
    parse_config(edited, where)
    return edited


def _put(table: Any, path: Sequence[str], value: float) -> Any:
    """Set a key, making the tables it needs; return the one it is in where that is new.

    A table that only holds tables gets no header.
    """
    import tomlkit

    first, *rest = path
    if not rest:
        table[first] = value
        return None
    made = first not in table
    if made:
        table[first] = tomlkit.table(is_super_table=len(rest) > 1)
    return _put(table[first], rest, value) or (table[first] if made and len(rest) == 1 else None)
