"""Memory that the script's tensors find while the profiler takes what they gave back."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from ....wire.memory import free_bytes

#: What is taken, and at most so much of the free memory. With 64 MB the peak of a process with 75,000
#: captured events was as without (398 and 401 MB), with 256 MB it was 566 MB.
BYTES, SHARE = 64 << 20, 0.125
#: Each piece is smaller than what the C library asks the system for by itself (128 KB).
PIECE = 100 << 10
#: What a new page takes at least, in ns (measured: 250 to 1,700), and the share of the step from which on new
#: pages are the script's own habit. Chosen.
PAGE_NS, OWN = 250, 0.01


class Reserve:
    """Memory of the C library that has been written before, and is free.

    For each operator the profiler keeps some small pieces of memory. They come out of the blocks that the
    script's tensors have given back, so that the next tensors, which are larger, need new memory. The system
    clears each page of that when it is first touched. Of a network on 512 rows of 48 numbers, a step
    without the profiler touched no new page, and with it 4,000, which was more than half of the step's time.
    """

    def __init__(self) -> None:
        self._library: Any = None
        self._last = 0  # a piece that is kept, so that the others are not given back to the system

    def take(self) -> None:
        """Make the pieces, which lie side by side, write them and set them free."""
        free = free_bytes()
        if self._last or free is None or not sys.platform.startswith("linux"):
            return
        library = self._library = ctypes.CDLL(None)
        library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        library.free.restype, library.free.argtypes = None, [ctypes.c_void_p]
        pieces = [library.malloc(PIECE) for _ in range(int(min(BYTES, SHARE * free)) // PIECE)]
        self._last = library.malloc(PIECE) or 0
        for piece in filter(None, pieces):
            ctypes.memset(piece, 0, PIECE)
            library.free(piece)

    def give_back(self) -> None:
        """The recording is over."""
        if self._last:
            self._library.free(self._last)
            self._last = 0


def is_missed(pages_a_step: float, step_ns: float) -> bool:
    """Whether steps touch so few new pages that those of a recording would be the profiler's doing."""
    return pages_a_step * PAGE_NS < OWN * step_ns
