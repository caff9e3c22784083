"""The history: recorded runs in SQLite or PostgreSQL, and what is remembered of their changes.

It stores and hands out; it never judges. Damage is an error, never an empty history.
"""
