"""The windows, one after the other: waiting, warm-up, timing, capture; then the run folder."""

import os
import sys
import threading
from time import time_ns

from . import imports, windows
from .locations import Locations
from .userfiles import UserFiles


class Stopped(KeyboardInterrupt):
    """Ends the script as Ctrl-C would, once everything is measured."""


class Session:
    def __init__(self, control, pipe):
        self.control = control
        self.pipe = pipe
        self.stage = "waiting"
        self.stopping = False
        self.steps = None
        self.stamps = []
        self.timed = ()
        self.notes = []

    def torch_is_here(self, torch):
        from .steps import Steps

        self.torch = torch
        self.steps = Steps(self._first_step, self._restart)
        self.steps.install(torch)
        self.pipe.progress("waiting", 0, None, "waiting for the first step")

    def _restart(self):
        self.stage = "waiting"
        self.stamps.clear()
        self.steps.on_step = self._first_step

    def _first_step(self):
        self.stamps = [time_ns()]
        self.stage = "warmup"
        self.steps.on_step = self._warmup_step

    def _warmup_step(self):
        self.stamps.append(time_ns())
        durations = [after - before for before, after in zip(self.stamps, self.stamps[1:])]
        wanted = self.control.windows["warmup"]
        self.pipe.progress("warmup", len(durations), wanted, "warm-up %d" % len(durations))
        if windows.settled(durations, False) if wanted is None else len(durations) >= wanted:
            self._begin_timing(sorted(durations[-3:])[len(durations[-3:]) // 2])

    def _begin_timing(self, step_ns):
        self.stage = "timing"
        wanted = self.control.windows["timed"] or windows.timed_steps(step_ns)
        self.pipe.progress("timing", 0, wanted, "timing")
        self.steps.remove(but=self.steps.chosen)
        stamps = self.stamps = []
        stamp, last = stamps.append, wanted + 1

        def tick():
            stamp(time_ns())
            if len(stamps) == last:
                self._end_timing()

        self.steps.on_step = tick
        self._synchronize()
        stamp(time_ns())

    def _end_timing(self):
        self._synchronize()
        self.stamps[-1] = time_ns()
        self.timed = tuple(after - before for before, after in zip(self.stamps, self.stamps[1:]))
        self._begin_capture()

    def _begin_capture(self):
        from .recording import Recording

        self.stage = "capturing"
        self.pipe.progress("capturing", 0, self.control.windows["captured"], "capturing")
        if sys.version_info >= (3, 12):
            from .monitoring import Monitoring as LineEvents
        else:
            from .tracing import Tracing as LineEvents
        script = self._script()
        roots = tuple(dict.fromkeys((os.path.dirname(script), os.getcwd())))
        self.user_files = UserFiles(roots, self.control.request["include"])
        self.locations = Locations(self.user_files)
        self.lines = LineEvents(self.locations)
        self.recording = Recording()
        self.recording.prepare()
        self.lines.start()
        self.steps.on_step = self._rehearsed

    def _rehearsed(self):
        self._synchronize()
        self.recording.start()
        self.stamps = [time_ns()]
        self.steps.on_step = self._captured_step

    def _captured_step(self):
        if len(self.stamps) == self.control.windows["captured"]:
            self._synchronize()
        self.stamps.append(time_ns())
        done, wanted = len(self.stamps) - 1, self.control.windows["captured"]
        self.pipe.progress("capturing", done, wanted, "capturing %d/%d" % (done, wanted))
        if done == wanted:
            self._finish()

    def _finish(self):
        self.lines.stop()
        self.recording.stop()
        self.steps.remove()
        imports.stop_waiting()
        self.pipe.progress("writing", 0, None, "writing the run")
        self._write()
        self.stage = "done"
        self.pipe.send("ready", world=self.control.world)
        if not self.control.request["whole_run"]:
            self.stopping = True
            if threading.current_thread() is not threading.main_thread():
                import _thread

                _thread.interrupt_main()
            raise Stopped()

    def _write(self):
        from . import folder, machine

        path = self.control.folder
        os.makedirs(path, exist_ok=True)
        self.recording.save(os.path.join(path, "trace.json"))
        folder.write_records(path, "lines.bin", self.locations)
        functions = [name for _, _, name in self.locations.functions]
        folder.write(
            path,
            "locations.json",
            {
                "files": list(self.locations.files),
                "functions": functions,
                "locations": self.locations.table,
                "threads": [records.native for records in self.locations.threads.values()],
            },
        )
        sources = {}
        for name in self.locations.files:
            try:
                with open(name, encoding="utf-8", errors="replace") as file:
                    sources[name] = file.read()
            except OSError:
                pass
        folder.write(path, "sources.json", sources)
        folder.write(path, "facts.json", {"flags": machine.flags(self.torch)})
        folder.write_manifest(
            path,
            {
                "format": 1,
                "created_ns": time_ns(),
                "script": self._script(),
                "argv": self.control.request["argv"],
                "python_version": "%d.%d.%d" % sys.version_info[:3],
                "torch_version": str(self.torch.__version__),
                "device": machine.device(self.torch),
                "request": self.control.request,
                "step_source": self.steps.chosen or "whole",
                "timed_ns": self.timed,
                "captured": list(zip(self.stamps, self.stamps[1:])),
                "line_events": self.lines.kind,
                "roots": [root.rstrip(os.sep) for root in self.user_files.roots],
                "rank": self.control.rank,
                "world_size": self.control.world,
                "notes": self.notes,
            },
        )

    def _script(self):
        return os.path.abspath(
            getattr(sys.modules["__main__"], "__file__", None) or self.control.request["target"]
        )

    def _synchronize(self):
        if self.torch.cuda.is_initialized():
            self.torch.cuda.synchronize()

    def ended(self, error):
        """The script is over: by itself (``error`` None or SystemExit), or by an exception."""
        self.pipe.send("ended", stage=self.stage, error=type(error).__name__ if error else None)

    def forget(self):
        """In a forked child: leave it alone."""
        self.pipe.close()
