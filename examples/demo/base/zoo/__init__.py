"""Three small models."""

from zoo.attention import Attention
from zoo.gate import Gate
from zoo.mixer import Mixer

__all__ = ["Attention", "Gate", "Mixer"]
