"""Ends the loader workers of a script that has ended, or is stopped between two batches.

torch ends workers when their iterator is deleted. But a loop at the script's top level, or a loader with
persistent workers, keeps its iterator until the interpreter exits. There torch waits up to five seconds for
each worker in turn. With twelve workers that is a minute, which is the script's time limit.
"""

from __future__ import annotations

import contextlib
import gc
import sys


def end() -> None:
    """End the workers of all remaining iterators, as deleting those would. Called after the script's last
    line.

    If the script iterates a loader again, for example at exit, the loader makes a new iterator.
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
