"""The static potential: Wilson loops, plateaus in T, fits in R, forces."""
