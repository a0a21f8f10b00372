"""Wilson loops, correlators of Polyakov loops, and the static potential from them."""
