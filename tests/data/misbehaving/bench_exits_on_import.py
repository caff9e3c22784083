"""Calls sys.exit when it is imported."""
import sys  # noqa: E402

sys.exit(3)
