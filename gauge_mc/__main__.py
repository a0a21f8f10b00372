"""``python -m gauge_mc`` is ``gauge-mc``."""

from gauge_mc.cli import main

main()
