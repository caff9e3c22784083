"""An axis has no values."""
import perfci  # noqa: E402

@perfci.benchmark(batch=[])
def wrong(batch):
    return lambda: None
