"""WHAT was measured: frozen types and their codec. No I/O.

All but ``codec`` needs the standard library only, because workers import it.
"""
