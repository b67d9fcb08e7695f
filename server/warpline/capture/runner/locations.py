"""The table of locations, and the records that point into it."""

import threading
from array import array


class Locations:
    """``(file, line, function)`` <-> number; number 0 is "in no file of the user's"."""

    def __init__(self, user_files):
        self.user_files = user_files
        self.files = {}  # path -> index
        self.functions = {}  # (path, first line, name) -> index
        self.table = [(-1, 0, -1)]
        self.of_code = {}  # id(code) -> CodeLines
        self.threads = {}  # thread ident -> Records
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
                key = (path, code.co_firstlineno, getattr(code, "co_qualname", None) or code.co_name)
                function = self.functions.setdefault(key, len(self.functions))
                found = self.of_code[id(code)] = CodeLines(self, code, file, function)
        return found

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
            "threads": [records.native for records in self.threads.values()],
        }

    def records(self):
        """The calling thread's Records."""
        ident = threading.get_ident()
        found = self.threads.get(ident)
        if found is None:
            found = self.threads[ident] = Records(threading.get_native_id(), len(self.threads))
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


class Records:
    """One thread's ``time_ns, location`` pairs, one after the other."""

    __slots__ = ("add", "index", "native", "pairs")

    def __init__(self, native, index):
        self.native = native
        self.index = index
        self.pairs = array("q")
        self.add = self.pairs.append

    def packed(self):
        """The pairs as bytes, with the thread's index in the upper half of each location."""
        if self.index == 0:
            return self.pairs.tobytes()
        thread = self.index << 32
        return array(
            "q", [value if at % 2 == 0 else value | thread for at, value in enumerate(self.pairs)]
        ).tobytes()
