"""A small library whose code stays as it is."""
