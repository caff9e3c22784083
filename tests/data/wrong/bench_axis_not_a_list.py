"""An axis is one value."""
import perfci  # noqa: E402

@perfci.benchmark(batch=16)
def wrong(batch):
    return lambda: None
