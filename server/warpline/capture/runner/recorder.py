"""One capture: torch's profiler and the line records, started and stopped together, and written."""

import os
import sys
from time import time_ns

from . import folder, machine
from .locations import Locations
from .recording import Recording
from .userfiles import UserFiles

if sys.version_info >= (3, 12):
    from .monitoring import Monitoring as LineEvents
else:
    from .tracing import Tracing as LineEvents


class Recorder:
    def __init__(self, torch, control, script):
        self.torch = torch
        self.control = control
        self.script = script
        roots = tuple(dict.fromkeys((os.path.dirname(script), os.getcwd())))
        self.user_files = UserFiles(roots, control.request["include"])
        self.locations = Locations(self.user_files)
        self.lines = LineEvents(self.locations)
        self.recording = Recording()

    def start(self):
        self.recording.prepare()
        self.recording.start()
        self.lines.start()

    def stop(self):
        self.lines.stop()
        self.recording.stop()

    def forget(self):
        self.lines.stop()

    def write(self, manifest, facts):
        """The whole run folder; ``manifest`` and ``facts`` are what only the session knows."""
        path = self.control.folder
        os.makedirs(path, exist_ok=True)
        self.recording.save(os.path.join(path, "trace.json"))
        folder.write_records(path, "lines.bin", self.locations)
        folder.write(path, "locations.json", self.locations.as_dict())
        folder.write(path, "sources.json", folder.texts(self.locations.files))
        folder.write(path, "facts.json", {"flags": machine.flags(self.torch), **facts})
        folder.write_manifest(
            path,
            {
                "format": 1,
                "created_ns": time_ns(),
                "script": self.script,
                "argv": self.control.request["argv"],
                "python_version": "%d.%d.%d" % sys.version_info[:3],
                "torch_version": str(self.torch.__version__),
                "device": machine.device(self.torch),
                "request": self.control.request,
                "line_events": self.lines.kind,
                "roots": [root.rstrip(os.sep) for root in self.user_files.roots],
                "rank": self.control.rank,
                "world_size": self.control.world,
                **manifest,
            },
        )
