"""A calibration as text, in each of its formats."""
