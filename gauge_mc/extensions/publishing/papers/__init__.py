"""Published tables and figures, carried out again and compared.

A card is a TOML file with ensembles, what is taken from them by averages and fits, and the
published numbers. It contains data only, so that a paper needs no code.
"""
