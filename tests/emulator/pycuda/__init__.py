"""An emulated PyCUDA: the part of `pycuda.driver` that gauge-mc uses."""
