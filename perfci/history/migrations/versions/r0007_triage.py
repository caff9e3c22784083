"""Known changes get the resolution that people chose, and the person they are assigned to."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns."""
    for name in ("resolution", "assignee"):
        column = Column(name, Text, nullable=False, server_default="")
        op.add_column("perfci_known_changes", column)
