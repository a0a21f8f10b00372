"""The Polyakov loop."""

from __future__ import annotations

from gauge_mc.field import Field
from gauge_mc.observables.sums import lattice_sums


def polyakov_loop(field: Field) -> complex:
    """Measure Tr prod_t U_t(x, t) / N, averaged over the spatial lattice.

    Returns
    -------
    complex
        |P| <= 1; for SU(2), whose traces are real, the imaginary part is 0.
    """
    lines = int(field.group[2]) * field.lattice.sites // field.lattice.t
    re, im = lattice_sums(field, "polyakov", 2, slices=1) / lines
    return complex(re, im)
