"""What the server asked for, read from the control file."""

import json
import os


class Control:
    """The control file's fields as attributes; see ``capture/control.py`` for the writing side.

    ``rank`` and ``world`` come from the launcher's environment (RANK, WORLD_SIZE), if there is one.
    """

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
        self.request = fields["request"]
        self.purpose = fields["purpose"]  # "profile" | "time" | "whole"
        self.pipe = fields["pipe"]
        self.windows = fields["windows"]
        self.notes = fields["notes"]
        self.seed = fields["seed"]
        self.overlay = fields["overlay"]  # path -> text
        self.launched = bool(self.request["launcher"])
        self.rank = int(os.environ.get("RANK", "0")) if self.launched else 0
        self.world = int(os.environ.get("WORLD_SIZE", "1")) if self.launched else 1
        folder = fields["folder"]
        self.folder = folder if self.rank == 0 else os.path.join(folder, "ranks", str(self.rank))
