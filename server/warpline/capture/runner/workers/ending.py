"""The loader workers of a script that has ended, or is stopped between two batches.

torch ends them when the iterator is dropped. A loop at the script's top level keeps its iterator until
the interpreter goes, as a loader with persistent workers does, and there torch waits up to five seconds for
each worker in turn: with twelve of them a minute, which is the script's time limit.
"""

from __future__ import annotations

import contextlib
import gc
import sys


def end() -> None:
    """What dropping the iterators would do, for all that are left. Called once the script is unwound.

    A loader that kept its iterator makes a new one should the script iterate it again, at exit say.
    """
    loader = sys.modules.get("torch.utils.data.dataloader")
    processes = sys.modules.get("multiprocessing")
    if loader is None or processes is None or not processes.active_children():
        return
    for thing in gc.get_objects():
        if type(thing) is loader._MultiProcessingDataLoaderIter:
            with contextlib.suppress(Exception):  # torch's own way: what fails there was failing before
                thing._shutdown_workers()
        elif issubclass(type(thing), loader.DataLoader):
            with contextlib.suppress(Exception):  # a class of the user's
                thing._iterator = None
