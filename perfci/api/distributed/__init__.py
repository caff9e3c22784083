"""Ranks of a process group as work."""
