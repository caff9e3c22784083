"""The decorator stands on a class, without parentheses."""
import perfci

@perfci.benchmark
class Encoder:
    pass
