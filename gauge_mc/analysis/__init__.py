"""Analysis of time series: estimates, loops, the static potential and plots; no device."""
