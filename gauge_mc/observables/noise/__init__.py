"""Reduction of the noise of lines along t: multilevel averages and multihit."""
