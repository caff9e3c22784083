"""A parameter has neither an axis nor a default."""
import perfci  # noqa: E402

@perfci.benchmark
def wrong(batch):
    return lambda: None
