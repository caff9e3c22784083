"""The history's tables, and what their packed columns hold.

Names begin with ``perfci_``, because a team's PostgreSQL holds other things as well. The database
gives numbers to documents. They are valid in this database only, and are never shown or exported.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

from perfci.model.case import Direction
from perfci.model.run import Environment

SCHEMA = 3
"""Number of this schema. It changes with the tables: a history of another number is refused."""
CREATION_LOCK = 7_305_410_326
"""Number of the advisory lock that a PostgreSQL server gives to one creator of tables at a time."""

metadata = MetaData()
schema = Table(
    "perfci_schema",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("project", Text),
)
"""One row: the schema's number, and the project that first recorded here. Series don't name a
project, or every query would have to."""
documents = Table(
    "perfci_documents",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),
    Column("content", LargeBinary, nullable=False),
)
"""A ``Document`` as JSON, stored once, because it is mostly the same from run to run."""
runs = Table(
    "perfci_runs",
    metadata,
    *(
        Column(name, Text, nullable=False)
        for name in ("source", "sha", "subject", "branch", "committed_at", "measured_at", "runner")
    ),
    Column("id", Text, primary_key=True),
    Column("position", Integer),
    Column("environment", Text, nullable=False, index=True),
    Column("document", ForeignKey("perfci_documents.number"), nullable=False),
    Column("packed", LargeBinary, nullable=False),
)
"""``packed`` has the float64 of the document's ``series``, in their order. A report reads all
points, and reading a row for each of 36 million takes 16 s."""
AS_MEASURED = (runs.c.measured_at, runs.c.id)
"""The order of measuring. Runs of the same second have the same order in every database."""
known_changes = Table(
    "perfci_known_changes",
    metadata,
    Column("id", Text, primary_key=True),
    *(
        Column(name, Text, nullable=False)
        for name in (
            "environment", "case", "metric", "sha_before", "sha_after", "first_seen_at", "note",
        )
    ),
    *(Column(name, Boolean, nullable=False) for name in ("worse", "acknowledged", "withdrawn")),
    Column("event", Text, nullable=False, index=True),
)  # fmt: skip


class NotPacked(ValueError):
    """Content of the database that perfci can't have written."""


class SeriesName(NamedTuple):
    """The identity of a series within its environment."""

    case: str
    metric: str
    unit: str
    direction: Direction


class Document(msgspec.Struct, frozen=True):
    """Everything about a run that the next run mostly repeats."""

    environment: Environment
    source_hashes: dict[str, str]
    failed: dict[str, str]
    series: tuple[SeriesName, ...]


def document(content: bytes | None) -> Document:
    """Return the content of a row of ``documents``. NotPacked if the row is missing or damaged."""
    try:
        return msgspec.json.decode(content or b"", type=Document)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotPacked("a run's document is missing or damaged") from error


def pack(values: Sequence[float]) -> bytes:
    """Return values as little-endian float64."""
    return struct.pack(f"<{len(values)}d", *values)


def require_packed(values: bytes, series: Sequence[SeriesName]) -> bytes:
    """Return ``values``. NotPacked unless there is one for each of ``series``."""
    if len(values) != 8 * len(series):
        raise NotPacked("a run's points are cut short")
    return values


def unpack(values: bytes, series: Sequence[SeriesName]) -> dict[SeriesName, float]:
    """Return the value of each of ``series``, from what ``pack`` packed."""
    numbers = struct.unpack(f"<{len(series)}d", require_packed(values, series))
    return dict(zip(series, numbers, strict=True))
