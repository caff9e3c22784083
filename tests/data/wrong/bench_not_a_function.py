"""The decorator stands on a class."""
import perfci  # noqa: E402

@perfci.benchmark()
class Encoder:
    pass
