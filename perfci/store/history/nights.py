"""What nightly runs ask: which commits failed on a machine, and who is measuring one now."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from perfci.store.history import schema
from perfci.store.history.trouble import translated

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from perfci.store.history.database import Database


def read_pointless(
    connection: Connection, runner: str
) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """Return the sha and the failures of each of ``runner``'s runs that has no point."""
    from sqlalchemy import exists, select

    runs, documents = schema.runs.c, schema.documents.c
    found = connection.execute(
        select(runs.sha, documents.content)
        .join(schema.documents, documents.number == runs.failed)
        .where(runs.runner == runner, ~exists().where(schema.points.c.run == runs.number))
        .order_by(*schema.AS_MEASURED)
    )
    return tuple((sha, json.loads(content)) for sha, content in found)


@contextmanager
def claimed(database: Database, environment: str, sha: str) -> Iterator[bool]:
    """Yield whether nobody else on this PostgreSQL has the commit in the works; then it is ours.

    An advisory lock of a connection that is kept open meanwhile: the server frees it at the end,
    and also when this process is killed, so that no claim has to expire by anybody's clock. It
    needs a session of its own: behind a pooler in transaction mode every claim is granted.
    """
    if database.address.path is not None:  # one machine's, and claimed there
        yield True
        return
    from sqlalchemy import text

    digest = hashlib.sha256(f"{environment}\0{sha}".encode()).digest()
    number = int.from_bytes(digest[:8], signed=True)
    with translated(database):
        connection = database.own_connection()
        mine = connection.execute(text("SELECT pg_try_advisory_lock(:number)"), {"number": number})
        granted = bool(mine.scalar_one())
    try:
        yield granted
    finally:
        connection.close()
