"""Removing runs, with what only they needed."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from perfci.store.history import schema

if TYPE_CHECKING:
    from sqlalchemy import Connection


def remove_runs(connection: Connection, run_ids: Collection[str]) -> int:
    """Remove the runs, their points and the documents that no run refers to any more.

    Environments and series stay: a series without points is a name, and may get points again.
    """
    from sqlalchemy import delete, select, union

    runs, documents = schema.runs, schema.documents
    numbers = [
        number
        for run in run_ids
        for number in connection.execute(select(runs.c.number).filter_by(id=run)).scalars()
    ]
    for number in numbers:
        for table in (schema.points, schema.worker_values):
            connection.execute(delete(table).where(table.c.run == number))
        connection.execute(delete(runs).where(runs.c.number == number))
    used = union(
        *(select(column) for column in (runs.c.facts, runs.c.source_hashes, runs.c.failed))
    )
    connection.execute(delete(documents).where(documents.c.number.not_in(used)))
    return len(numbers)
