"""ids names an axis that there isn't."""
import perfci

@perfci.benchmark(ids={"bathc": ["one"]}, batch=[1])
def wrong(batch):
    return lambda: None
