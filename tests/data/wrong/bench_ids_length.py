"""There are fewer ids than values."""
import perfci  # noqa: E402

@perfci.benchmark(ids={"batch": ["one"]}, batch=[1, 16])
def wrong(batch):
    return lambda: None
