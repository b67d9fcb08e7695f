"""``--nvtx``: an NVTX range for each step and each line of the user's, for whoever listens (nsys).

They stand in a domain of their own where the ``nvtx`` package is there; ``torch.cuda.nvtx`` knows only
the default domain, so there they are ranges with a start and an end, which no stack can mix up.
"""

import os

DOMAIN = "warpline"


class LineMarks:
    """``step(number)`` at boundaries; ``records(pairs)`` gives an ``add`` that marks what it adds."""

    def __init__(self, torch, locations):
        self.locations = locations
        self.begin, self.end = backend(torch)
        self.step_range = None

    @property
    def possible(self):
        return self.begin is not None

    def step(self, number):
        if self.step_range is not None:
            self.end(self.step_range)
        self.step_range = self.begin("step %d" % number) if number is not None else None

    def adding(self, append):
        """``append`` of one thread's pairs, marking each location that goes in."""
        names, open_range, is_location = {}, None, False

        def add(value):
            nonlocal open_range, is_location
            append(value)
            if is_location:
                if open_range is not None:
                    self.end(open_range)
                name = names.get(value)
                if name is None:
                    name = names[value] = self._name(value)
                open_range = self.begin(name) if name else None
            is_location = not is_location

        return add

    def _name(self, location):
        file, line, function = self.locations.table[location]
        if file < 0:
            return ""
        path = list(self.locations.files)[file]
        name = list(self.locations.functions)[function][2]
        return "%s %s:%d" % (name, os.path.basename(path), line)


def backend(torch):
    """``(begin(name) -> range, end(range))``, or ``(None, None)`` where nothing can write NVTX."""
    try:
        import nvtx

        return (lambda name: nvtx.start_range(message=name, domain=DOMAIN)), nvtx.end_range
    except ImportError:
        pass
    if torch.cuda.is_available():
        return torch.cuda.nvtx.range_start, torch.cuda.nvtx.range_end
    return None, None
