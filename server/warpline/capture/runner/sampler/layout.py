"""Finds where this interpreter stores a thread's frames, by searching memory for known frames.

CPython's structs differ between versions and builds. So a few hundred bytes are searched for the chain of
pointers from the thread's state to the code objects of three running functions. Their addresses and
``f_lasti`` are known, so the result is either right or None.
"""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import asdict, dataclass, replace
from types import FrameType
from typing import Optional

from .snapshots import TAGS, Frames, Memory

WORD = 8
#: Words to search: of the thread's state, of a struct between it and a frame, of a frame.
THREAD_WORDS, BETWEEN_WORDS, FRAME_WORDS = 64, 4, 16
#: From a code object's address to its first instruction, at most.
FARTHEST = 512
#: Frames between the innermost of the known ones and the search.
MOST_INNER = 16
#: How often the memory of one chain is read, until all of it is from one moment.
LOOKS = 3
#: Older frames are objects, each somewhere on the heap.
LEAST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Layout:
    """Offsets in bytes."""

    thread: int  # the address of the thread's state
    entry: tuple[int, ...]  # from there: each word is an address, the last one that of the innermost frame
    code: int  # in a frame: the address of its code
    previous: int  # and of the frame that called it
    instruction: int  # and of the instruction
    first: int  # from a code's address to that of its first instruction
    newer: int = -1  # in a thread's state: the address of that of the thread that began next; -1: unknown


def of_all_threads() -> Layout:
    """The layout from the process's first thread on, with the way to the others. Raises OSError."""
    found = of_this_thread()
    older = ctypes.pythonapi.PyThreadState_Next
    older.restype, older.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    states = [found.thread]
    while (state := older(states[-1])) is not None:
        states.append(state)
    memory = Memory(os.getpid())
    pairs = list(zip(states, states[1:]))  # noqa: RUF007 - Python 3.9 has no pairwise
    for at in range(0, THREAD_WORDS * WORD, WORD):
        if pairs and all(memory.word(old + at) == new for new, old in pairs):
            return replace(found, thread=states[-1], newer=at)
    raise OSError("the threads of Python %d.%d were not found" % sys.version_info[:2])


def state_of_this_thread() -> int:
    """The address of the calling thread's state."""
    state = ctypes.pythonapi.PyThreadState_Get
    state.restype, state.argtypes = ctypes.c_void_p, []
    found: int = state()
    return found


def of_this_thread() -> Layout:
    """Raises OSError where the frames of this interpreter are not found."""
    if ctypes.sizeof(ctypes.c_void_p) != WORD or sys.byteorder != "little":
        raise OSError("not a 64-bit little-endian machine")
    found = _outer() if sys.version_info >= LEAST_PYTHON else None
    if found is None or not _holds(found):
        raise OSError("frames of Python %d.%d were not found" % sys.version_info[:2])
    return found


def _holds(layout: Layout) -> bool:
    """Whether the layout is right for other frames than those it was found with."""
    frames = Frames(Memory(os.getpid()), asdict(layout))
    frames.stack()  # to find out which memory that takes
    # A frame that knows itself is not freed, nor are those that called it: it has no name.
    before = sys._getframe().f_lasti
    frames.memory.look()
    after = sys._getframe().f_lasti
    stack = frames.stack() or ()
    instructions = dict(zip(stack[::2], stack[1::2]))
    return before < instructions.get(id(_holds.__code__), 0) - layout.first < after


def _outer() -> Optional[Layout]:
    return _middle()


def _middle() -> Optional[Layout]:
    return _inner()


def _inner() -> Optional[Layout]:
    """Runs as the innermost of the three frames."""
    frames: list[FrameType] = []
    frame: Optional[FrameType] = sys._getframe()
    while frame is not None and len(frames) < 3:
        frames.append(frame)
        frame = frame.f_back
    try:
        return _Search(state_of_this_thread(), frames).layout()
    finally:
        frames.clear()  # else this frame knows itself


class _Search:
    """The search. It runs in frames of its own, inside the known ones."""

    def __init__(self, thread: int, frames: list[FrameType]) -> None:
        self.thread = thread
        self.frames = frames  # the innermost first
        self.wanted = [id(frame.f_code) for frame in frames]
        self.memory = Memory(os.getpid())

    def layout(self) -> Optional[Layout]:
        for at in range(0, THREAD_WORDS * WORD, WORD):
            found = self._from((at,))
            for more in range(0, BETWEEN_WORDS * WORD, WORD):
                found = found or self._from((at, more))
            if found is not None:
                return found
        return None

    def _from(self, entry: tuple[int, ...]) -> Optional[Layout]:
        """The layout, if ``entry`` leads to a frame from which the known ones are reached."""
        for _ in range(LOOKS):
            self.memory.look()
            before = self.memory.added
            found = self._through(entry)
            if found is not None or self.memory.added == before:  # all was read in one look
                return found
        return None

    def _through(self, entry: tuple[int, ...]) -> Optional[Layout]:
        address: Optional[int] = self.thread
        for offset in entry:
            address = self._word((address or 0) + offset)
            if not address:
                return None
        for code in range(0, FRAME_WORDS * WORD, WORD):
            for previous in range(0, FRAME_WORDS * WORD, WORD):
                chain = self._chain(address, code, previous) if previous != code else None
                instruction = self._instruction(chain) if chain is not None else None
                if instruction is not None:
                    return Layout(self.thread, entry, code, previous, *instruction)
        return None

    def _chain(self, address: Optional[int], code: int, previous: int) -> Optional[list[int]]:
        """The addresses of the known frames."""
        for _ in range(MOST_INNER):
            if not address or self._tagless(address + code) == self.wanted[0]:
                break
            address = self._word(address + previous)
        chain = []
        for one in self.wanted:
            if not address or self._tagless(address + code) != one:
                return None
            chain.append(address)
            address = self._word(address + previous)
        return chain

    def _instruction(self, chain: list[int]) -> Optional[tuple[int, int]]:
        """Where the instruction is in a frame, and the first one in its code."""
        for offset in range(0, FRAME_WORDS * WORD, WORD):
            firsts = set()
            for address, frame in zip(chain[1:], self.frames[1:]):
                at = self._word(address + offset) or 0
                firsts.add(at - id(frame.f_code) - frame.f_lasti)
            if len(firsts) == 1 and 0 < (first := firsts.pop()) < FARTHEST:
                return offset, first
        return None

    def _tagless(self, address: int) -> Optional[int]:
        found = self._word(address)
        return None if found is None else found & ~TAGS

    def _word(self, address: int) -> Optional[int]:
        return self.memory.word(address) if address % WORD == 0 else None
