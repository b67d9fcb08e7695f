"""The table of locations, and the records that point into it."""

import sys
import threading
from array import array

#: Set in a record's location when Python came back to a line that it had begun before.
AGAIN = 1 << 31
#: Code that is part of a statement of other code, whose line has begun when they do.
WITHIN = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class Locations:
    """``(file, line, function)`` <-> number; number 0 is "in no file of the user's"."""

    def __init__(self, user_files, names):
        self.user_files = user_files
        self.names = names
        self.files = {}  # path -> index
        self.functions = {}  # (path, first line, name) -> index
        self.table = [(-1, 0, -1)]
        self.of_code = {}  # id(code) -> CodeLines
        self.begun = {}  # id(code) -> what is recorded when a line of it begins, by line
        self.threads = {}  # thread ident -> Records; idents are used again once a thread has ended
        self.all_records = []
        self.marks = None
        self.library = None  # LibraryLines, where lines of libraries are recorded too
        self.local = threading.local()
        self.lock = threading.Lock()

    def lines_of(self, code):
        """The CodeLines of a user's code object; None for any other."""
        try:
            return self.of_code[id(code)]
        except KeyError:
            pass
        path = self.user_files[code.co_filename]
        if path is None:
            return None
        with self.lock:
            found = self.of_code.get(id(code))
            if found is None:
                file = self.files.setdefault(path, len(self.files))
                key = (path, code.co_firstlineno, self.names.of(code, path))
                function = self.functions.setdefault(key, len(self.functions))
                found = CodeLines(self, code, file, function)
                self.begun[id(code)] = BegunWithin(found) if code.co_name in WITHIN else found
                self.of_code[id(code)] = found
        return found

    def codes(self):
        """Code of the user's files that ran while lines were recorded."""
        return [lines.code for lines in self.of_code.values()]

    def add(self, file, line, function):
        with self.lock:
            self.table.append((file, line or 0, function))
            return len(self.table) - 1

    def as_dict(self):
        """The ``Locations`` of the run folder."""
        return {
            "files": list(self.files),
            "functions": [name for _, _, name in self.functions],
            "locations": self.table,
            "threads": [records.native for records in self.all_records],
        }

    def mark_with(self, marks):
        """From now on ``marks`` (LineMarks) writes a range for each record too."""
        self.marks = marks
        for records in self.all_records:
            records.add = marks.adding(records.pairs)

    def packed(self):
        """All threads' records as bytes, one thread after the other."""
        return b"".join(records.packed(records.pairs) for records in self.all_records)

    def packed_library(self):
        """The same for lines of libraries."""
        return b"".join(records.packed(records.library) for records in self.all_records)

    def python_threads(self):
        """Number of threads, made by ``threading``, on which lines of the user's have run."""
        return sum(1 for records in self.all_records if records.python and records.pairs)

    def forget_all_but_last(self):
        """Drop what was recorded so far, except where each thread is now; returns the number of pairs."""
        count = 0
        for records in self.all_records:
            pairs = records.pairs
            count += len(pairs) // 2
            if len(pairs) % 2 == 0:  # else another thread is just adding one
                del pairs[:-2]
            if len(records.library) % 2 == 0:
                del records.library[:-2]
        return count

    def clear_records(self):
        for records in self.all_records:
            del records.pairs[:]
            del records.library[:]

    def records(self, ident=None):
        """The Records of the thread ``ident``, of the calling one by default."""
        if ident is not None and ident != threading.get_ident():
            return self._of_ident(ident, getattr(threading._active.get(ident), "native_id", None) or 0)
        try:
            return self.local.records
        except AttributeError:
            found = self._of_ident(threading.get_ident(), threading.get_native_id())
            self.local.records = found
            return found

    def _of_ident(self, ident, native):
        with self.lock:
            found = self.threads.get(ident)
            if found is None or native not in (0, found.native):
                thread = threading._active.get(ident)  # a thread of autograd's is not in there
                python = thread is not None and not isinstance(thread, threading._DummyThread)
                found = self.threads[ident] = Records(native, len(self.all_records), python)
                self.all_records.append(found)
                if self.marks is not None:
                    found.add = self.marks.adding(found.pairs)
            return found


class CodeLines(dict):
    """Line -> location within one code object, which it keeps alive (its id is a key)."""

    __slots__ = ("code", "file", "function", "locations")

    def __init__(self, locations, code, file, function):
        super().__init__()
        self.locations = locations
        self.code = code
        self.file = file
        self.function = function

    def __missing__(self, line):
        found = self[line] = self.locations.add(self.file, line, self.function)
        return found


class BegunWithin(dict):
    """The same for a comprehension or a generator expression, whose own first line has begun already."""

    __slots__ = ("lines",)

    def __init__(self, lines):
        super().__init__()
        self.lines = lines

    def __missing__(self, line):
        here = line == self.lines.code.co_firstlineno
        found = self[line] = self.lines[line] | AGAIN if here else self.lines[line]
        return found


class Records:
    """One thread's ``time_ns, location`` pairs, one after the other; ``library``: lines of libraries."""

    __slots__ = ("add", "index", "library", "native", "pairs", "python")

    def __init__(self, native, index, python):
        self.python = python  # a thread made by ``threading``
        self.native = native
        self.index = index
        self.pairs = array("q")
        self.add = self.pairs.append
        self.library = array("q")

    def packed(self, pairs):
        """``pairs`` as bytes, with the thread's index in the upper half of each location."""
        if sys.byteorder == "big":  # they are little-endian in the run folder
            pairs = pairs[:]
            pairs.byteswap()
        if self.index == 0:
            return pairs.tobytes()
        packed = bytearray(pairs.tobytes())
        for at, byte in enumerate(self.index.to_bytes(4, "little")):
            packed[12 + at :: 16] = bytes([byte]) * len(packed[12 + at :: 16])
        return bytes(packed)
