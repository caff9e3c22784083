"""Gives metrics that are numbers, but none that can be computed with."""
import sys
import perfci

@perfci.benchmark
def enormous():
    return (
        lambda: None,
        perfci.metric("largest", lambda: sys.float_info.max),
        perfci.metric("smallest", lambda: 5e-324),
        perfci.metric("exactly", lambda: -sys.float_info.max, exact=True),
    )
