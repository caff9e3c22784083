"""thresholds names what is no metric."""
import perfci  # noqa: E402

@perfci.benchmark(thresholds={"latency": 0.1})
def wrong():
    return lambda: None
