"""Works, until it doesn't."""
import perfci

@perfci.benchmark
def misbehaving():
    calls = iter(range(40))
    return lambda: next(calls)
