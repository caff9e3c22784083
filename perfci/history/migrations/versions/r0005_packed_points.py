"""A run's points as one row: a report reads all, and a row for each took most of its time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from perfci.history.schema import pack_points

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Pack the points run by run."""
    packed = op.create_table(
        "perfci_run_points",
        sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("packed", sa.LargeBinary, nullable=False),
    )
    connection = op.get_bind()
    found = sa.text("SELECT series, value FROM perfci_points WHERE run = :run ORDER BY series")
    runs = connection.execute(sa.text("SELECT number FROM perfci_runs")).scalars().all()
    for run in runs:
        rows = connection.execute(found, {"run": run}).all()
        if rows:
            content = pack_points(*zip(*rows, strict=True))
            connection.execute(packed.insert().values(run=run, packed=content))
    op.drop_table("perfci_points")
