"""Interpolation along one of three dimensions, as in xarray's issues 10287 and 10683."""

import numpy as np
import xarray as xr

import perfci


@perfci.benchmark
def interp():
    rng = np.random.default_rng(0)
    t, r, z = np.linspace(0, 1, 40), np.linspace(0, 4, 10), np.linspace(-1, 1, 33)
    values = xr.DataArray(
        rng.random((40, 10, 33)), dims=["t", "r", "z"], coords={"t": t, "r": r, "z": z}
    )
    points = xr.DataArray(rng.random(40), dims=["t"], coords={"t": t})
    return lambda: values.interp(z=points)
