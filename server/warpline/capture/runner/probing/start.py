"""``python start.py``: questions as JSON on standard input, one answer a line on standard output.

The first statements take this folder off ``sys.path``, and what the caller's PYTHONPATH or working folder
would add for a script stays off as well as it can: only torch and the standard library are imported.
"""

import sys

if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
    del sys.path[0]


def _start() -> None:
    import importlib
    import os
    import types

    # As boot.py does: the same tree as in the server, under a private name.
    capture = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for name, folder in (("_warpline", os.path.dirname(capture)), ("_warpline.capture", capture)):
        package = types.ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package
    importlib.import_module("_warpline.capture.runner.probing.answers").run()


_start()
