"""A separate program: reads another process's memory many times a second and notes a thread's frames.

    python -I -S snapshots.py < what to look at > what was seen

Each sample copies all memory that holds the thread's frames in one system call, which takes some
microseconds. A sampler that needs a call per frame reads the outer ones later than the inner ones. If a line
calls into libraries, the frames have changed by then, and the sample is lost or counted at a later line
(``docs/measuring-tables.md`` has the figures).

Standard library only, Python 3.9 syntax.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import select
import signal
import sys
import time
from typing import Any, Optional

PAGE_BITS = 12
PAGE = 1 << PAGE_BITS
MOST_PAGES = 64  # of frames, of the C stack where they are entered, of generators on the heap
#: Chosen: a server with more threads that make steps is rare, and each sample reads all of their stacks.
MOST_THREADS = 16
#: An address in a frame may carry a tag in its lowest bits (3.14).
TAGS = 7
MOST_FRAMES = 2000
TRIES = 4  # to take a sample; a look takes microseconds
GIVEN_UP = 1000  # successive samples without frames, after which the process is taken to have ended
READY = b"ready\n"
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # numbers of the system call
SHORTEST_TURN_NS = 100_000
CORE = 36  # field of /proc/PID/stat, counted from behind the name
LOOKS_A_CORE = 20  # samples between two checks of the script's core


class Vector(ctypes.Structure):
    """``struct iovec``."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class Memory:
    """Reads words of another process's memory. Raises OSError if the system has no call for that."""

    def __init__(self, process: int) -> None:
        self.process = process
        try:
            self.read = ctypes.CDLL(None, use_errno=True).process_vm_readv
        except AttributeError:
            raise OSError("no process_vm_readv") from None
        self.read.restype = ctypes.c_ssize_t
        self.read.argtypes = [
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_ulong,
            ctypes.c_void_p,
            ctypes.c_ulong,
            ctypes.c_ulong,
        ]
        self.buffer = ctypes.create_string_buffer(MOST_PAGES * PAGE)
        self.begin = ctypes.addressof(self.buffer)
        self.words = memoryview(self.buffer).cast("B").cast("Q")
        self.here = Vector(self.begin, 0)
        self.there = (Vector * MOST_PAGES)()
        self.slots: dict[int, int] = {}  # page number -> its place in the buffer
        self.used: dict[int, int] = {}  # page number -> the look that last needed it
        self.looks = self.added = 0  # pages that were read for themselves

    def look(self) -> None:
        """Copy all pages that recent samples needed, in one call."""
        self.looks += 1
        while self.slots:
            total = len(self.slots) * PAGE
            self.here.base, self.here.length = self.begin, total
            copied = self._copy(self.here, self.there, len(self.slots))
            if copied == total:
                return
            # The first page that could not be copied is gone; nothing behind it was read.
            self._forget(max(0, copied) // PAGE)

    def word(self, address: int) -> Optional[int]:
        """Eight bytes as of the last ``look``, or as of now if it did not copy that page. None if the address
        is not mapped."""
        page = address >> PAGE_BITS
        slot = self.slots.get(page)
        if slot is None:
            slot = self._add(page)
            if slot is None:
                return None
        self.used[page] = self.looks
        return self.words[(slot << (PAGE_BITS - 3)) + ((address & (PAGE - 1)) >> 3)]

    def _add(self, page: int) -> Optional[int]:
        if page <= 0 or page >= 1 << (64 - PAGE_BITS):
            return None
        if len(self.slots) == MOST_PAGES:
            self._forget(self.slots[min(self.slots, key=lambda one: self.used.get(one, 0))])
        slot = len(self.slots)
        here = Vector(self.begin + slot * PAGE, PAGE)
        there = Vector(page << PAGE_BITS, PAGE)
        if self._copy(here, there, 1) != PAGE:
            return None
        self.there[slot] = there
        self.slots[page] = slot
        self.added += 1
        return slot

    def _forget(self, slot: int) -> None:
        """The last page takes its place."""
        pages = {at: page for page, at in self.slots.items()}
        last = len(pages) - 1
        del self.slots[pages[slot]]
        if slot != last:
            self.slots[pages[last]] = slot
            self.there[slot] = self.there[last]
            ctypes.memmove(self.begin + slot * PAGE, self.begin + last * PAGE, PAGE)

    def _copy(self, here: Vector, there: Any, count: int) -> int:
        copied: int = self.read(self.process, ctypes.byref(here), 1, ctypes.byref(there), count, 0)
        return copied


class Frames:
    """The frames of one thread, or of all. ``layout`` is a ``layout.Layout``, as a dict."""

    newer = -1

    def __init__(self, memory: Memory, layout: dict[str, Any]) -> None:
        self.memory = memory
        self.thread: int = layout["thread"]
        self.entry: tuple[int, ...] = tuple(layout["entry"])
        self.code: int = layout["code"]
        self.previous: int = layout["previous"]
        self.instruction: int = layout["instruction"]
        self.newer = layout.get("newer", -1)

    def stacks(self) -> Optional[tuple[Any, ...]]:
        """The address of each thread's state and its ``stack``, in turn, the first thread's first. None if
        that cannot be read; others are left out then."""
        found: list[Any] = []
        thread: Optional[int] = self.thread
        while thread and len(found) < 2 * MOST_THREADS:
            stack = self._stack(thread)
            if stack is not None:
                found += (thread, stack)
            elif not found:
                return None
            thread = self.memory.word(thread + self.newer)
        return tuple(found)

    def stack(self) -> Optional[tuple[int, ...]]:
        """The ``_stack`` of the thread."""
        return self._stack(self.thread)

    def _stack(self, thread: int) -> Optional[tuple[int, ...]]:
        """Two numbers per frame, innermost first: the address of its code object, and the offset of the
        current instruction from it. None if the memory is not a valid chain of frames."""
        found: list[int] = []
        word = self.memory.word
        address: Optional[int] = thread
        for offset in self.entry:
            address = word((address or 0) + offset)
            if address is None:
                return None
        for _ in range(MOST_FRAMES):
            if not address:
                return tuple(found)
            code, at = word(address + self.code), word(address + self.instruction)
            if code is None or at is None:
                return None
            code &= ~TAGS
            if not code:  # a generator's frame, which is being left (3.14)
                return None
            found += (code, at - code)
            address = word(address + self.previous)
        return None

    def now(self) -> tuple[Optional[tuple[Any, ...]], float]:
        """The ``stack``, or the ``stacks`` of all threads, and when that was (monotonic, in seconds).

        The pages are copied one after the other while the thread runs, so where a call begins or ends
        meanwhile, they may contradict each other. That is so for 6 to 8 % of the samples of a script that
        makes thousands of short calls a step (``recurrent`` of benchmarks/truth on Python 3.12), and more
        often at lines that call much. They are taken again at once.
        """
        for _ in range(TRIES):
            self.memory.look()
            now = time.monotonic()
            stack = self.stack() if self.newer < 0 else self.stacks()
            if stack is not None:
                break
        return stack, now


class Scheduling(ctypes.Structure):
    """``struct sched_attr``."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    ]


def ask_for_short_turns() -> None:
    """Request short time slices (Linux 6.12 and later): then this process runs as soon as it wakes.

    Otherwise, on the script's own core, the sampler would run only while the script sleeps, and see it asleep
    in every sample. Keeps the script's priority. Does nothing on other systems, or where the script has a
    policy of its own.
    """
    number = SCHED_SETATTR.get(os.uname().machine)
    if number is None or not sys.platform.startswith("linux") or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    asked = Scheduling(size=ctypes.sizeof(Scheduling), nice=nice, runtime=SHORTEST_TURN_NS)
    ctypes.CDLL(None).syscall(ctypes.c_long(number), 0, ctypes.byref(asked), 0)


class Cores:
    """Keeps this process off the core that the script's thread was last seen on, where it may use another."""

    def __init__(self, process: int, thread: int) -> None:
        self.path = "/proc/%d/task/%d/stat" % (process, thread)
        try:
            self.allowed = os.sched_getaffinity(0)
        except (AttributeError, OSError):
            self.allowed = set()
        self.last = -1

    def leave(self) -> None:
        """Move this process off the core that the script's thread runs on, if it may use another."""
        if len(self.allowed) < 2:
            return
        try:
            with open(self.path, "rb") as file:
                core = int(file.read().rpartition(b")")[2].split()[CORE])
            if core != self.last:
                self.last = core
                os.sched_setaffinity(0, (self.allowed - {core}) or self.allowed)
        except (OSError, ValueError, IndexError):
            self.allowed = set()  # the thread is gone, or a system without /proc


def main() -> None:
    """Sample between two lines of input. Standard input has a line of JSON with the request, a line to begin,
    and a line to end. Then the samples are written to standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it goes to all processes of a terminal
    told = open(0, "rb", buffering=0)  # noqa: SIM115 - unbuffered, or the third line is read with the second
    asked = json.loads(told.readline())
    memory = Memory(asked["process"])
    frames = Frames(memory, asked["layout"])
    if frames.stack() is None:
        sys.stdout.write("its frames cannot be read\n")
        return
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    if not select.select([0], [], [], asked["longest_s"])[0]:
        return  # the script was killed before it said so, and a process that it forked holds the pipe
    told.readline()
    ask_for_short_turns()
    cores = Cores(asked["process"], asked["thread"])
    between_s, now = 1 / asked["rate"], time.monotonic()
    until, due = now + asked["longest_s"], now
    found: dict[tuple[Any, ...], list[int]] = {}
    torn = in_a_row = 0
    while in_a_row < GIVEN_UP and now < until:
        # At random intervals: even ones could sample every step at the same places.
        due = max(due + between_s * random.uniform(0.5, 1.5), now)
        if select.select([0], [], [], max(0.0, due - time.monotonic()))[0]:
            break
        if memory.looks % LOOKS_A_CORE == 0:
            cores.leave()
        stack, now = frames.now()
        if stack is None:
            torn, in_a_row = torn + 1, in_a_row + 1
        else:
            found.setdefault(stack, []).append(int(now * 1e6))
            in_a_row = 0
    pack = packed if frames.newer < 0 else packed_threads
    sys.stdout.write(json.dumps({**pack(found), "torn": torn}))


def packed_threads(found: dict[tuple[Any, ...], list[int]]) -> dict[str, Any]:
    """``packed``, and ``threads``: those seen at each of ``times``, each with the number of its stack."""
    numbers: dict[tuple[int, ...], int] = {}
    threads = [
        [(thread, numbers.setdefault(stack, len(numbers))) for thread, stack in zip(seen[::2], seen[1::2])]
        for seen in found
    ]
    stacks = packed({stack: [] for stack in numbers})
    return {**stacks, "times": list(found.values()), "threads": threads}


def packed(found: dict[tuple[Any, ...], list[int]]) -> dict[str, Any]:
    """``frames``: (code, instruction) of each that was seen; ``stacks``: their numbers; ``times``: when each
    stack was seen, in microseconds of the monotonic clock."""
    numbers: dict[tuple[int, int], int] = {}
    stacks = [
        [numbers.setdefault(frame, len(numbers)) for frame in zip(stack[::2], stack[1::2])] for stack in found
    ]
    return {"frames": list(numbers), "stacks": stacks, "times": list(found.values())}


if __name__ == "__main__":
    main()
