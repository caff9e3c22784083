"""Raises when it is imported."""
import perfci  # noqa: E402

raise KeyError("no such configuration")
