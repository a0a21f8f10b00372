"""How long tests wait for something.

A machine may be slow or busy: no test passes or fails by the time that it takes, and the limit only
ends a test whose program hangs.
"""

import time

PATIENCE = 600.0
"""Time in seconds after which what a test waits for does not come any more."""


def wait_for(event):
    """Wait until something has happened, and return what the function says of it."""
    deadline = time.monotonic() + PATIENCE
    while not (found := event()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return found
