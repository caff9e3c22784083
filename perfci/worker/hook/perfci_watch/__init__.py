"""Makes a side's process import its own tree first, and records what the process runs.

A worker imports this package as part of perfci. The worker's Python children import it from
``PYTHONPATH``, as a top-level package. So it imports nothing else of perfci, and little of the
standard library.
"""
