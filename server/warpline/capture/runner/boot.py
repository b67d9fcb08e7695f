"""``python boot.py [WORDS] CONTROL``: run the script named in the file CONTROL and watch it.

WORDS are what a launcher puts before a script's arguments; the script gets them.

WARNING: the first statements take this folder off ``sys.path`` before anything is imported, and
what runs later must not see this module's globals: it *is* ``__main__`` until the script takes over.
"""

import sys

if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
    del sys.path[0]


def _start(control: str, injected: "list[str]") -> None:
    import importlib
    import os
    import types

    # The same tree as in the server, under a private name, so that relative imports of ``wire`` work in both.
    # The packages above the runner are empty here: their ``__init__`` belongs to the server.
    capture = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name, folder in (("_warpline", os.path.dirname(capture)), ("_warpline.capture", capture)):
        package = types.ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package
    importlib.import_module("_warpline.capture.runner.target").run(control, injected)


_start(sys.argv[-1], sys.argv[1:-1])
