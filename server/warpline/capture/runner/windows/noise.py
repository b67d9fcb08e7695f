"""Keeps torch's own messages about profiling off the script's standard error."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from types import ModuleType


class Quiet:
    """``start`` before the profiler is prepared, ``stop`` after it has written."""

    def __init__(self) -> None:
        self.kineto: str | None = None
        self.level: int | None = None

    def start(self, torch: ModuleType) -> None:
        """Raise the log levels of Kineto and of c10 to errors."""
        self.kineto = os.environ.get("KINETO_LOG_LEVEL")
        os.environ["KINETO_LOG_LEVEL"] = "99"
        try:
            import ctypes

            library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__ or ""), "lib", "libc10.so"))
            self.flag = ctypes.c_int.in_dll(library, "FLAGS_caffe2_log_level")
            self.level = level = self.flag.value
            self.flag.value = max(level, 2)  # errors only
        except (OSError, ValueError):
            self.level = None

    def stop(self) -> None:
        """Restore both levels."""
        if self.kineto is None:
            os.environ.pop("KINETO_LOG_LEVEL", None)
        else:
            os.environ["KINETO_LOG_LEVEL"] = self.kineto
        if self.level is not None:
            self.flag.value = self.level


#: Printed if the profiler is first used in another thread than the one that imported torch. It is harmless.
COMPLAINT = b"External init callback must run in same thread"


@contextlib.contextmanager
def without_complaint() -> Iterator[None]:
    """Drop ``COMPLAINT`` from standard error inside the block; other output appears when the block ends."""
    if threading.current_thread() is threading.main_thread():
        yield
        return
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            for line in file:
                if COMPLAINT not in line:
                    os.write(2, line)
