"""The runs that plots show: their tables and labels, and the plot that is chosen for them."""
