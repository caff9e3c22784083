"""A parameter has neither an axis nor a default."""
import perfci

@perfci.benchmark
def wrong(batch):
    return lambda: None
