"""Linear operators of even-odd systems: the hopping term and what is diagonal in the sites."""
