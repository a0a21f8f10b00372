"""Parts that several fits have: options, the tables of runs, and files of results."""
