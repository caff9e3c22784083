"""An axis has no values."""
import perfci

@perfci.benchmark(batch=[])
def wrong(batch):
    return lambda: None
