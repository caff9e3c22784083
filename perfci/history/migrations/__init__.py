"""Alembic's steps from each revision of the history's tables to the next."""
