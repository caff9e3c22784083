"""Returns the result instead of the callable."""
import perfci

@perfci.benchmark
def misbehaving():
    return 42
