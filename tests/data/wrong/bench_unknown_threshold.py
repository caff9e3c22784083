"""thresholds names what is no metric."""
import perfci

@perfci.benchmark(thresholds={"latency": 0.1})
def wrong():
    return lambda: None
