"""From tables to numbers: time series, Wilson loops, fits. Nothing here needs a device."""
