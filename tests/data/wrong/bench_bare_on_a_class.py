"""The decorator stands on a class, without parentheses."""
import perfci  # noqa: E402

@perfci.benchmark
class Encoder:
    pass
