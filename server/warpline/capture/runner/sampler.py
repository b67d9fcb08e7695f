"""Which line each thread is at, looked up every few milliseconds, profiler and line events off.

Line events slow code that is pure Python many times over; these samples do not, and tell the
server where the host's time really goes there.
"""

import sys
import threading
from array import array
from time import time_ns

INTERVAL_S = 0.002


class Sampler:
    def __init__(self, locations):
        self.locations = locations
        self.samples = {}  # thread ident -> pairs
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._run, name="warpline-sampler", daemon=True)

    def start(self):
        self.thread.start()

    def stop(self):
        self.done.set()
        self.thread.join()

    def _run(self):
        lines_of, own = self.locations.lines_of, threading.get_ident()
        while not self.done.wait(INTERVAL_S):
            now = time_ns()
            for ident, frame in sys._current_frames().items():
                if ident == own:
                    continue
                user = self.locations.user_files.nearest(frame)
                if user is None and ident not in self.samples:
                    continue
                location = lines_of(user.f_code)[user.f_lineno] if user is not None else 0
                pairs = self.samples.get(ident)
                if pairs is None:
                    pairs = self.samples[ident] = array("q")
                pairs.append(now)
                pairs.append(location)

    def packed(self):
        """All threads' pairs as bytes; threads are numbered as in the line records."""
        parts = []
        for ident, pairs in self.samples.items():
            thread = self.locations.records(ident).index << 32
            parts.append(
                array("q", [pair | thread if at % 2 else pair for at, pair in enumerate(pairs)]).tobytes()
            )
        return b"".join(parts)
