"""What alembic runs for a migration: on the connection, and in the transaction, it is handed."""

from __future__ import annotations

from alembic import context

from perfci.history.schema import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
