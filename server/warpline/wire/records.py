"""``lines.bin``, ``inside.bin``: little-endian int64 pairs ``(time_ns, thread << THREAD_SHIFT | place)``."""

from __future__ import annotations

#: The lower half of a pair's second number is the location, the upper half the thread's index.
THREAD_SHIFT = 32
PAIR_BYTES = 16
#: Set in a location when Python came back to a line that it had begun before.
AGAIN = 1 << 31
