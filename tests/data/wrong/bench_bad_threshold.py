"""A threshold is below zero."""
import perfci  # noqa: E402

@perfci.benchmark(thresholds={"latency_p50": -0.1})
def wrong():
    return lambda: None
