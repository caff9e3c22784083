"""Known changes get a state, and a reason if they were withdrawn."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the columns."""
    for name, default in (("state", "open"), ("reason", "")):
        column = Column(name, Text, nullable=False, server_default=default)
        op.add_column("perfci_known_changes", column)
