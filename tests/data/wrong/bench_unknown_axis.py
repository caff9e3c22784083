"""ids names an axis that there isn't."""
import perfci  # noqa: E402

@perfci.benchmark(ids={"bathc": ["one"]}, batch=[1])
def wrong(batch):
    return lambda: None
