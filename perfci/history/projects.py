"""Whose history it is: the first project that records keeps others out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfci.history import schema
from perfci.history.recording import insert_into

if TYPE_CHECKING:
    from sqlalchemy import Connection

_ONLY = 1


def name_project(connection: Connection, project: str) -> str:
    """Return the project of this history: ``project`` where there was none."""
    from sqlalchemy import select

    table = schema.project
    connection.execute(
        insert_into(connection, table)
        .values(number=_ONLY, name=project)
        .on_conflict_do_nothing(index_elements=["number"])
    )
    return str(connection.execute(select(table.c.name)).scalar_one())
