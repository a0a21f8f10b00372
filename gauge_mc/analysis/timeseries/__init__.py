"""Averages of Monte Carlo time series, with errors that include autocorrelation."""

from gauge_mc.analysis.timeseries.bins import kurtosis, susceptibility
from gauge_mc.analysis.timeseries.estimates import Estimate, estimate

__all__ = ["Estimate", "estimate", "kurtosis", "susceptibility"]
