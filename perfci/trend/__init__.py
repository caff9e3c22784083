"""Pure: histories as series, change points, drift, and the gate's own health."""
