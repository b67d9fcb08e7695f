"""``python boot.py [WORDS] CONTROL``: run the script named in the file CONTROL and watch it.

WORDS are what a launcher puts before a script's arguments; the script gets them.

WARNING: the first statements take this folder off ``sys.path`` before anything is imported, and
what runs later must not see this module's globals: it *is* ``__main__`` until the script takes over.
"""

import sys

if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
    del sys.path[0]


def _start():
    import importlib.util
    import os

    folder = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.util.spec_from_file_location(
        "_warpline_runner", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules["_warpline_runner"] = package
    spec.loader.exec_module(package)
    from _warpline_runner import target

    return target.run


_start()(sys.argv[-1], sys.argv[1:-1])
