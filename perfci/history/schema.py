"""The history's tables, and how numbers are packed in them.

Names begin with ``perfci_``, because a team's PostgreSQL holds other things as well. The database
gives numbers to runs and series. They are valid in this database only, and are never shown or
exported.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

SCHEMA = 2
"""Number of this schema. It changes with the tables: a history of another number is refused."""
CREATION_LOCK = 7_305_410_326
"""Number of the advisory lock that a PostgreSQL server gives to one creator of tables at a time."""
POINT_BYTES = 12
"""Size of a packed point: 4 bytes for the number of its series, and 8 for its value."""


metadata = MetaData()
version = Table(
    "perfci_schema",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
)
"""One row: the schema's number."""
project = Table(
    "perfci_project",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
)
"""One row: the project that first recorded here. Series don't name a project, or every query would
have to. A database or a schema for each project separates them as well."""
documents = Table(
    "perfci_documents",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),
    Column("content", Text, nullable=False),
)
"""JSON objects, each stored once, because an environment's facts and the benchmarks' source hashes
are mostly the same from run to run."""
runs = Table(
    "perfci_runs",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("environment", Text, nullable=False, index=True),
    Column("facts", ForeignKey("perfci_documents.number"), nullable=False),
    Column("source_hashes", ForeignKey("perfci_documents.number"), nullable=False),
    Column("failed", ForeignKey("perfci_documents.number"), nullable=False),
    Column("source", Text, nullable=False),
    Column("sha", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("branch", Text, nullable=False),
    Column("committed_at", Text, nullable=False),
    Column("measured_at", Text, nullable=False),
    Column("position", Integer),
    Column("runner", Text, nullable=False),
)
AS_MEASURED = (runs.c.measured_at, runs.c.id)
"""The order of measuring. Runs of the same second have the same order in every database."""
series = Table(
    "perfci_series",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("environment", Text, nullable=False),
    Column("case", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("unit", Text, nullable=False),
    Column("direction", Text, nullable=False),
    UniqueConstraint("environment", "case", "metric", "unit", "direction"),
)
# All points of a run are packed in one row, by ``pack_points``: a report reads all points, and
# reading a row for each of 36 million takes 16 s. There is no foreign key, because points are only
# removed together with their run.
run_points = Table(
    "perfci_run_points",
    metadata,
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("packed", LargeBinary, nullable=False),
)
outcomes = Table(
    "perfci_outcomes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("command", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("runner", Text, nullable=False),
    Column("base_sha", Text, nullable=False),
    Column("head_sha", Text, nullable=False),
    Column("same", Boolean, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("comparisons", Integer, nullable=False),
    Column("regressed", Integer, nullable=False),
    Column("inconclusive", Integer, nullable=False),
)
known_changes = Table(
    "perfci_known_changes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("environment", Text, nullable=False),
    Column("case", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("sha_before", Text, nullable=False),
    Column("sha_after", Text, nullable=False),
    Column("worse", Boolean, nullable=False),
    Column("first_seen_at", Text, nullable=False),
    Column("acknowledged", Boolean, nullable=False),
    Column("note", Text, nullable=False),
    Column("event", Text, nullable=False, index=True),
    Column("withdrawn", Boolean, nullable=False),
)


class NotPacked(ValueError):
    """Content of the database that perfci can't have written."""


def document(content: str | None) -> dict[str, str]:
    """Return the content of a row of ``documents``. NotPacked if the row is missing or damaged."""
    try:
        return dict(json.loads(content or ""))
    except (TypeError, ValueError) as error:
        raise NotPacked("a run's document is missing or damaged") from error


def pack_points(series: Sequence[int], values: Sequence[float]) -> bytes:
    """Return the numbers of all series as little-endian int32, then their values as float64."""
    return struct.pack(f"<{len(series)}i{len(values)}d", *series, *values)


def unpacked_points(packed: bytes) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return what ``pack_points`` packed. NotPacked for anything else."""
    count = count_points(packed)
    numbers = struct.unpack(f"<{count}i{count}d", packed)
    return numbers[:count], numbers[count:]


def count_points(packed: bytes) -> int:
    """Return how many points were packed. NotPacked if a part of a point is left over."""
    count, rest = divmod(len(packed), POINT_BYTES)
    if rest:
        raise NotPacked("a run's points are cut short")
    return count
