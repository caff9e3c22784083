"""The name would break tables and paths."""
import perfci  # noqa: E402

@perfci.benchmark(name="a|b")
def wrong():
    return lambda: None
