"""Benchmarks that take little time."""

from functools import partial

from gauge_mc.benchmarks import timing

TINY = ("--lattice", "4x4x4x4", "--seconds", "0.05")
ON_CPU = (*TINY, "--backend", "cpu", "--threads", "1")


HEADING = ("command", "version", "vocabulary")
"""Keys of every document."""


def only(monkeypatch, module, registry, names):
    """Let a module know these elements of a registry alone."""
    few = {name: getattr(module, registry)[name] for name in names}
    monkeypatch.setattr(module, registry, few)
    return few


def small_copies(monkeypatch):
    """Copy small fields, for a short time."""
    monkeypatch.setattr(timing, "COPY_EXTENT", 4)
    short = partial(timing.copy_bandwidth, seconds=0.01)
    monkeypatch.setattr(timing, "copy_bandwidth", short)
