"""One run: its parameters, its directory, its chain, and what is done with it."""
