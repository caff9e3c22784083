"""skip returns a truth value instead of a reason."""
import perfci

@perfci.benchmark(skip=lambda: True)
def wrong():
    return lambda: None
