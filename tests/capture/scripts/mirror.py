"""Prints what it sees of the world, so that two ways of running it can be compared."""

import json, os, pickle, sys
import session, queue, steps  # its own: names of the runner's and of the standard library's


class Kept:
    pass


def work(number):
    return number, __name__, sys.argv[1:], os.path.basename(sys.modules["__main__"].__file__)


def main():
    import torch
    import multiprocessing

    seen = {
        "argv": sys.argv,
        "path0": sys.path[0],
        "name": __name__,
        "file": __file__,
        "spec": getattr(__spec__, "name", None),
        "package": __package__,
        "loader": type(__loader__).__name__,
        "cwd": os.getcwd(),
        "stdin": sys.stdin.read(),
        "own": [session.MINE, queue.MINE, steps.MINE],
        "globals": sorted(name for name in globals() if name.startswith("__")),
        "doc": __doc__,
        "pythonpath": os.environ.get("PYTHONPATH"),
        "torch_early": EARLY,
        "pickled": type(pickle.loads(pickle.dumps(Kept()))).__module__,
        "main": sys.modules["__main__"].__dict__ is globals(),
        "runner": [m for m in sys.path if "warpline" in m],
    }
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        seen["spawned"] = pool.map(work, [1])
    with multiprocessing.get_context("fork").Pool(1) as pool:
        seen["forked"] = pool.map(work, [2])
    print("SEEN " + json.dumps(seen), flush=True)
    sys.exit(7)


if __name__ == "__main__":
    EARLY = "torch" in sys.modules
    main()
