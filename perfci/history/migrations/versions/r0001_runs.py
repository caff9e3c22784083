"""Runs, their environments, series and points."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the first tables."""
    op.create_table(
        "perfci_environments",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
    )
    op.create_table(
        "perfci_documents",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("digest", sa.Text, nullable=False, unique=True),
        sa.Column("content", sa.Text, nullable=False),
    )
    environment = sa.ForeignKey("perfci_environments.number")
    op.create_table(
        "perfci_runs",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("environment", sa.Integer, environment, nullable=False),
        *(
            sa.Column(name, sa.Integer, sa.ForeignKey("perfci_documents.number"), nullable=False)
            for name in ("facts", "source_hashes", "failed")
        ),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("source", "sha", "subject", "branch", "committed_at", "measured_at")
        ),
        sa.Column("position", sa.Integer),
        sa.Column("runner", sa.Text, nullable=False),
    )
    op.create_table(
        "perfci_series",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column(
            "environment", sa.Integer, sa.ForeignKey("perfci_environments.number"), nullable=False
        ),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("case", "metric", "unit", "direction")
        ),
        sa.UniqueConstraint("environment", "case", "metric", "unit", "direction"),
    )
    for table, column in (
        ("perfci_points", sa.Column("value", sa.Double, nullable=False)),
        ("perfci_worker_values", sa.Column("packed", sa.LargeBinary, nullable=False)),
    ):
        op.create_table(
            table,
            sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("series", sa.Integer, primary_key=True, autoincrement=False),
            column,
            sqlite_with_rowid=False,
        )
