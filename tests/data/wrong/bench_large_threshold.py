"""A threshold of 5 %, written as 500 %."""
import perfci

@perfci.benchmark(thresholds={"latency_p50": 5})
def wrong():
    return lambda: None
