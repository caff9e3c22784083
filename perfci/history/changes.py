"""What the history holds besides runs: known changes, the gate's outcomes, its project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import Connection, case, or_, select, update

from perfci.errors import UsageError
from perfci.history import schema
from perfci.history.database import insert_into
from perfci.model.history import GateOutcome
from perfci.trend.change import KnownChange
from perfci.trend.timeline.series import SeriesKey

_SHORTEST = 4


def write_outcome(connection: Connection, outcome: GateOutcome) -> bool:
    """Write ``outcome`` and return True, or False where its id is there already."""
    table = schema.outcomes
    written = connection.execute(
        insert_into(connection, table)
        .values(**asdict(outcome))
        .on_conflict_do_nothing(index_elements=["id"])
        .returning(table.c.id)
    )
    return written.first() is not None


def read_outcomes(connection: Connection) -> tuple[GateOutcome, ...]:
    """Return every outcome, the oldest first."""
    table = schema.outcomes
    rows = connection.execute(select(table).order_by(table.c.created_at, table.c.id))
    return tuple(GateOutcome(**row) for row in rows.mappings())


def read_changes(connection: Connection) -> tuple[KnownChange, ...]:
    """Return every change that was remembered, in the order of when it was first seen."""
    table = schema.known_changes
    rows = connection.execute(select(table).order_by(table.c.first_seen_at, table.c.id))
    return tuple(
        KnownChange(
            id=row.id,
            series=SeriesKey(row.environment, row.case, row.metric),
            sha_before=row.sha_before,
            sha_after=row.sha_after,
            worse=row.worse,
            first_seen_at=row.first_seen_at,
            acknowledged=row.acknowledged,
            note=row.note,
            event=row.event,
        )
        for row in rows
    )


def write_changes(connection: Connection, changes: Sequence[KnownChange]) -> None:
    """Write what an analysis saw.

    Of a change that is there already, its place is renewed. When it was first seen stays, and so
    do an acknowledgement and its note: what is imported may be older than they are.
    """
    if not changes:
        return
    table = schema.known_changes
    statement = insert_into(connection, table)
    new = statement.excluded
    place = ("environment", "case", "metric", "sha_before", "sha_after", "worse", "event")
    renewed = {name: new[name] for name in place} | {
        "acknowledged": or_(table.c.acknowledged, new.acknowledged),
        "note": case((table.c.note != "", table.c.note), else_=new.note),
    }
    connection.execute(
        statement.on_conflict_do_update(index_elements=["id"], set_=renewed),
        [
            {
                "id": one.id,
                **one.series._asdict(),
                "sha_before": one.sha_before,
                "sha_after": one.sha_after,
                "worse": one.worse,
                "first_seen_at": one.first_seen_at,
                "acknowledged": one.acknowledged,
                "note": one.note,
                "event": one.event,
            }
            for one in sorted(changes, key=lambda one: one.id)
        ],
    )


def try_changes(connection: Connection, changes: Sequence[KnownChange]) -> None:
    """Do what ``write_changes`` does, and take it back: rights, locks and room are as then."""
    with connection.begin_nested() as tried:
        write_changes(connection, changes)
        tried.rollback()


def acknowledge_change(
    connection: Connection, given: str, note: str, *, accepted: bool = True
) -> str:
    """Mark the change whose id is, or alone begins with, ``given``; return its id.

    The id of an event stands for all of its changes.

    Accepted again without a note, it keeps the one that it has.
    """
    table = schema.known_changes
    rows = connection.execute(
        select(table.c.id, table.c.event).order_by(table.c.first_seen_at)
    ).all()
    every = tuple(dict.fromkeys(id_ for row in rows for id_ in row if id_))
    begin = [one for one in every if one.startswith(given)] if len(given) >= _SHORTEST else []
    found = [given] if given in every else begin
    if len(found) != 1:
        known = f"Known: {', '.join(every[-5:])}." if every else "No change is known yet."
        raise UsageError(
            "unknown-change",
            f"`{given}` is the beginning of {len(found)} changes' ids"
            if found
            else f"no change has the id `{given}`",
            f"`perfci trend` names each change's id. {known}",
        )
    kept = table.c.note if accepted and not note else note
    connection.execute(
        update(table)
        .where(or_(table.c.id == found[0], table.c.event == found[0]))
        .values(acknowledged=accepted, note=kept)
    )
    return found[0]


# Whose history it is: the first project that records keeps others out.


def name_project(connection: Connection, project: str) -> str:
    """Return the project of this history: ``project`` where there was none."""
    table = schema.project
    connection.execute(
        insert_into(connection, table)
        .values(number=1, name=project)
        .on_conflict_do_nothing(index_elements=["number"])
    )
    return str(connection.execute(select(table.c.name)).scalar_one())
