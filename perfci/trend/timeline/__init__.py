"""Recorded runs in the order of their commits, as one series a case and metric."""
