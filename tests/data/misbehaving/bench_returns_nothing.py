"""Forgets to return the callable."""
import perfci

@perfci.benchmark
def misbehaving():
    lambda: 1
