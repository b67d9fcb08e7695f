"""Library lines below the user's: the runner writes them to ``inside.bin`` and ``inside.json``.

``inside.bin`` has int64 pairs like ``lines.bin``: ``(time_ns, thread_index << 32 | location)``, in order of
time per thread, with the same thread indices. Location 0 means "in no library": the thread is in the user's
own code or in torch that the user called. A pair holds until the next one, or until the next record of a
user's line on its thread. Bit 31 is set when Python came back to a line that it had begun before.

Runs from before these files existed have neither.
"""

from __future__ import annotations

from dataclasses import dataclass

INSIDE_PAIRS = "inside.bin"
INSIDE_TABLE = "inside.json"
#: What is kept of a line's text, in characters.
LONGEST_TEXT = 200


@dataclass(frozen=True)
class LibraryLocations:
    """``locations[i] = (file index, line, function index, module index)``; entry 0 is (-1, 0, -1, -1).

    ``modules`` are paths as ``named_modules()`` of the outermost model has them, "" being the model itself,
    with ``*`` in place of the number in a list of modules of one class. Module index -1: in no module's call.
    """

    files: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    locations: tuple[tuple[int, int, int, int], ...] = ((-1, 0, -1, -1),)
    texts: tuple[str, ...] = ()  # of the lines, beside ``locations``; "" where it cannot be read
    # Of functions with too many lines to record: the locations, at the ``def``, of calls that have no others,
    # and the functions, by index, that are not recorded at all, whose time is at the line that calls them.
    at_def: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()
