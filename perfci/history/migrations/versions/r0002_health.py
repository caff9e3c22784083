"""Outcomes of reports, known changes, and an index of an environment's runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the tables, and the index that finds an environment's runs."""
    op.create_table(
        "perfci_outcomes",
        sa.Column("id", sa.Text, primary_key=True),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("command", "created_at", "environment", "runner", "base_sha", "head_sha")
        ),
        sa.Column("same", sa.Boolean, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        *(
            sa.Column(name, sa.Integer, nullable=False)
            for name in ("comparisons", "regressed", "inconclusive")
        ),
    )
    op.create_table(
        "perfci_known_changes",
        sa.Column("id", sa.Text, primary_key=True),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("environment", "case", "metric", "sha_before", "sha_after")
        ),
        sa.Column("worse", sa.Boolean, nullable=False),
        sa.Column("first_seen_at", sa.Text, nullable=False),
        sa.Column("acknowledged", sa.Boolean, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
    )
    op.create_index("ix_perfci_runs_environment", "perfci_runs", ["environment"])
