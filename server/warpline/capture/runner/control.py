"""What the server asked for, read from the control file."""

from __future__ import annotations

import json
import os


class Control:
    """The control file's fields as attributes; see ``capture/control.py`` for the writing side.

    ``rank`` and ``world`` come from the launcher's environment (RANK, WORLD_SIZE), if there is one;
    ``local_rank`` and ``local_world`` count the ranks on this machine.
    """

    def __init__(self, path: str, injected: list[str]) -> None:
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
        self.request = fields["request"]
        self.argv = [*injected, *self.request["argv"]]
        self.purpose = fields["purpose"]  # "profile" | "time" | "whole"
        self.pipe = fields["pipe"]
        self.notes = fields["notes"]
        self.seed = fields["seed"]
        self.overlay = fields["overlay"]  # path -> text
        self.turn = fields["turn"]  # path of a FIFO with a word for each wait, or empty
        self.turn_s = fields["turn_s"]  # how long to wait for each
        launched = bool(self.request["launcher"])
        self.rank = _number("RANK", 0) if launched else 0
        self.world = _number("WORLD_SIZE", 1) if launched else 1
        self.local_rank = _number("LOCAL_RANK", self.rank) if launched else 0
        self.local_world = _number("LOCAL_WORLD_SIZE", self.world) if launched else 1
        self.windows = fields["windows"]
        if self.world > 1:
            self._same_for_all_ranks()
        self.root = fields["folder"]
        self.folder = self.folder_of(self.local_rank)

    def folder_of(self, local_rank: int) -> str:
        return self.root if local_rank == 0 else os.path.join(self.root, "ranks", str(local_rank))

    def _same_for_all_ranks(self) -> None:
        """Ranks wait for each other: their windows must begin and end at the same steps."""
        for name, steps in (("warmup", 10), ("timed", 20)):
            if self.windows[name] is None:
                self.windows[name] = steps


def _number(name: str, otherwise: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else otherwise
