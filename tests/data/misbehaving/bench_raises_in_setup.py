"""Raises before it returns its work."""
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    raise FileNotFoundError("weights.pt")
