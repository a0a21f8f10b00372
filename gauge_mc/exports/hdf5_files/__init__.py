"""Files in HDF5."""
