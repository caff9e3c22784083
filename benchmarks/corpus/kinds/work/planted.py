"""The shares by which this commit is worse. The recorder writes them."""

SHARES = {"latency": 0.0, "tails": 0.0, "memory": 0.0, "start": 0.0}


def units(count, what="latency"):
    """Return ``count`` units of work, and as many more as are planted."""
    return round(count * (1.0 + SHARES[what]))
