"""One toy of every kind of thing that gauge-mc can be extended by, a module each."""
