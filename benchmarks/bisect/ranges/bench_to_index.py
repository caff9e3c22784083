"""The index of three coordinates, as in xarray's issue 11305."""

import numpy as np
import xarray as xr

import perfci


@perfci.benchmark
def to_index():
    values = xr.DataArray(np.arange(10 * 200 * 30).reshape(10, 200, 30), name="values")
    return lambda: values.coords.to_index()  # noqa: PLW0108 (the coordinates are made in each call)
