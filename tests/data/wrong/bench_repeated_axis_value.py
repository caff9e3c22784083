"""An axis has a value twice."""
import perfci  # noqa: E402

@perfci.benchmark(batch=[1, 1])
def wrong(batch):
    return lambda: None
