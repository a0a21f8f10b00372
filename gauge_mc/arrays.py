"""Types of NumPy arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Real numbers in double precision."""

Integers = NDArray[np.int64]
"""Whole numbers."""
