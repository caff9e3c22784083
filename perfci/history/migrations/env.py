"""Alembic's environment. It migrates in the connection and transaction that it is given."""

from __future__ import annotations

from alembic import context

from perfci.history.schema import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
