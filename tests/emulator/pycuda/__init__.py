"""An emulated PyCUDA: only `pycuda.driver`, and of that what gauge-mc uses."""
