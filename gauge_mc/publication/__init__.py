"""Publication of runs: a folder for a data repository, from which configurations are made again."""
