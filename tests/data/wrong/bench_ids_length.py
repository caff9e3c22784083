"""There are fewer ids than values."""
import perfci

@perfci.benchmark(ids={"batch": ["one"]}, batch=[1, 16])
def wrong(batch):
    return lambda: None
