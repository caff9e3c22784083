"""HOW a benchmark is written and found. Standard library only; torch where a benchmark asks.

Definitions raise ``BenchmarkError`` with file and line. Nothing here measures or prints.
"""
