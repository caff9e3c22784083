"""The folder put first on the ``PYTHONPATH`` of a worker's Python children.

Each child runs ``sitecustomize.py`` from it, which installs ``perfci_watch``: the child imports its
side's own tree first, and records what it runs. In a child, ``perfci_watch`` is a top-level
package, and the rest of perfci can't be imported.
"""
