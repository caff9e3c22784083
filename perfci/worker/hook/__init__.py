"""The folder put before a side's Python processes: its own tree first, a watch on what runs.

``sitecustomize.py`` brings it into every Python child of a worker, by ``PYTHONPATH``; there
``perfci_watch`` is a package of the top level, and nothing of perfci can be imported.
"""
