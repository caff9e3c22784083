"""Raises before it returns its work."""
import perfci

@perfci.benchmark
def misbehaving():
    raise FileNotFoundError("weights.pt")
