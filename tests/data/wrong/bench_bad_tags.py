"""The tags are one text."""
import perfci  # noqa: E402

@perfci.benchmark(tags="slow")
def wrong():
    return lambda: None
