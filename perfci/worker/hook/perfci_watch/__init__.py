"""One process of a side: its own tree is imported first, and what it runs is written down.

Imported by a worker as part of perfci, and by its Python children from ``PYTHONPATH``, where it is
a package of the top level: it imports nothing but itself, and little of the standard library.
"""
