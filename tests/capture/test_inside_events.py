"""The records of libraries' lines one by one, by whichever events this Python has; no torch is needed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.capture.launching import PYTHONS
from warpline.capture.runner.inside.locations import def_line

ROOT = Path(__file__).resolve().parents[2] / "server" / "warpline"

TORCH = """\
class Module:
    def __init__(self): self._modules = {}
    def __call__(self, *a): return self._wrapped_call_impl(*a)
    def _wrapped_call_impl(self, *a): return self._call_impl(*a)
    def _call_impl(self, *a): return self.forward(*a)
class nn: Module = Module
"""

LIBRARY = """\
import torch
class Layer(torch.nn.Module):
    def forward(self, x):
        x = helper(x)
        return x + 1
def helper(x):
    return x * 2
class Model(torch.nn.Module):
    def __init__(self, callback):
        super().__init__()
        self._modules = {"0": Layer(), "1": Layer()}
        self.callback = callback
    def forward(self, x):
        x = self._modules["0"](x)
        y = self.callback(x)
        try:
            fails()
        except ValueError:
            return y
def fails():
    raise ValueError
def run(model, x):
    return model(x)
"""

USER = """\
import lib
def callback(x):
    return x + 5
model = lib.Model(callback)
def step():
    lib.run(model, 3)
    a = 1
"""

RECORD = """\
import os, sys, types
root, folder = sys.argv[1:]
for name in ("wp", "wp.capture"):
    package = types.ModuleType(name)
    package.__path__ = [os.path.join(root, *name.split(".")[1:])]
    sys.modules[name] = package
from wp.capture.runner.inside.locations import LibraryLines
from wp.capture.runner.lines.locations import AGAIN, Locations
from wp.capture.runner.lines.names import QualifiedNames
from wp.capture.runner.lines.userfiles import UserFiles
if sys.version_info >= (3, 12):
    from wp.capture.runner.lines.monitoring import Monitoring as Events
else:
    from wp.capture.runner.lines.tracing import Tracing as Events
sys.path[:0] = [os.path.join(folder, "site-packages"), folder]
import torch, user
locations = Locations(UserFiles((folder,), ()), QualifiedNames())
locations.library = library = LibraryLines(torch, locations)
events = Events(locations)
events.start()
user.step()
user.step()
events.stop()
records, modules = locations.records(), list(library.modules.paths)
found = []
for time, place in zip(records.pairs[::2], records.pairs[1::2]):
    found.append((time, "user", locations.table[place & ~AGAIN][1], "again" if place & AGAIN else ""))
for time, place in zip(records.library[::2], records.library[1::2]):
    _, line, _, module = library.table[place & ~AGAIN]
    found.append((time, "lib", line, "-" if module < 0 else modules[module]))
found.sort(key=lambda each: each[0])
start = max(at for at, each in enumerate(found) if each[1:] == ("user", 6, ""))
for _, whose, line, module in found[start:]:
    print(whose, line, module)
"""


#: After the first step code with many lines is left out, as in a capture.
CHOSEN = "user.step()\nlocations_.LEAST, locations_.SHARE = ROOM, 0\nevents.leave_out(library.choose(1.0))\n"


#: The run's table names the functions with lines left out.
TOLD = """
table = library.as_dict()
print("at_def", *{table["functions"][table["locations"][at][2]] for at in table["at_def"]})
print("left_out", *(table["functions"][at] for at in table["left_out"]))
"""


def said_in(folder: Path, python: str, library: str, record: str) -> list[tuple[str, ...]]:
    installed = folder / "site-packages"
    (installed / "torch").mkdir(parents=True)
    (installed / "torch" / "__init__.py").write_text(TORCH, encoding="utf-8")
    (installed / "lib.py").write_text(library, encoding="utf-8")
    (folder / "user.py").write_text(USER, encoding="utf-8")
    (folder / "record.py").write_text(record, encoding="utf-8")
    done = subprocess.run(
        [python, str(folder / "record.py"), str(ROOT), str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [tuple(line.split(" ", 2)) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("fits", [True, False])
def test_code_with_many_lines_is_known_by_its_calls(tmp_path: Path, python: str, fits: bool) -> None:
    helper = "    end = 50\n    for _ in range(end):\n        x += 1\n    return x\n"
    chosen = CHOSEN.replace("ROOM", "60" if fits else "1")
    record = RECORD.replace("user.step()\n", chosen, 1)
    record = record.replace(
        "torch, user\n", "torch, user\nfrom wp.capture.runner.inside import locations as locations_\n"
    )
    said = said_in(tmp_path, python, LIBRARY.replace("    return x * 2\n", helper), record + TOLD)
    told = {kind: names for kind, *names in said if kind in ("at_def", "left_out")}
    if not fits:  # not even the calls
        assert ("lib", "6", "*") not in said
        assert told["at_def"] == [] and "helper" in " ".join(told["left_out"])
        return
    assert told == {"at_def": ["helper"], "left_out": []}
    at = said.index(("lib", "4", "*"))
    once = [("lib", "6", "*"), ("lib", "4", "*")]  # at the line of its ``def``
    assert said[at : said.index(("lib", "5", "*"))] == [("lib", "4", "*"), *once]


@pytest.mark.parametrize("python", PYTHONS)
def test_a_few_calls_of_code_with_many_lines_have_them_all(tmp_path: Path, python: str) -> None:
    """The first, second, fourth and eighth of ten: each after its ``def``, which tells calls apart."""
    helper = "    end = 9\n    for _ in range(end):\n        x += 1\n    return x\n"
    calls = "".join(f"        x = helper(x + {at})\n" for at in range(9))
    library = LIBRARY.replace("    return x * 2\n", helper).replace(
        "        x = helper(x)\n", "        x = helper(x)\n" + calls
    )
    library = library.replace('{"0": Layer(), "1": Layer()}', '{"0": Layer()}')
    chosen = CHOSEN.replace("ROOM", "120").replace("choose(1.0)", "choose(1.0, 2)")
    record = RECORD.replace("user.step()\n", chosen, 1).replace(
        "torch, user\n", "torch, user\nfrom wp.capture.runner.inside import locations as locations_\n"
    )
    later = record.replace("events.stop()\n", "user.step()\nevents.stop()\n")
    every = [15, 16, *([17, 18] * 9), 17, 19]
    few = [*every, *every, 15, *every, *([15] * 3), *every, 15, 15]
    for folder, script, expected in (("first", record, few), ("later", later, [15] * 10)):
        (tmp_path / folder).mkdir()
        said = said_in(tmp_path / folder, python, library, script + TOLD)
        assert ("at_def", "helper") in said
        lines = [int(each[1]) for each in said if each[0] == "lib" and 15 <= int(each[1]) <= 19]
        assert lines == expected


@pytest.mark.parametrize("python", PYTHONS)
def test_calls_of_code_that_begins_with_a_loop(tmp_path: Path, python: str) -> None:
    """Its first line runs ten times a call, and Python comes back from it once."""
    helper = "    for _ in range(9):\n        x += 1\n    return x\n"
    told = (
        "print('calls', *(each.calls for each in library._ran().values() if each.code.co_name == 'helper'))\n"
    )
    said = said_in(tmp_path, python, LIBRARY.replace("    return x * 2\n", helper), RECORD + told)
    assert ("calls", "2") in said  # one in each step


@pytest.mark.parametrize("python", PYTHONS)
def test_every_line_with_its_module(tmp_path: Path, python: str) -> None:
    said = said_in(tmp_path, python, LIBRARY, RECORD)
    assert said[: said.index(("user", "7", ""))] == [
        ("user", "6", ""),
        ("lib", "23", "-"),
        ("lib", "14", ""),
        ("lib", "4", "*"),
        ("lib", "7", "*"),
        ("lib", "4", "*"),  # back in the caller's line
        ("lib", "5", "*"),
        ("lib", "14", ""),
        ("lib", "15", ""),
        ("user", "3", ""),
        ("user", "6", "again"),  # the user's function returns into the library
        ("lib", "15", ""),
        ("lib", "16", ""),
        ("lib", "17", ""),
        ("lib", "21", ""),
        ("lib", "17", ""),  # an exception left the function
        ("lib", "18", ""),
        ("lib", "19", ""),
        ("lib", "23", "-"),
        ("lib", "0", "-"),  # and the library returns into the user's
    ]


def test_the_line_of_a_def_below_its_decorators(tmp_path: Path) -> None:
    file = tmp_path / "lib.py"
    file.write_text("@kept\n@counted(\n    limit=3,\n)\nasync def run():\n    pass\n\nf = lambda: 1\n")
    assert def_line(str(file), 1) == 5
    assert def_line(str(file), 8) == 8
