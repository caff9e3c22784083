"""Raises when it is imported."""
import perfci

raise KeyError("no such configuration")
