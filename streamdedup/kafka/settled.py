"""Python as a service of big batches wants it; `Owner` judges inside of this.

By default it is set for small programs: the collector looks through all records of a batch for
cycles, again and again, and there are none; a thread that comes back from compiled code waits five
milliseconds for the other to give way, and a batch has a hundred such moments.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_COLLECT_AT = (1_000_000, 20, 50)
_SWITCH_SECONDS = 0.0002


@contextmanager
def settled() -> Iterator[None]:
    """For as long as it lasts."""
    thresholds, switch_seconds = gc.get_threshold(), sys.getswitchinterval()
    gc.collect()
    gc.freeze()  # what is there now stays, and is not looked through again
    gc.set_threshold(*_COLLECT_AT)
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(switch_seconds)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
