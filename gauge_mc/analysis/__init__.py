"""Analysis of tables: time series, Wilson loops, fits and figures. It needs no device."""
