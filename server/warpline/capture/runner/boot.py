"""``python boot.py [WORDS] CONTROL``: run the script named in the file CONTROL and watch it.

WORDS are arguments that a launcher puts before the script's own; the script gets them.

WARNING: the first statements remove this folder from ``sys.path``; nothing may be imported before. And this
module is ``__main__`` until the script takes over, so its globals must not be visible to later code.
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
