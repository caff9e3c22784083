"""The function doesn't take the axis."""
import perfci

@perfci.benchmark(batch=[1])
def wrong(bathc=1):
    return lambda: None
