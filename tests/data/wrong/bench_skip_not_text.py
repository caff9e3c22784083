"""skip returns a truth value instead of a reason."""
import perfci  # noqa: E402

@perfci.benchmark(skip=lambda: True)
def wrong():
    return lambda: None
