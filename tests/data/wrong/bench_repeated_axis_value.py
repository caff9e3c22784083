"""An axis has a value twice."""
import perfci

@perfci.benchmark(batch=[1, 1])
def wrong(batch):
    return lambda: None
