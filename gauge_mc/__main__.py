"""Run ``gauge-mc`` as ``python -m gauge_mc``."""

from gauge_mc.cli import main

main()
