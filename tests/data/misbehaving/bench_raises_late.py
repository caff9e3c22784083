"""Works, until it doesn't."""
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    calls = iter(range(40))
    return lambda: next(calls)
