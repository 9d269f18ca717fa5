"""Numbers of a format, as float64."""

import math
from typing import Any

import numpy as np

from nceref.tolerance.implementation import FORMATS


def rounded(x: Any, dtype: str) -> Any:
    """A float or a float array rounded to nearest in the format `dtype`, as float64; everything else as it is.

    Beyond the largest number of the format it is infinite.
    """
    is_array = isinstance(x, np.ndarray) and x.dtype.kind == "f"
    if not is_array and (isinstance(x, bool) or not isinstance(x, float)):
        return x
    storage = FORMATS[dtype].storage
    exponent = np.frexp(np.asarray(x, dtype=np.float64))[1]
    # One unit in the last place, which stops shrinking below the smallest normal number.
    unit = np.ldexp(2 * storage.u, np.maximum(exponent - 1, round(math.log2(storage.tiny))))
    near = np.rint(x / unit) * unit
    near = np.where(np.abs(near) > storage.largest, np.copysign(np.inf, near), near)
    return near if is_array else float(near)
