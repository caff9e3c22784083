"""The timeout is zero."""
import perfci  # noqa: E402

@perfci.benchmark(timeout=0)
def wrong():
    return lambda: None
