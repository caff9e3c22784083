"""Pure: a noisy search for the commits at which a metric changed. Knows no git and no session.

Positions count commits after the good one: 0 is good, the last is bad. A change is a log ratio, or
a difference for metrics that may be zero, of a commit against good.
"""
