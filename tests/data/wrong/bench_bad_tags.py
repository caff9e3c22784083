"""The tags are one text."""
import perfci

@perfci.benchmark(tags="slow")
def wrong():
    return lambda: None
