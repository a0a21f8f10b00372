"""Tables that show the results of fits on a terminal."""
