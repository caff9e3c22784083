"""The event that a change was reported with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add a column, which is empty for changes that were reported before."""
    op.add_column(
        "perfci_known_changes", sa.Column("event", sa.Text, nullable=False, server_default="")
    )
    op.create_index("ix_perfci_known_changes_event", "perfci_known_changes", ["event"])
