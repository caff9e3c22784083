"""The tables of the first release."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, ForeignKey, Integer, LargeBinary, Text, UniqueConstraint

revision = "0005"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table("perfci_project", _number("number"), *_texts("name"))
    op.create_table("perfci_environments", _key(), _unique("key"))
    op.create_table("perfci_documents", _key(), _unique("digest"), *_texts("content"))
    op.create_table(
        "perfci_runs",
        _key(),
        _unique("id"),
        _reference("environment", "perfci_environments", index=True),
        *(_reference(name, "perfci_documents") for name in ("facts", "source_hashes", "failed")),
        *_texts("source", "sha", "subject", "branch", "committed_at", "measured_at"),
        Column("position", Integer),
        *_texts("runner"),
    )
    op.create_table(
        "perfci_series",
        _key(),
        _reference("environment", "perfci_environments"),
        *_texts("case", "metric", "unit", "direction"),
        UniqueConstraint("environment", "case", "metric", "unit", "direction"),
    )
    op.create_table("perfci_run_points", _number("run"), _packed())
    op.create_table(
        "perfci_worker_values",
        *(_number("run"), _number("series"), _packed()),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "perfci_outcomes",
        Column("id", Text, primary_key=True),
        *_texts("command", "created_at", "environment", "runner", "base_sha", "head_sha"),
        Column("same", Boolean, nullable=False),
        *_texts("verdict"),
        *(
            Column(name, Integer, nullable=False)
            for name in ("comparisons", "regressed", "inconclusive")
        ),
    )
    op.create_table(
        "perfci_known_changes",
        Column("id", Text, primary_key=True),
        *_texts("environment", "case", "metric", "sha_before", "sha_after"),
        Column("worse", Boolean, nullable=False),
        *_texts("first_seen_at"),
        Column("acknowledged", Boolean, nullable=False),
        *_texts("note"),
        Column("event", Text, nullable=False, server_default="", index=True),
    )


def _key() -> Column[int]:
    return Column("number", Integer, primary_key=True)


def _number(name: str) -> Column[int]:
    return Column(name, Integer, primary_key=True, autoincrement=False)


def _reference(name: str, table: str, *, index: bool = False) -> Column[int]:
    return Column(name, Integer, ForeignKey(f"{table}.number"), nullable=False, index=index)


def _packed() -> Column[bytes]:
    return Column("packed", LargeBinary, nullable=False)


def _unique(name: str) -> Column[str]:
    return Column(name, Text, nullable=False, unique=True)


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]
