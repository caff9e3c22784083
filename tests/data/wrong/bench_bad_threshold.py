"""A threshold is below zero."""
import perfci

@perfci.benchmark(thresholds={"latency_p50": -0.1})
def wrong():
    return lambda: None
