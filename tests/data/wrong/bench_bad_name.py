"""The name would break tables and paths."""
import perfci

@perfci.benchmark(name="a|b")
def wrong():
    return lambda: None
