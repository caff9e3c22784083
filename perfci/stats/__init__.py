"""PURE maths on floats: tests, effect sizes, quantiles, power. Knows nothing of benchmarks.

Sequences of floats go in, frozen dataclasses come out; warnings are data that travel with them.
Only ``scipy.special`` is imported, at its first use (0.4 s): ``scipy.stats`` takes longer still.
"""
