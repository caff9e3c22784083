"""PURE maths on one series: noise, change points, ramps, drift. Knows nothing of benchmarks."""
