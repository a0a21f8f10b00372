"""An independent reference in plain NumPy for everything that gauge-mc's kernels compute.

Written from the definitions, for clarity and not for speed: whole fields as complex128 arrays
``U[t, z, y, x, mu, a, b]``, neighbours by `numpy.roll`. It shares no code with the package.
"""
