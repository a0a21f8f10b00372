"""Live views of runs and scans, in the terminal and in a browser.

A view shows snapshots, which are made from the files of a run, so that any process may carry it
out. Nothing is locked or written.
"""
