"""Returns the result instead of the callable."""
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    return 42
